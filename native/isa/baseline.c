/* Whatever the compiler's target always has: four lanes, SSE2 on x86-64. */
#include "../native.h"

#define SET_NAME baseline
#define LANES 4
typedef u32 vec __attribute__((vector_size(16)));
typedef int32_t signed_vec __attribute__((vector_size(16)));

static inline vec shift_left(vec v, vec by)
{
    for (int i = 0; i < LANES; i++)
        v[i] = by[i] < 32 ? v[i] << by[i] : 0;
    return v;
}

static inline u32 lanes_set(vec v) { return (v[0] & 1) | (v[1] & 2) | (v[2] & 4) | (v[3] & 8); }

#include "instruction_set.h"

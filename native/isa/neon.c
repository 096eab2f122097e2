/* AArch64: four lanes. Not run so far: no such machine was at hand. */
#include <arm_neon.h>

#include "../native.h"

#define SET_NAME neon
#define LANES 4
typedef u32 vec __attribute__((vector_size(16)));
typedef int32_t signed_vec __attribute__((vector_size(16)));

static inline vec shift_left(vec v, vec by) { return (vec)vshlq_u32((uint32x4_t)v, (int32x4_t)by); }
static inline u32 lanes_set(vec v) { return (v[0] & 1) | (v[1] & 2) | (v[2] & 4) | (v[3] & 8); }

#include "instruction_set.h"

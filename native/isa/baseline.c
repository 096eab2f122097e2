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

/* Eight short lanes; shorts_set has SHORT_STEP bits for each. Nothing here shuffles bytes: tables are read lane by lane. */
#define SHORTS 8
#define SHORT_STEP 1
typedef u16 short_vec __attribute__((vector_size(16)));
typedef int16_t signed_short_vec __attribute__((vector_size(16)));
typedef struct {
    u16 entries[16];
} short_table;

static inline short_vec high_product(short_vec a, short_vec b)
{
    for (int i = 0; i < SHORTS; i++)
        a[i] = (u16)((u32)a[i] * b[i] >> 16);
    return a;
}

static inline u64 shorts_set(short_vec v)
{
    u64 set = 0;
    for (int i = 0; i < SHORTS; i++)
        set |= (u64)(v[i] & 1) << i;
    return set;
}

static inline short_table bit_table(void)
{
    short_table table;
    for (int i = 0; i < 16; i++)
        table.entries[i] = (u16)(1u << i);
    return table;
}

static inline short_table short_table_of(const u16 entries[8])
{
    short_table table;
    memcpy(table.entries, entries, 8 * sizeof *entries);
    return table;
}

static inline short_vec pick(short_vec i, short_table table)
{
    for (int k = 0; k < SHORTS; k++)
        i[k] = table.entries[i[k]];
    return i;
}

#include "plain_bytes.h"
#include "plain_shorts.h"
#include "instruction_set.h"

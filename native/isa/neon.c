/* AArch64: four lanes. Not run so far: no such machine was at hand. */
#include <arm_neon.h>

#include "../native.h"

#define SET_NAME neon
#define LANES 4
typedef u32 vec __attribute__((vector_size(16)));
typedef int32_t signed_vec __attribute__((vector_size(16)));

static inline vec shift_left(vec v, vec by) { return (vec)vshlq_u32((uint32x4_t)v, (int32x4_t)by); }
static inline u32 lanes_set(vec v) { return (v[0] & 1) | (v[1] & 2) | (v[2] & 4) | (v[3] & 8); }

/* Eight short lanes; see avx2.c. */
#define SHORTS 8
#define SHORT_STEP 8
typedef u16 short_vec __attribute__((vector_size(16)));
typedef int16_t signed_short_vec __attribute__((vector_size(16)));
typedef uint8x16_t short_table;

static inline short_vec high_product(short_vec a, short_vec b)
{
    uint32x4_t low = vmull_u16(vget_low_u16((uint16x8_t)a), vget_low_u16((uint16x8_t)b));
    uint32x4_t high = vmull_high_u16((uint16x8_t)a, (uint16x8_t)b);
    return (short_vec)vuzp2q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
}

static inline u64 shorts_set(short_vec v)
{
    return vget_lane_u64(vreinterpret_u64_u8(vmovn_u16((uint16x8_t)v)), 0) & 0x0101010101010101ull;
}

static inline short_table bit_table(void)
{
    return vcombine_u8(vcreate_u8(0x8040201008040201ull), vcreate_u8(0));
}

static inline short_table short_table_of(const u16 entries[8])
{
    uint8x16_t table = vreinterpretq_u8_u16(vld1q_u16(entries));
    return vcombine_u8(vget_low_u8(vuzp1q_u8(table, table)), vget_low_u8(vuzp2q_u8(table, table)));
}

static inline short_vec pick(short_vec i, short_table table)
{
    uint16x8_t twice = vorrq_u16((uint16x8_t)i, vshlq_n_u16((uint16x8_t)i, 8));
    return (short_vec)vreinterpretq_u16_u8(vqtbl1q_u8(table, vreinterpretq_u8_u16(veorq_u16(twice, vdupq_n_u16(0x0800)))));
}

#include "plain_bytes.h"
#include "plain_shorts.h"
#include "instruction_set.h"

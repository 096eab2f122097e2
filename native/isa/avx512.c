/* x86-64 with AVX-512 F, DQ, VL and BW: sixteen lanes. */
#include <immintrin.h>

#include "../native.h"

#define SET_NAME avx512
#define LANES 16
typedef u32 vec __attribute__((vector_size(64)));
typedef int32_t signed_vec __attribute__((vector_size(64)));

static inline vec shift_left(vec v, vec by) { return (vec)_mm512_sllv_epi32((__m512i)v, (__m512i)by); }
static inline u32 lanes_set(vec v) { return (u32)_mm512_movepi32_mask((__m512i)v); }

#define GATHERS
static inline vec gather(const u8 *from, vec offset) { return (vec)_mm512_i32gather_epi32((__m512i)offset, (const int *)from, 1); }

/* Thirty-two short lanes, with shorts_set and tables as in avx2.c. */
#define SHORTS 32
#define SHORT_STEP 1
typedef u16 short_vec __attribute__((vector_size(64)));
typedef int16_t signed_short_vec __attribute__((vector_size(64)));
typedef __m512i short_table;

static inline short_vec high_product(short_vec a, short_vec b) { return (short_vec)_mm512_mulhi_epu16((__m512i)a, (__m512i)b); }
static inline u64 shorts_set(short_vec v) { return _mm512_movepi16_mask((__m512i)v); }
static inline short_table bit_table(void) { return _mm512_broadcast_i32x4(_mm_cvtsi64_si128((long long)0x8040201008040201ull)); }

static inline short_table short_table_of(const u16 entries[8])
{
    __m128i table = _mm_loadu_si128((const __m128i *)entries);
    table = _mm_shuffle_epi8(table, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    return _mm512_broadcast_i32x4(table);
}

static inline u32 close_up(u16 *to, short_vec v, u64 lanes, const u8 *closing)
{
    const __m128i *shuffles = (const __m128i *)closing;
    __m128i parts[4] = {_mm512_extracti32x4_epi32((__m512i)v, 0), _mm512_extracti32x4_epi32((__m512i)v, 1),
                        _mm512_extracti32x4_epi32((__m512i)v, 2), _mm512_extracti32x4_epi32((__m512i)v, 3)};
    u32 count = 0;
    for (int i = 0; i < 4; i++) {
        u32 set = lanes >> 8 * i & 0xFF;
        _mm_storeu_si128((__m128i *)(to + count), _mm_shuffle_epi8(parts[i], _mm_loadu_si128(shuffles + set)));
        count += popcount64(set);
    }
    return count;
}

static inline short_vec pick(short_vec i, short_table table)
{
    __m512i twice = _mm512_shuffle_epi8((__m512i)i, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14)));
    return (short_vec)_mm512_shuffle_epi8(table, twice ^ _mm512_set1_epi16(0x0800));
}

static inline u32 line_sum(const u8 *line, u32 count)
{
    __m512i bytes = _mm512_maskz_loadu_epi8((1ull << count) - 1, line);
    return (u32)_mm512_reduce_add_epi64(_mm512_sad_epu8(bytes, _mm512_setzero_si512()));
}

#include "instruction_set.h"

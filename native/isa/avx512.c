/* x86-64 with AVX-512 F, DQ, VL and BW: sixteen lanes. */
#include "../native.h"
#include "x86_shorts.h"

#define SET_NAME avx512
#define LANES 16
typedef u32 vec __attribute__((vector_size(64)));
typedef int32_t signed_vec __attribute__((vector_size(64)));

static inline vec shift_left(vec v, vec by) { return (vec)_mm512_sllv_epi32((__m512i)v, (__m512i)by); }
static inline u32 lanes_set(vec v) { return (u32)_mm512_movepi32_mask((__m512i)v); }

#define GATHERS
static inline vec gather(const u8 *from, vec offset) { return (vec)_mm512_i32gather_epi32((__m512i)offset, (const int *)from, 1); }

static inline vec load_windows(const u8 *p)
{
    const __m128i windows = _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
    __m512i fours = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 1, 0, 0, 1, 2, 0, 0, 2, 3, 0, 0, 3, 4, 0, 0),
                                             _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p)));
    return (vec)_mm512_shuffle_epi8(fours, _mm512_broadcast_i32x4(windows));
}

static inline u32 close_up_lanes(u16 *to, vec v, u32 lanes)
{
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32((__mmask16)lanes, (__m512i)v)));
    return popcount64(lanes);
}

/* Thirty-two short lanes, with shorts_set and tables as in avx2.c. */
#define SHORTS 32
#define SHORT_STEP 1
typedef u16 short_vec __attribute__((vector_size(64)));
typedef int16_t signed_short_vec __attribute__((vector_size(64)));
typedef __m512i short_table;

static inline short_vec high_product(short_vec a, short_vec b) { return (short_vec)_mm512_mulhi_epu16((__m512i)a, (__m512i)b); }
static inline u64 shorts_set(short_vec v) { return _mm512_movepi16_mask((__m512i)v); }
static inline short_table bit_table(void) { return _mm512_broadcast_i32x4(bit_bytes()); }
static inline short_table short_table_of(const u16 entries[8]) { return _mm512_broadcast_i32x4(entry_bytes(entries)); }

static inline u32 close_up(u16 *to, short_vec v, u64 lanes, const u8 *closing)
{
    u32 count = close_up_eight(to, _mm512_extracti32x4_epi32((__m512i)v, 0), lanes & 0xFF, closing);
    count += close_up_eight(to + count, _mm512_extracti32x4_epi32((__m512i)v, 1), lanes >> 8 & 0xFF, closing);
    count += close_up_eight(to + count, _mm512_extracti32x4_epi32((__m512i)v, 2), lanes >> 16 & 0xFF, closing);
    return count + close_up_eight(to + count, _mm512_extracti32x4_epi32((__m512i)v, 3), (u32)(lanes >> 24), closing);
}

static inline short_vec spread(const u16 *from, u32 by)
{
    const short_vec lanes = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                             16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    return (short_vec)_mm512_permutexvar_epi16((__m512i)(lanes >> by), _mm512_loadu_si512(from));
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

/* Byte lanes, as in avx2.c. */
#define BYTES 64
typedef u8 byte_vec __attribute__((vector_size(64)));

static inline u64 bytes_set(byte_vec v) { return _mm512_movepi8_mask((__m512i)v); }

#include "instruction_set.h"

/* x86-64 with AVX2 and BMI2: eight lanes. */
#include "../native.h"
#include "x86_shorts.h"

#define SET_NAME avx2
#define LANES 8
typedef u32 vec __attribute__((vector_size(32)));
typedef int32_t signed_vec __attribute__((vector_size(32)));

static inline vec shift_left(vec v, vec by) { return (vec)_mm256_sllv_epi32((__m256i)v, (__m256i)by); }
static inline u32 lanes_set(vec v) { return (u32)_mm256_movemask_ps((__m256)v); }

#define GATHERS
static inline vec gather(const u8 *from, vec offset) { return (vec)_mm256_i32gather_epi32((const int *)from, (__m256i)offset, 1); }

/* The four bytes from each of the LANES places from p on; reads four bytes more than they have. */
static inline vec load_windows(const u8 *p)
{
    const __m128i windows = _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
    __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si64(p)), _mm_loadu_si64(p + 4), 1);
    return (vec)_mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(windows));
}

/* Stores the lanes in `lanes` one after the other as 16-bit numbers, and what comes after them is lost: up to LANES. Returns how many. */
static inline u32 close_up_lanes(u16 *to, vec v, u32 lanes)
{
    u64 bytes = _pdep_u64(lanes, 0x0101010101010101ull) * 0xFF, kept = _pext_u64(0x0706050403020100ull, bytes);
    __m256i closed = _mm256_permutevar8x32_epi32((__m256i)v, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)kept)));
    _mm_storeu_si128((__m128i *)to, _mm_packus_epi32(_mm256_castsi256_si128(closed), _mm256_extracti128_si256(closed, 1)));
    return popcount64(lanes);
}

/* Sixteen short lanes; shorts_set has SHORT_STEP bits for each. A table's byte i is the lower byte of entry i, byte i + 8 the
 * upper one of entry i, or of entry i + 8 the lower one. */
#define SHORTS 16
#define SHORT_STEP 2
typedef u16 short_vec __attribute__((vector_size(32)));
typedef int16_t signed_short_vec __attribute__((vector_size(32)));
typedef __m256i short_table;

static inline short_vec high_product(short_vec a, short_vec b) { return (short_vec)_mm256_mulhi_epu16((__m256i)a, (__m256i)b); }
static inline u64 shorts_set(short_vec v) { return (u32)_mm256_movemask_epi8((__m256i)v) & 0x55555555; }
static inline short_table bit_table(void) { return _mm256_broadcastsi128_si256(bit_bytes()); }
static inline short_table short_table_of(const u16 entries[8]) { return _mm256_broadcastsi128_si256(entry_bytes(entries)); }

/* Stores the lanes in `lanes` one after the other, and what comes after them is lost: up to SHORTS. Returns how many. */
static inline u32 close_up(u16 *to, short_vec v, u64 lanes, const u8 *closing)
{
    u32 set = (u32)_pext_u64(lanes, 0x55555555);
    u32 count = close_up_eight(to, _mm256_castsi256_si128((__m256i)v), set & 0xFF, closing);
    return count + close_up_eight(to + count, _mm256_extracti128_si256((__m256i)v, 1), set >> 8, closing);
}

/* Lane i is from[i >> by]. */
static inline short_vec spread(const u16 *from, u32 by)
{
    const short_vec lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    if (by == 0)
        return (short_vec)_mm256_loadu_si256((const __m256i *)from);
    __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)from));
    return (short_vec)_mm256_shuffle_epi8(twice, (__m256i)((lanes >> by) * 0x0202 + 0x0100));
}

static inline short_vec pick(short_vec i, short_table table)
{
    __m256i twice = _mm256_shuffle_epi8((__m256i)i, (__m256i)(short_vec){0x0000, 0x0202, 0x0404, 0x0606, 0x0808, 0x0A0A, 0x0C0C, 0x0E0E,
                                                                         0x0000, 0x0202, 0x0404, 0x0606, 0x0808, 0x0A0A, 0x0C0C, 0x0E0E});
    return (short_vec)_mm256_shuffle_epi8(table, twice ^ _mm256_set1_epi16(0x0800));
}

static inline u32 line_sum(const u8 *line, u32 count)
{
    static const u8 ones[128] __attribute__((aligned(64))) = {
        [0 ... 63] = 0xFF}; /* count ones from ones + 64 - count on */
    const u8 *mask = ones + 64 - count;
    __m256i low = _mm256_loadu_si256((const __m256i *)line) & _mm256_loadu_si256((const __m256i *)mask);
    __m256i high = _mm256_loadu_si256((const __m256i *)(line + 32)) & _mm256_loadu_si256((const __m256i *)(mask + 32));
    __m256i sums = _mm256_sad_epu8(low, _mm256_setzero_si256()) + _mm256_sad_epu8(high, _mm256_setzero_si256());
    __m128i half = _mm256_castsi256_si128(sums) + _mm256_extracti128_si256(sums, 1);
    return (u32)_mm_cvtsi128_si32(half) + (u32)_mm_extract_epi32(half, 2);
}

/* Byte lanes; bytes_set has a bit for each, all of whose bits are alike. */
#define BYTES 32
typedef u8 byte_vec __attribute__((vector_size(32)));

static inline u64 bytes_set(byte_vec v) { return (u32)_mm256_movemask_epi8((__m256i)v); }

#include "instruction_set.h"

/* What AVX2 and AVX-512 do to 128 bits of short lanes at a time. */
#include <immintrin.h>

/* The table of one byte each: position bits, entry i being 2^i. */
static inline __m128i bit_bytes(void) { return _mm_cvtsi64_si128((long long)0x8040201008040201ull); }

/* Lower bytes of the entries, then upper ones. */
static inline __m128i entry_bytes(const u16 entries[8])
{
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)entries),
                            _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
}

/* Stores those of eight lanes that are in `set` one after the other, and something after them. Returns how many. */
static inline u32 close_up_eight(u16 *to, __m128i lanes, u32 set, const u8 *closing)
{
    _mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(lanes, _mm_loadu_si128((const __m128i *)closing + set)));
    return popcount64(set);
}

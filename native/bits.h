/* Bit strings: bit i is bit i mod 64 of word i div 64. */
#ifndef MPHF_BITS_H
#define MPHF_BITS_H

#ifndef FN
#include "words.h"
#endif

#define NOWHERE (~(u64)0) /* a position beyond the end of a bit string: the file is corrupt */

/* The k bits from `at` on, 0 <= k < 64; reads up to a word beyond them. */
FN u64 bits_at(GLOBAL const u64 *words, u64 at, u32 k)
{
    GLOBAL const u64 *w = words + (at >> 6);
    u32 shift = (u32)at & 63;
    u64 value = w[0] >> shift | (w[1] << 1) << (63 - shift);
    return value & (((u64)1 << k) - 1);
}

/* Position in the word of its one number `rank`, counted from 0; rank < popcount64(word). */
FN u32 select64(u64 word, u32 rank)
{
#ifdef __BMI2__ /* one instruction and a count; AMD's before Zen 3 take some 100 ns for it, still in the order of the rest */
    return trailing_zeros64(__builtin_ia32_pdep_di(1ull << rank, word));
#else
    u32 at = 0;
    for (u32 width = 32; width; width >>= 1) {
        u32 below = popcount64(word >> at & (((u64)1 << width) - 1));
        u32 up = rank >= below;
        rank -= up ? below : 0;
        at += up ? width : 0;
    }
    return at;
#endif
}

/* Position of the one number `rank` at or after `at`, in a string of `count` words; NOWHERE if there are fewer. */
FN u64 select_from(GLOBAL const u64 *words, u64 count, u64 at, u64 rank)
{
    u64 i = at >> 6;
    if (i >= count)
        return NOWHERE;
    u64 word = words[i] & (~(u64)0 << (at & 63));
    for (;;) {
        u32 ones = popcount64(word);
        if (rank < ones)
            return i * 64 + select64(word, (u32)rank);
        rank -= ones;
        if (++i >= count)
            return NOWHERE;
        word = words[i];
    }
}

#endif

/* XXH3-128 with a 64-bit seed, for C11, CUDA C++ and OpenCL C. Written from the algorithm's description in
 * doc/xxhash_spec.md of github.com/Cyan4973/xxHash; the secret and the primes below are that document's constants.
 *
 *   ≤ 16 bytes   a few multiplications, no loop         (1–3, 4–8 and 9–16 bytes, and the empty key)
 *   ≤ 240 bytes  pairs of 16-byte chunks are folded into two accumulators
 *   longer       64-byte stripes go into eight accumulators, scrambled every 16 stripes, merged at the end
 *
 * Nothing outside key[0 … length-1] is read, at any alignment. */
#ifndef MPHF_XXH3_H
#define MPHF_XXH3_H

#ifndef FN
#include "words.h"
#endif

/* An optional word: a function kept out of line. Where a compiler inlines the long classes, each short key pays for
 * saving their registers: a quarter to a third of its time. */
#ifndef OUTLINE_FN
#define OUTLINE_FN FN
#endif

typedef struct {
    u64 hi, lo; /* upper and lower 64 bits of the 128-bit number */
} hash128;

/* Literals rather than CONSTANT scalars: a compiler folds them, CUDA would fetch __constant__ ones from memory. No
 * suffix, because `UL` has 64 bits only in OpenCL and LP64 C, and `ULL` is no OpenCL. */
#define XXH3_P32_1 ((u64)0x9E3779B1)
#define XXH3_P32_2 ((u64)0x85EBCA77)
#define XXH3_P32_3 ((u64)0xC2B2AE3D)
#define XXH3_P64_1 ((u64)0x9E3779B185EBCA87)
#define XXH3_P64_2 ((u64)0xC2B2AE3D27D4EB4F)
#define XXH3_P64_3 ((u64)0x165667B19E3779F9)
#define XXH3_P64_4 ((u64)0x85EBCA77C2B2AE63)
#define XXH3_P64_5 ((u64)0x27D4EB2F165667C5)
#define XXH3_MX1 ((u64)0x165667919E3779F9)
#define XXH3_MX2 ((u64)0x9FB21C651E98DF25)

/* The 192 secret bytes as little-endian words: constant memory has an address space of its own in OpenCL, where load64
 * cannot read it, and nearly every read is of whole words. */
CONSTANT u64 XXH3_SECRET[24] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
};

/* Long keys use a secret derived from the seed: even words plus seed, odd words minus seed (seed 0 leaves it alone). */
FN u64 xxh3_secret_word(u32 i, u64 seed) { return XXH3_SECRET[i] + (i & 1 ? 0 - seed : seed); }

/* The word at any byte offset ≤ 184 of that secret. */
FN u64 xxh3_secret_at(u32 offset, u64 seed)
{
    u32 i = offset >> 3, shift = (offset & 7) * 8;
    u64 word = xxh3_secret_word(i, seed);
    return shift ? word >> shift | xxh3_secret_word(i + 1, seed) << (64 - shift) : word;
}

FN u32 xxh3_swap32(u32 x)
{
    return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24;
}

FN u64 xxh3_swap64(u64 x) { return (u64)xxh3_swap32((u32)x) << 32 | xxh3_swap32((u32)(x >> 32)); }

/* Both halves of the product, folded. */
FN u64 xxh3_fold(u64 a, u64 b) { return a * b ^ mulhi64(a, b); }

FN u64 xxh3_avalanche(u64 x)
{
    x = (x ^ x >> 37) * XXH3_MX1;
    return x ^ x >> 32;
}

/* XXH64's final mix, which the shortest keys keep. */
FN u64 xxh3_avalanche64(u64 x)
{
    x = (x ^ x >> 33) * XXH3_P64_2;
    x = (x ^ x >> 29) * XXH3_P64_3;
    return x ^ x >> 32;
}

FN hash128 xxh3_0(u64 seed)
{
    hash128 h;
    h.lo = xxh3_avalanche64(seed ^ XXH3_SECRET[8] ^ XXH3_SECRET[9]);
    h.hi = xxh3_avalanche64(seed ^ XXH3_SECRET[10] ^ XXH3_SECRET[11]);
    return h;
}

FN hash128 xxh3_1to3(GLOBAL const u8 *key, u64 length, u64 seed)
{
    /* first, middle and last byte overlap for lengths 1 and 2; the length between them keeps those apart */
    u32 bytes = key[length - 1] | (u32)length << 8 | (u32)key[0] << 16 | (u32)key[length >> 1] << 24;
    u32 swapped = xxh3_swap32(bytes);
    hash128 h;
    h.lo = xxh3_avalanche64(bytes ^ ((u32)(XXH3_SECRET[0] ^ XXH3_SECRET[0] >> 32) + seed));
    h.hi = xxh3_avalanche64((swapped << 13 | swapped >> 19) ^ ((u32)(XXH3_SECRET[1] ^ XXH3_SECRET[1] >> 32) - seed));
    return h;
}

FN hash128 xxh3_4to8(GLOBAL const u8 *key, u64 length, u64 seed)
{
    u64 bytes = load32(key) | (u64)load32(key + length - 4) << 32;
    u64 mixed_seed = seed ^ (u64)xxh3_swap32((u32)seed) << 32;
    u64 x = bytes ^ ((XXH3_SECRET[2] ^ XXH3_SECRET[3]) + mixed_seed);
    u64 factor = XXH3_P64_1 + (length << 2);
    u64 lo = x * factor, hi = mulhi64(x, factor) + (lo << 1);
    hash128 h;
    lo ^= hi >> 3;
    lo = (lo ^ lo >> 35) * XXH3_MX2;
    h.lo = lo ^ lo >> 28;
    h.hi = xxh3_avalanche(hi);
    return h;
}

FN hash128 xxh3_9to16(GLOBAL const u8 *key, u64 length, u64 seed)
{
    u64 first = load64(key), last = load64(key + length - 8);
    u64 x = first ^ last ^ ((XXH3_SECRET[4] ^ XXH3_SECRET[5]) - seed);
    u64 y = last ^ ((XXH3_SECRET[6] ^ XXH3_SECRET[7]) + seed);
    u64 lo = x * XXH3_P64_1 + ((length - 1) << 54);
    u64 hi = mulhi64(x, XXH3_P64_1) + y + (u32)y * (XXH3_P32_2 - 1);
    hash128 h;
    lo ^= xxh3_swap64(hi);
    h.lo = xxh3_avalanche(lo * XXH3_P64_2);
    h.hi = xxh3_avalanche(mulhi64(lo, XXH3_P64_2) + hi * XXH3_P64_2);
    return h;
}

FN u64 xxh3_mix16(GLOBAL const u8 *chunk, u32 offset, u64 seed)
{
    return xxh3_fold(load64(chunk) ^ (xxh3_secret_at(offset, 0) + seed),
                     load64(chunk + 8) ^ (xxh3_secret_at(offset + 8, 0) - seed));
}

/* Each chunk goes through a multiplication into one accumulator and plainly into the other, so that a factor of zero
 * loses nothing. */
FN hash128 xxh3_mix_pair(hash128 acc, GLOBAL const u8 *a, GLOBAL const u8 *b, u32 offset, u64 seed)
{
    acc.lo = (acc.lo + xxh3_mix16(a, offset, seed)) ^ (load64(b) + load64(b + 8));
    acc.hi = (acc.hi + xxh3_mix16(b, offset + 16, seed)) ^ (load64(a) + load64(a + 8));
    return acc;
}

FN hash128 xxh3_medium_end(hash128 acc, u64 length, u64 seed)
{
    hash128 h;
    h.lo = xxh3_avalanche(acc.lo + acc.hi);
    h.hi = 0 - xxh3_avalanche(acc.lo * XXH3_P64_1 + acc.hi * XXH3_P64_4 + (length - seed) * XXH3_P64_2);
    return h;
}

FN hash128 xxh3_17to128(GLOBAL const u8 *key, u64 length, u64 seed)
{
    hash128 acc = {0, length * XXH3_P64_1};
    /* chunks in pairs, one from each end, innermost first; the two middle ones may overlap */
    if (length > 96)
        acc = xxh3_mix_pair(acc, key + 48, key + length - 64, 96, seed);
    if (length > 64)
        acc = xxh3_mix_pair(acc, key + 32, key + length - 48, 64, seed);
    if (length > 32)
        acc = xxh3_mix_pair(acc, key + 16, key + length - 32, 32, seed);
    acc = xxh3_mix_pair(acc, key, key + length - 16, 0, seed);
    return xxh3_medium_end(acc, length, seed);
}

OUTLINE_FN hash128 xxh3_129to240(GLOBAL const u8 *key, u64 length, u64 seed)
{
    hash128 acc = {0, length * XXH3_P64_1};
    u32 i, pairs = (u32)length >> 5;
    for (i = 0; i < 4; i++)
        acc = xxh3_mix_pair(acc, key + 32 * i, key + 32 * i + 16, 32 * i, seed);
    acc.lo = xxh3_avalanche(acc.lo);
    acc.hi = xxh3_avalanche(acc.hi);
    for (; i < pairs; i++)
        acc = xxh3_mix_pair(acc, key + 32 * i, key + 32 * i + 16, 32 * (i - 4) + 3, seed);
    acc = xxh3_mix_pair(acc, key + length - 16, key + length - 32, 103, 0 - seed);
    return xxh3_medium_end(acc, length, seed);
}

/* secret: 8 words. A lane's data goes plainly into its neighbour too, for the same reason as in xxh3_mix_pair. Written
 * two lanes at a time, this is what GCC and Clang turn into vectors. */
FN void xxh3_accumulate(u64 *acc, GLOBAL const u8 *stripe, const u64 *secret)
{
    for (u32 i = 0; i < 8; i += 2) {
        u64 a = load64(stripe + 8 * i), b = load64(stripe + 8 * i + 8);
        u64 x = a ^ secret[i], y = b ^ secret[i + 1];
        acc[i] += b + (x & 0xffffffff) * (x >> 32);
        acc[i + 1] += a + (y & 0xffffffff) * (y >> 32);
    }
}

FN void xxh3_scramble(u64 *acc, const u64 *secret)
{
    for (u32 i = 0; i < 8; i++)
        acc[i] = (acc[i] ^ acc[i] >> 47 ^ secret[i]) * XXH3_P32_1;
}

FN u64 xxh3_merge(const u64 *acc, u64 start, u32 offset, u64 seed)
{
    for (u32 i = 0; i < 8; i += 2)
        start += xxh3_fold(acc[i] ^ xxh3_secret_at(offset + 8 * i, seed),
                           acc[i + 1] ^ xxh3_secret_at(offset + 8 * i + 8, seed));
    return xxh3_avalanche(start);
}

OUTLINE_FN hash128 xxh3_long(GLOBAL const u8 *key, u64 length, u64 seed)
{
    u64 acc[8] = {XXH3_P32_3, XXH3_P64_1, XXH3_P64_2, XXH3_P64_3, XXH3_P64_4, XXH3_P32_2, XXH3_P64_5, XXH3_P32_1};
    /* stored: derived again for every stripe, 100 KB took a quarter (GCC, SSE2) to four fifths (AVX2) longer */
    u64 secret[24], last[8];
    u64 stripes = (length - 1) / 64; /* but for the last 64 bytes, always a stripe of their own */
    hash128 h;
    for (u32 i = 0; i < 24; i++)
        secret[i] = xxh3_secret_word(i, seed);
    for (u32 i = 0; i < 8; i++)
        last[i] = xxh3_secret_at(121 + 8 * i, seed);
    for (u64 n = 0; n < stripes; n++) {
        xxh3_accumulate(acc, key + 64 * n, secret + (n & 15));
        if ((n & 15) == 15)
            xxh3_scramble(acc, secret + 16);
    }
    xxh3_accumulate(acc, key + length - 64, last);
    h.lo = xxh3_merge(acc, length * XXH3_P64_1, 11, seed);
    h.hi = xxh3_merge(acc, ~(length * XXH3_P64_2), 117, seed);
    return h;
}

FN hash128 xxh3_128(GLOBAL const u8 *key, u64 length, u64 seed)
{
    if (length <= 16) {
        if (length > 8)
            return xxh3_9to16(key, length, seed);
        if (length >= 4)
            return xxh3_4to8(key, length, seed);
        return length ? xxh3_1to3(key, length, seed) : xxh3_0(seed);
    }
    if (length <= 128)
        return xxh3_17to128(key, length, seed);
    return length <= 240 ? xxh3_129to240(key, length, seed) : xxh3_long(key, length, seed);
}

#endif

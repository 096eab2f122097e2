/* The words that C, CUDA C++ and OpenCL C spell differently, as C spells them. xxh3.h, tree.h and the methods' `locate`
 * use only these and the common subset of the three languages. */
#ifndef MPHF_WORDS_H
#define MPHF_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

#define FN static inline
#define OUTLINE_FN static __attribute__((noinline, unused)) /* keeps long keys' code out of short keys' way */
#define CONSTANT static const /* a table in constant memory */
#define GLOBAL                /* address space of what the caller hands in */
#define UNLIKELY(x) __builtin_expect(x, 0)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "mphfstore reads its little-endian files in place: big-endian machines are not supported"
#endif

FN u64 mulhi64(u64 a, u64 b) { return (u64)(((unsigned __int128)a * b) >> 64); }
FN u32 popcount64(u64 x) { return (u32)__builtin_popcountll(x); }
FN u32 leading_zeros64(u64 x) { return (u32)__builtin_clzll(x); }   /* x != 0 */
FN u32 trailing_zeros64(u64 x) { return (u32)__builtin_ctzll(x); } /* x != 0 */

/* Unaligned little-endian loads. */
FN u32 load32(GLOBAL const u8 *p)
{
    u32 x;
    memcpy(&x, p, sizeof x);
    return x;
}

FN u64 load64(GLOBAL const u8 *p)
{
    u64 x;
    memcpy(&x, p, sizeof x);
    return x;
}

FN bool same_bytes(GLOBAL const u8 *a, GLOBAL const u8 *b, u64 length) { return !memcmp(a, b, length); }

#endif

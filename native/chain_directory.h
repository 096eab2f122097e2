/* The directory of chained seeds: sizes of the buckets, a few dozen to a line of 64 bytes; where a bucket's bits start is a linear
 * function of the keys and the buckets before it (FORMAT.md §5).
 *
 * Measured against an Elias-Fano sequence of the same sizes (1 M keys, AVX2, one after the other): 13 ns in place of 23 at buckets of 80
 * keys for 0.022 bits per key more, 13 in place of 23 at 160 for 0.009, 8 (two-byte entries) in place of 23 at 2000 for 0.005. One
 * cache line in place of four. */
#ifndef MPHF_CHAIN_DIRECTORY_H
#define MPHF_CHAIN_DIRECTORY_H

#include "native.h"

#define LINE_BYTES 64u
#define LINE_ENTRY_BYTES 58u  /* of one byte each; then 6 bytes: keys before the line's first bucket */
#define LINE_HEADER_WORDS 8u

typedef struct {
    GLOBAL const u8 *lines;
    u64 slope, offset, smallest;
    u64 inverse; /* 2^64 / per_line, rounded up */
    u32 entry_bytes, per_line;
    GLOBAL const root_salt *salts;
    u64 salt_count;
} chain_directory;

/* Buckets in a line. Entries of more than a byte hold the keys up to a bucket's end, from the line's start, and one comes before. */
FN u32 line_buckets(u32 entry_bytes) { return entry_bytes == 1 ? LINE_ENTRY_BYTES : LINE_ENTRY_BYTES / entry_bytes - 1; }

FN GLOBAL const u8 *chain_directory_line(const chain_directory *d, u64 bucket)
{
    return d->lines + mulhi64(bucket, d->inverse) * LINE_BYTES;
}

/* The salt of a bucket whose field is all ones; 0 (no bucket's) if the file does not say. */
FN u64 chain_directory_salt(const chain_directory *d, u64 bucket)
{
    u64 low = 0, high = d->salt_count;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if (d->salts[middle].bucket < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->salt_count && d->salts[low].bucket == bucket ? d->salts[low].salt : 0;
}

/* Sum of the first `count` bytes of a line; count <= LINE_ENTRY_BYTES. Instruction sets that add bytes across do better. */
FN u32 plain_line_sum(GLOBAL const u8 *line, u32 count)
{
    u64 sum = 0;
    for (u32 i = 0; i < LINE_BYTES / 8; i++) {
        u32 left = count > 8 * i ? count - 8 * i : 0;
        u64 bytes = load64(line + 8 * i) & (left < 8 ? (1ull << 8 * left) - 1 : ~0ull);
        sum += (bytes & 0x00FF00FF00FF00FFull) + (bytes >> 8 & 0x00FF00FF00FF00FFull);
    }
    return (u32)(sum * 0x0001000100010001ull >> 48);
}

/* Points into a section of the file, 8-byte aligned; false if it is not what it should be, or has other totals. */
bool chain_directory_open(chain_directory *d, const u8 *section, u64 length, u64 buckets, u64 keys, u64 bit_words);

#endif

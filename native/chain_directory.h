/* The directory of chained seeds: sizes of the buckets, a few dozen to a line of 64 bytes; where a bucket's bits start is a linear
 * function of the keys and the buckets before it (FORMAT.md §5).
 *
 * Measured against an Elias-Fano sequence of the same sizes (1 M keys, AVX2, one after the other): 13 ns in place of 23 at buckets of 80
 * keys for 0.022 bits per key more, 13 in place of 23 at 160 for 0.009, 8 (two-byte entries) in place of 23 at 2000 for 0.005. One
 * cache line in place of four. */
#ifndef MPHF_CHAIN_DIRECTORY_H
#define MPHF_CHAIN_DIRECTORY_H

#include "tree.h"

#define LINE_BYTES 64u
#define LINE_ENTRY_BYTES 58u  /* of one byte each; then 6 bytes: keys before the line's first bucket */
#define LINE_HEADER_WORDS 8u

typedef struct {
    GLOBAL const u8 *lines;
    u64 slope, offset, smallest;
    u64 inverse; /* 2^64 / per_line, rounded up */
    u32 entry_bytes, per_line;
    GLOBAL const u64 *salts; /* pairs: bucket, salt */
    u64 salt_count;
} chain_directory;

/* Buckets in a line. Entries of more than a byte hold the keys up to a bucket's end, from the line's start, and one comes before. */
FN u32 line_buckets(u32 entry_bytes) { return entry_bytes == 1 ? LINE_ENTRY_BYTES : LINE_ENTRY_BYTES / entry_bytes - 1; }

FN u64 line_count(u64 buckets, u32 entry_bytes)
{
    u64 per_line = line_buckets(entry_bytes);
    return (buckets + per_line - 1) / per_line;
}

/* First bit of a bucket. */
FN u64 chain_directory_start(u64 slope, u64 offset, u64 keys_before, u64 bucket)
{
    return (slope * keys_before + offset * bucket) >> 16;
}

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
        if (d->salts[2 * middle] < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->salt_count && d->salts[2 * low] == bucket ? d->salts[2 * low + 1] : 0;
}

/* Sum of the first `count` bytes of a line; count <= LINE_ENTRY_BYTES. Instruction sets that add bytes across do better. */
FN u32 plain_line_sum(GLOBAL const u8 *line, u32 count)
{
    u64 sum = 0;
    for (u32 i = 0; i < LINE_BYTES / 8; i++) {
        u32 left = count > 8 * i ? count - 8 * i : 0;
        u64 bytes = load64(line + 8 * i) & (left < 8 ? ((u64)1 << 8 * left) - 1 : ~(u64)0);
        sum += (bytes & (u64)0x00FF00FF00FF00FF) + (bytes >> 8 & (u64)0x00FF00FF00FF00FF);
    }
    return (u32)(sum * (u64)0x0001000100010001 >> 48);
}

/* Points into a section of the file, 8-byte aligned; false if it is not what it should be, or has other totals. */
FN bool chain_directory_open(chain_directory *d, GLOBAL const u8 *section, u64 length, u64 buckets, u64 keys, u64 bit_words)
{
    GLOBAL const u64 *words = (GLOBAL const u64 *)section;
    if (length % 8 || length / 8 < LINE_HEADER_WORDS || (words[3] != 1 && words[3] != 2 && words[3] != 4))
        return false;
    d->slope = words[0];
    d->offset = words[1];
    d->smallest = words[2];
    d->entry_bytes = (u32)words[3];
    d->salt_count = words[4];
    u64 lines = line_count(buckets, d->entry_bytes), rest = length / 8 - LINE_HEADER_WORDS;
    if (buckets >> 48 || lines > rest / (LINE_BYTES / 8) || d->smallest > LARGEST_BUCKET ||
        d->salt_count != (rest - lines * (LINE_BYTES / 8)) / 2 || (rest & 1) || keys >> 48 || words[5] | words[6] | words[7])
        return false;
    d->lines = section + LINE_HEADER_WORDS * 8;
    d->per_line = line_buckets(d->entry_bytes);
    d->inverse = ~(u64)0 / d->per_line + 1;
    d->salts = words + LINE_HEADER_WORDS + lines * (LINE_BYTES / 8);
    return (chain_directory_start(d->slope, d->offset, keys, buckets) + 63) / 64 == bit_words;
}

#endif

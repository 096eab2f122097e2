/* The directory: first key and first bit of every bucket, as two straightened Elias-Fano sequences (FORMAT.md §5). */
#ifndef MPHF_DIRECTORY_H
#define MPHF_DIRECTORY_H

#include "elias_fano.h"

typedef struct {
    u64 kmin, slope, pmin; /* of directory_line */
    elias_fano keys, starts;
} directory;

/* slope * keys / 2^32, the product in 128 bits */
FN u64 sloped(u64 slope, u64 keys) { return mulhi64(slope, keys) << 32 | (slope * keys) >> 32; }

/* Keys before the bucket, keys in it, first bit. 0 in a corrupt directory. */
FN u32 directory_bucket(const directory *d, u64 bucket, u64 *first, u64 *size, u64 *start)
{
    u64 next;
    if (!elias_fano_pair(&d->keys, bucket, first, &next))
        return 0;
    u64 one = elias_fano_select(&d->starts, bucket);
    if (one == NOWHERE)
        return 0;
    *size = next - *first + d->kmin;
    *first += bucket * d->kmin;
    *start = elias_fano_value(&d->starts, bucket, one) + bucket * d->pmin + sloped(d->slope, *first);
    return 1;
}

/* Points into a section of the file, 8-byte aligned; false if it is not what it should be, or has other totals. */
FN bool directory_open(directory *d, GLOBAL const u8 *section, u64 length, u64 buckets, u64 keys, u64 bit_words)
{
    GLOBAL const u64 *words = (GLOBAL const u64 *)section;
    u64 count = length / 8, first;
    if (length % 8 || count < 3)
        return false;
    d->kmin = words[0];
    d->slope = words[1];
    d->pmin = words[2];
    first = elias_fano_open_first(&d->keys, words + 3, count - 3);
    return first && elias_fano_open_first(&d->starts, words + 3 + first, count - 3 - first) == count - 3 - first &&
           d->keys.count == buckets + 1 && d->starts.count == buckets + 1 && d->keys.last + buckets * d->kmin == keys &&
           (d->starts.last + buckets * d->pmin + sloped(d->slope, keys) + 63) / 64 == bit_words;
}

#endif

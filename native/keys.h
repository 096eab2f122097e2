/* The keys of a batch, and their hashes. Part of the common subset of C, CUDA C++ and OpenCL C. */
#ifndef MPHF_KEYS_H
#define MPHF_KEYS_H

#include "xxh3.h"

#ifdef KERNEL
typedef struct { /* native.cdef.h's, on a device */
    GLOBAL const u8 *data;
    GLOBAL const u64 *offsets;
    u64 width, count;
    int strip;
} key_batch;
/* How a kernel is given one; without `offsets_given`, `offsets` is anything. */
#define KEY_ARGUMENTS GLOBAL const u8 *data, GLOBAL const u64 *offsets, u32 offsets_given, u64 width, u32 strip, u64 count
#define KEYS_GIVEN {data, offsets_given ? offsets : 0, width, count, (int)strip}
#else
#include "native.h"
#endif

FN GLOBAL const u8 *key_at(const key_batch *keys, u64 i, u64 *length)
{
    if (keys->offsets) {
        *length = keys->offsets[i + 1] - keys->offsets[i];
        return keys->data + keys->offsets[i];
    }
    GLOBAL const u8 *key = keys->data + i * keys->width;
    *length = keys->width;
    while (keys->strip && *length && !key[*length - 1])
        --*length;
    return key;
}

FN hash128 key_hash(const key_batch *keys, u64 i, u64 seed)
{
    u64 length;
    GLOBAL const u8 *key = key_at(keys, i, &length);
    return xxh3_128(key, length, seed);
}

#endif

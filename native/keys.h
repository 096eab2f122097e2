/* The keys of a batch, and their hashes. */
#ifndef MPHF_KEYS_H
#define MPHF_KEYS_H

#include "native.h"
#include "xxh3.h"

static inline hash128 key_hash(const key_batch *keys, u64 i, u64 seed)
{
    if (keys->offsets)
        return xxh3_128(keys->data + keys->offsets[i], keys->offsets[i + 1] - keys->offsets[i], seed);
    const u8 *key = keys->data + i * keys->width;
    u64 length = keys->width;
    while (keys->strip && length && !key[length - 1])
        length--;
    return xxh3_128(key, length, seed);
}

#endif

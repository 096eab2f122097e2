/* The keys of a batch, and their hashes. */
#ifndef MPHF_KEYS_H
#define MPHF_KEYS_H

#include "native.h"
#include "xxh3.h"

static inline const u8 *key_at(const key_batch *keys, u64 i, u64 *length)
{
    if (keys->offsets) {
        *length = keys->offsets[i + 1] - keys->offsets[i];
        return keys->data + keys->offsets[i];
    }
    const u8 *key = keys->data + i * keys->width;
    *length = keys->width;
    while (keys->strip && *length && !key[*length - 1])
        --*length;
    return key;
}

static inline hash128 key_hash(const key_batch *keys, u64 i, u64 seed)
{
    u64 length;
    const u8 *key = key_at(keys, i, &length);
    return xxh3_128(key, length, seed);
}

#endif

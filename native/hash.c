/* Hashes of keys, alone and in batches. */
#include "keys.h"

void mphf_hash(const uint8_t *key, uint64_t length, uint64_t seed, uint64_t *hi, uint64_t *lo)
{
    hash128 h = xxh3_128(key, length, seed);
    *hi = h.hi;
    *lo = h.lo;
}

void mphf_hash_batch(const key_batch *keys, uint64_t seed, uint64_t *hi, uint64_t *lo)
{
    for (u64 i = 0; i < keys->count; i++) {
        hash128 h = key_hash(keys, i, seed);
        hi[i] = h.hi;
        lo[i] = h.lo;
    }
}

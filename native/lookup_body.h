/* From a key to its index, once for every instruction set (hardware popcount and bit deposit are worth a factor of three here):
 * single as find.h has it, or in groups of keys that go through each stage together so that its cache misses overlap. */
#include "chain_lookup.h"
#include "reader.h"

/* `confirmed` for a group, in stages: samples, offsets, keys. */
static int confirm_group(const function *r, const u8 *const *keys, const u64 *key_lengths, u32 size, int64_t *out)
{
    const u8 *stored[GROUP];
    u64 lengths[GROUP];
    const elias_fano *offsets = &r->key_offsets;
    bool vary = r->stored_vary && !r->key_bounds;
    for (u32 i = 0; r->key_bounds && i < size; i++)
        if (out[i] >= 0)
            __builtin_prefetch(r->key_bounds + out[i]);
    for (u32 i = 0; vary && i < size; i++)
        if (out[i] >= 0) {
            __builtin_prefetch(&offsets->short_samples[(u64)out[i] / EF_SHORT]);
            __builtin_prefetch(&offsets->lower[(u64)out[i] * offsets->lower_bits >> 6]);
        }
    for (u32 i = 0; vary && i < size; i++) {
        u64 near = out[i] >= 0 ? elias_fano_near(offsets, (u64)out[i]) : NOWHERE;
        if (near < offsets->upper_words)
            __builtin_prefetch(offsets->upper + near);
    }
    for (u32 i = 0; i < size; i++)
        if (out[i] >= 0) {
            if (!(stored[i] = stored_key(r, (u64)out[i], &lengths[i])))
                return STATUS_CORRUPT;
            __builtin_prefetch(stored[i]);
        }
    for (u32 i = 0; i < size; i++)
        if (out[i] >= 0 && (lengths[i] != key_lengths[i] || memcmp(stored[i], keys[i], key_lengths[i])))
            out[i] = ABSENT;
    return STATUS_OK;
}

/* Groups of at most GROUP hashes: every stage is done for all of them, so that its cache misses overlap. Keys whose bucket is empty
 * have their bit in *empty set. */

static bool rice_group(const function *r, const hash128 *h, u32 size, int64_t *out, u64 *empty)
{
    bucket_place places[GROUP];
    for (u32 i = 0; i < size; i++) {
        if (!find_bucket(r, mulhi64(h[i].hi, r->buckets), &places[i]))
            return false;
        __builtin_prefetch(r->trees.bits + (places[i].start >> 6));
    }
    for (u32 i = 0; i < size; i++) {
        out[i] = (int64_t)index_in(r, &places[i], h[i].lo);
        *empty |= (u64)!places[i].size << i;
    }
    return true;
}

/* With `filter`, ABSENT for keys whose fingerprints differ; without, some index below `keys` for every key. */
static int index_group(const function *r, const hash128 *h, u32 size, bool filter, int64_t *out)
{
    u64 empty = 0;
    if (!(r->method == METHOD_CHAINED ? chain_group(r, h, size, out, &empty) : rice_group(r, h, size, out, &empty)))
        return STATUS_CORRUPT;
    if (!filter)
        return STATUS_OK;
    for (u32 i = 0; r->fingerprint_bits && i < size; i++)
        __builtin_prefetch(r->fingerprints + (u64)out[i] * r->fingerprint_bits / 8);
    for (u32 i = 0; i < size; i++)
        if (empty >> i & 1 || !matches(r, (u64)out[i], h[i].hi))
            out[i] = ABSENT;
    return STATUS_OK;
}

static int64_t look_up_index(const mphf_reader *r, const u8 *key, u64 length) { return find_key(&r->function, key, length, false); }

static int64_t look_up_find(const mphf_reader *r, const u8 *key, u64 length) { return find_key(&r->function, key, length, true); }

static int look_up_batch(const mphf_reader *r, const key_batch *keys, bool filter, int64_t *out)
{
    hash128 h[GROUP];
    const u8 *group[GROUP];
    u64 lengths[GROUP];
    bool confirm = filter && r->function.stored;
    for (u64 begin = 0; begin < keys->count; begin += GROUP) {
        u32 size = (u32)(keys->count - begin < GROUP ? keys->count - begin : GROUP);
        for (u32 i = 0; i < size; i++) {
            u64 length;
            const u8 *key = key_at(keys, begin + i, &length);
            h[i] = xxh3_128(key, length, r->function.seed);
            if (confirm) {
                group[i] = key;
                lengths[i] = length;
            }
        }
        if (index_group(&r->function, h, size, filter, out + begin) != STATUS_OK)
            return STATUS_CORRUPT;
        if (confirm && confirm_group(&r->function, group, lengths, size, out + begin) != STATUS_OK)
            return STATUS_CORRUPT;
    }
    return STATUS_OK;
}

/* Ready hashes, for tools/bench.py. Two loops: chosen inside one, the compiler makes every look-up wait for the one before. */

static u64 bench_independent(const mphf_reader *r, const u64 *hi, const u64 *lo, u64 count)
{
    u64 sum = 0;
    bool empty;
    for (u64 i = 0; i < count; i++)
        sum += (u64)index_of_hash(&r->function, (hash128){hi[i], lo[i]}, &empty);
    return sum;
}

static u64 bench_dependent(const mphf_reader *r, const u64 *hi, const u64 *lo, u64 count)
{
    u64 sum = 0;
    bool empty;
    for (u64 i = 0; i < count; i++) /* the lowest bit changes no bucket */
        sum += (u64)index_of_hash(&r->function, (hash128){hi[i] ^ (sum & 1), lo[i]}, &empty);
    return sum;
}

static u64 bench_single(const mphf_reader *r, const u64 *hi, const u64 *lo, u64 count, bool dependent)
{
    return dependent ? bench_dependent(r, hi, lo, count) : bench_independent(r, hi, lo, count);
}

static int bench_batch(const mphf_reader *r, const u64 *hi, const u64 *lo, u64 count, int64_t *out)
{
    hash128 h[GROUP];
    for (u64 begin = 0; begin < count; begin += GROUP) {
        u32 size = (u32)(count - begin < GROUP ? count - begin : GROUP);
        for (u32 i = 0; i < size; i++)
            h[i] = (hash128){hi[begin + i], lo[begin + i]};
        if (index_group(&r->function, h, size, false, out + begin) != STATUS_OK)
            return STATUS_CORRUPT;
    }
    return STATUS_OK;
}

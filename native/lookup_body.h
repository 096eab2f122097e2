/* From a key to its index, once for every instruction set (hardware popcount and bit deposit are worth a factor of three here):
 *
 *     hash -> bucket -> directory -> splitting tree -> index -> fingerprint -> stored key
 *
 * single, or in groups of keys that go through each stage together so that its cache misses overlap. */
#include "chain_lookup.h"
#include "methods/brute.h"
#include "methods/rotation.h"
#include "reader.h"

typedef struct {
    u64 first, start; /* keys before the bucket; its first bit */
    u32 size;
} bucket_place;

/* Everything that comes from the file is checked here, so that `locate` may trust its arguments. */
static bool find_bucket(const mphf_reader *r, u64 bucket, bucket_place *p)
{
    u64 size;
    if (!directory_bucket(&r->directory, bucket, &p->first, &size, &p->start))
        return false;
    if (size > r->tables->largest || p->first > r->keys || size > r->keys - p->first ||
        p->start > r->bit_count || r->trees.nodes[size].fixed > r->bit_count - p->start)
        return false;
    p->size = (u32)size;
    return true;
}

static u64 index_in(const mphf_reader *r, const bucket_place *p, u64 lo)
{
    u32 before = p->size == 0                    ? 0
                 : r->method == METHOD_ROTATION ? rotation_locate(&r->trees, lo, p->size, p->start)
                                                : brute_locate(&r->trees, lo, p->size, p->start);
    return index_behind(r, p->first, before);
}

static u32 fingerprint_at(const mphf_reader *r, u64 index)
{
    if (r->fingerprint_bits == 8)
        return r->fingerprints[index];
    u64 at = index * r->fingerprint_bits;
    return (u32)(load64(r->fingerprints + at / 8) >> (at & 7) & ((1ull << r->fingerprint_bits) - 1));
}

static bool matches(const mphf_reader *r, u64 index, u64 hi)
{
    return !r->fingerprint_bits || fingerprint_at(r, index) == (hi & ((1ull << r->fingerprint_bits) - 1));
}

/* Where the key at an index lies, if keys are stored. NULL: the file contradicts itself. */
static const u8 *stored_key(const mphf_reader *r, u64 index, u64 *length)
{
    u64 begin = index * r->stored_width, end = begin + r->stored_width;
    if (r->key_bounds) {
        begin = r->key_bounds[index];
        end = r->key_bounds[index + 1];
    } else if (r->stored_vary && !elias_fano_span(&r->key_offsets, index, r->stored_length, &begin, &end))
        return NULL;
    *length = end - begin;
    return r->stored + begin;
}

/* `index`, or ABSENT if another key is stored there. */
static int64_t confirmed(const mphf_reader *r, int64_t index, const u8 *key, u64 length)
{
    u64 own;
    const u8 *stored = stored_key(r, (u64)index, &own);
    if (!stored)
        return STATUS_CORRUPT;
    return own == length && !memcmp(stored, key, length) ? index : ABSENT;
}

/* The same for a group, in stages: samples, offsets, keys. */
static int confirm_group(const mphf_reader *r, const u8 *const *keys, const u64 *key_lengths, u32 size, int64_t *out)
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

/* The index of some key of the set if this one is absent; STATUS_CORRUPT. keys > 0. *empty: so is its bucket. */
static inline int64_t index_of_hash(const mphf_reader *r, hash128 h, bool *empty)
{
    u64 bucket = mulhi64(h.hi, r->buckets);
    if (r->method == METHOD_CHAINED) {
        chain_place p;
        if (!chain_find(r, bucket, h.lo, &p))
            return STATUS_CORRUPT;
        *empty = !p.size;
        return (int64_t)index_behind(r, p.first, chain_before(r, &p));
    }
    bucket_place p;
    if (!find_bucket(r, bucket, &p))
        return STATUS_CORRUPT;
    *empty = !p.size;
    return (int64_t)index_in(r, &p, h.lo);
}

/* Groups of at most GROUP hashes: every stage is done for all of them, so that its cache misses overlap. Keys whose bucket is empty
 * have their bit in *empty set. */

static bool rice_group(const mphf_reader *r, const hash128 *h, u32 size, int64_t *out, u64 *empty)
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
static int index_group(const mphf_reader *r, const hash128 *h, u32 size, bool filter, int64_t *out)
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

static int64_t look_up_index(const mphf_reader *r, const u8 *key, u64 length)
{
    bool empty;
    return index_of_hash(r, xxh3_128(key, length, r->seed), &empty);
}

static int64_t look_up_find(const mphf_reader *r, const u8 *key, u64 length)
{
    hash128 h = xxh3_128(key, length, r->seed);
    bool empty = false;
    int64_t index = index_of_hash(r, h, &empty);
    if (index < 0)
        return index;
    if (empty || !matches(r, (u64)index, h.hi))
        return ABSENT;
    return r->stored ? confirmed(r, index, key, length) : index;
}

static int look_up_batch(const mphf_reader *r, const key_batch *keys, bool filter, int64_t *out)
{
    hash128 h[GROUP];
    const u8 *group[GROUP];
    u64 lengths[GROUP];
    bool confirm = filter && r->stored;
    for (u64 begin = 0; begin < keys->count; begin += GROUP) {
        u32 size = (u32)(keys->count - begin < GROUP ? keys->count - begin : GROUP);
        for (u32 i = 0; i < size; i++) {
            u64 length;
            const u8 *key = key_at(keys, begin + i, &length);
            h[i] = xxh3_128(key, length, r->seed);
            if (confirm) {
                group[i] = key;
                lengths[i] = length;
            }
        }
        if (index_group(r, h, size, filter, out + begin) != STATUS_OK)
            return STATUS_CORRUPT;
        if (confirm && confirm_group(r, group, lengths, size, out + begin) != STATUS_OK)
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
        sum += (u64)index_of_hash(r, (hash128){hi[i], lo[i]}, &empty);
    return sum;
}

static u64 bench_dependent(const mphf_reader *r, const u64 *hi, const u64 *lo, u64 count)
{
    u64 sum = 0;
    bool empty;
    for (u64 i = 0; i < count; i++) /* the lowest bit changes no bucket */
        sum += (u64)index_of_hash(r, (hash128){hi[i] ^ (sum & 1), lo[i]}, &empty);
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
        if (index_group(r, h, size, false, out + begin) != STATUS_OK)
            return STATUS_CORRUPT;
    }
    return STATUS_OK;
}

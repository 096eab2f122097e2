/* From a key to its index, and to where its value lies. */
#include <stdlib.h>

#include "directory.h"
#include "keys.h"
#include "methods/brute.h"
#include "methods/rotation.h"

#define GROUP 32 /* keys of a batch in flight */

struct mphf_reader {
    u64 keys, seed, buckets;
    u8 method;
    u32 fingerprint_bits;
    trees trees;
    directory directory;
    elias_fano offsets;
    u64 blob_length;
    const u8 *fingerprints;
    mphf_tables *tables;
};

typedef struct {
    u64 first, start; /* keys before the bucket; its first bit */
    u32 size;
} bucket_place;

static bool sound(mphf_reader *r, const u8 *trees, u64 trees_length, const u8 *directory, u64 directory_length,
                  u64 fingerprints_length)
{
    if (trees_length % 8 || trees_length < 16 || (r->buckets == 0) != (r->keys == 0))
        return false;
    r->trees.bits = (const u64 *)trees + 1;
    r->trees.bit_count = (trees_length - 16) * 8;
    if (r->fingerprint_bits > 32 || r->keys > UINT64_MAX / 64 ||
        (r->fingerprint_bits && fingerprints_length != (r->keys * r->fingerprint_bits + 7) / 8 + 8))
        return false;
    return directory_open(&r->directory, directory, directory_length, r->buckets);
}

mphf_reader *mphf_reader_new(const mphf_parameters *p, uint64_t keys, uint64_t seed, uint64_t buckets, uint32_t largest,
                             const uint8_t *trees, uint64_t trees_length, const uint8_t *directory,
                             uint64_t directory_length, const uint8_t *fingerprints, uint64_t fingerprints_length,
                             uint32_t fingerprint_bits, int *status)
{
    *status = STATUS_CORRUPT;
    if (!mphf_parameters_valid(p) || largest > LARGEST_BUCKET || largest > keys)
        return NULL;
    *status = STATUS_NO_MEMORY;
    mphf_reader *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->keys = keys;
    r->seed = seed;
    r->buckets = buckets;
    r->method = p->method;
    r->fingerprint_bits = fingerprint_bits;
    r->fingerprints = fingerprints;
    r->tables = mphf_tables_new(p, largest);
    if (r->tables) {
        r->trees.nodes = r->tables->nodes;
        r->trees.leaf = p->leaf;
        *status = sound(r, trees, trees_length, directory, directory_length, fingerprints_length) ? STATUS_OK
                                                                                                  : STATUS_CORRUPT;
    }
    if (*status == STATUS_OK)
        return r;
    mphf_reader_free(r);
    return NULL;
}

int mphf_reader_offsets(mphf_reader *r, const uint8_t *offsets, uint64_t length, uint64_t blob_length)
{
    r->blob_length = blob_length;
    return elias_fano_open(&r->offsets, offsets, length, r->keys + 1, blob_length) ? STATUS_OK : STATUS_CORRUPT;
}

void mphf_reader_free(mphf_reader *r)
{
    if (!r)
        return;
    mphf_tables_free(r->tables);
    free(r);
}

/* Everything that comes from the file is checked here, so that `locate` may trust its arguments. */
static bool find_bucket(const mphf_reader *r, u64 bucket, bucket_place *p)
{
    u64 size;
    if (!directory_bucket(&r->directory, bucket, &p->first, &size, &p->start))
        return false;
    if (size > r->tables->largest || p->first > r->keys || size > r->keys - p->first ||
        p->start > r->trees.bit_count || r->trees.nodes[size].fixed > r->trees.bit_count - p->start)
        return false;
    p->size = (u32)size;
    return true;
}

/* An empty bucket's keys are all absent; any index below `keys` will do for them. */
static u64 index_in(const mphf_reader *r, const bucket_place *p, u64 lo)
{
    if (p->size == 0)
        return p->first < r->keys ? p->first : r->keys - 1;
    u32 place = r->method == METHOD_ROTATION ? rotation_locate(&r->trees, lo, p->size, p->start)
                                             : brute_locate(&r->trees, lo, p->size, p->start);
    return p->first + place;
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

int64_t mphf_index(const mphf_reader *r, const uint8_t *key, uint64_t length)
{
    hash128 h = xxh3_128(key, length, r->seed);
    bucket_place p;
    if (!find_bucket(r, mulhi64(h.hi, r->buckets), &p))
        return STATUS_CORRUPT;
    return (int64_t)index_in(r, &p, h.lo);
}

int64_t mphf_find(const mphf_reader *r, const uint8_t *key, uint64_t length)
{
    if (!r->keys)
        return ABSENT;
    hash128 h = xxh3_128(key, length, r->seed);
    bucket_place p;
    if (!find_bucket(r, mulhi64(h.hi, r->buckets), &p))
        return STATUS_CORRUPT;
    u64 index = index_in(r, &p, h.lo);
    return p.size && matches(r, index, h.hi) ? (int64_t)index : ABSENT;
}

/* A batch goes through the stages group by group, so that the cache misses of a stage overlap. */
static int batch(const mphf_reader *r, const key_batch *keys, bool filter, int64_t *out)
{
    hash128 h[GROUP];
    bucket_place places[GROUP];
    for (u64 begin = 0; begin < keys->count; begin += GROUP) {
        u32 size = (u32)(keys->count - begin < GROUP ? keys->count - begin : GROUP);
        for (u32 i = 0; i < size; i++)
            h[i] = key_hash(keys, begin + i, r->seed);
        for (u32 i = 0; i < size; i++) {
            if (!find_bucket(r, mulhi64(h[i].hi, r->buckets), &places[i]))
                return STATUS_CORRUPT;
            __builtin_prefetch(r->trees.bits + (places[i].start >> 6));
        }
        for (u32 i = 0; i < size; i++) {
            u64 index = index_in(r, &places[i], h[i].lo);
            out[begin + i] = (int64_t)index;
            if (filter && r->fingerprint_bits)
                __builtin_prefetch(r->fingerprints + index * r->fingerprint_bits / 8);
        }
        for (u32 i = 0; filter && i < size; i++)
            if (!places[i].size || !matches(r, (u64)out[begin + i], h[i].hi))
                out[begin + i] = ABSENT;
    }
    return STATUS_OK;
}

int mphf_index_batch(const mphf_reader *r, const key_batch *keys, int64_t *out) { return batch(r, keys, false, out); }

int mphf_find_batch(const mphf_reader *r, const key_batch *keys, int64_t *out)
{
    if (r->keys)
        return batch(r, keys, true, out);
    for (u64 i = 0; i < keys->count; i++)
        out[i] = ABSENT;
    return STATUS_OK;
}

value_span mphf_span(const mphf_reader *r, uint64_t index)
{
    u64 begin, end;
    if (!elias_fano_pair(&r->offsets, index, &begin, &end) || begin > end || end > r->blob_length)
        return (value_span){STATUS_CORRUPT, 0};
    return (value_span){(int64_t)begin, (int64_t)end};
}

int mphf_span_batch(const mphf_reader *r, uint64_t count, const int64_t *indices, int64_t *begin, int64_t *end)
{
    for (u64 i = 0; i < count; i++) {
        value_span span = indices[i] < 0 ? (value_span){0, 0} : mphf_span(r, (u64)indices[i]);
        if (span.begin < 0)
            return STATUS_CORRUPT;
        begin[i] = span.begin;
        end[i] = span.end;
    }
    return STATUS_OK;
}

int mphf_bucket(const mphf_reader *r, uint64_t bucket, uint64_t *first, uint64_t *size, uint64_t *start)
{
    bucket_place p;
    if (bucket >= r->buckets || !find_bucket(r, bucket, &p))
        return STATUS_CORRUPT;
    *first = p.first;
    *size = p.size;
    *start = p.start;
    return STATUS_OK;
}

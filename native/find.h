/* From a key to its index, one key at a time:
 *
 *     hash -> bucket -> directory -> splitting tree -> index -> fingerprint -> stored key
 *
 * Part of the common subset of C, CUDA C++ and OpenCL C. Whoever includes it has `line_sum` (see plain_line_sum) and the constants of
 * native.cdef.h. */
#ifndef MPHF_FIND_H
#define MPHF_FIND_H

#include "function.h"
#include "keys.h"
#include "methods/brute.h"
#include "methods/rotation.h"

/* Index of a key: keys of the buckets before its own, and of its bucket before it. An empty bucket's keys are all absent; any index
 * below `keys` will do for them. */
FN u64 index_behind(const function *r, u64 first, u32 before)
{
    u64 index = first + before;
    return index < r->keys ? index : r->keys - 1; /* beyond: an empty bucket behind the last key */
}

/* --- chained --- */

/* A key's walk before its first step; `first`: keys in the buckets before its own. */
typedef struct {
    chain_walk walk;
    u64 bucket, first;
    u32 size; /* of the bucket */
} chain_place;

/* Everything that comes from the file is checked here; after that, a walk stays within the bits of the bucket. */
FN bool chain_find(const function *r, u64 bucket, u64 lo, chain_place *p)
{
    const chain_directory *d = &r->lines;
    u64 line = mulhi64(bucket, d->inverse), size;
    u32 i = (u32)(bucket - line * d->per_line);
    GLOBAL const u8 *at = d->lines + line * LINE_BYTES;
    p->bucket = bucket;
    p->first = (load64(at + LINE_BYTES - 8) >> 16) + i * d->smallest;
    if (d->entry_bytes == 1) {
        p->first += line_sum(at, i);
        size = at[i];
    } else if (d->entry_bytes == 2) {
        u32 ends = load32(at + 2 * i);
        p->first += ends & 0xFFFF;
        size = (ends >> 16) - (u64)(ends & 0xFFFF);
    } else {
        u64 ends = load64(at + 4 * i);
        p->first += ends & 0xFFFFFFFF;
        size = (ends >> 32) - (ends & 0xFFFFFFFF);
    }
    size += d->smallest;
    u64 start = chain_directory_start(d->slope, d->offset, p->first, bucket);
    if (size > r->largest || p->first > r->keys || size > r->keys - p->first || start > r->bit_count ||
        (size > 1) * (r->root_bits + r->nodes[size].fixed / BIT) > r->bit_count - start)
        return false;
    p->size = (u32)size;
    p->walk.lo = lo;
    p->walk.start = start;
    p->walk.at = r->root_bits * BIT;
    p->walk.m = (u32)size;
    p->walk.before = 0;
    return true;
}

/* The salt in the side table, if the root's field says to look there; else 0. The bucket has more than one key. */
FN u32 chain_side_salt(const function *r, const chain_place *p)
{
    u64 at = p->walk.start;
    u32 all = (1u << r->root_bits) - 1, field = load64(r->chains.bits + 8 + (at >> 3)) >> (at & 7) & all;
    return UNLIKELY(field == all) ? (u32)chain_directory_salt(&r->lines, p->bucket) : 0;
}

/* Keys of the bucket before the key. */
FN u32 chain_before(const function *r, const chain_place *p)
{
    return p->size < 2 ? 0 : chain_locate(&r->chains, r->leaf, p->walk, chain_side_salt(r, p));
}

/* --- brute, rotation --- */

typedef struct {
    u64 first, start; /* keys before the bucket; its first bit */
    u32 size;
} bucket_place;

/* Everything that comes from the file is checked here, so that `locate` may trust its arguments. */
FN bool find_bucket(const function *r, u64 bucket, bucket_place *p)
{
    u64 size;
    if (!directory_bucket(&r->directory, bucket, &p->first, &size, &p->start))
        return false;
    if (size > r->largest || p->first > r->keys || size > r->keys - p->first || p->start > r->bit_count ||
        r->nodes[size].fixed > r->bit_count - p->start)
        return false;
    p->size = (u32)size;
    return true;
}

FN u64 index_in(const function *r, const bucket_place *p, u64 lo)
{
    u32 before = p->size == 0                    ? 0
                 : r->method == METHOD_ROTATION ? rotation_locate(&r->trees, lo, p->size, p->start)
                                                : brute_locate(&r->trees, lo, p->size, p->start);
    return index_behind(r, p->first, before);
}

/* --- all methods --- */

FN bool matches(const function *r, u64 index, u64 hi)
{
    u32 w = r->fingerprint_bits;
    if (w == 8)
        return r->fingerprints[index] == (u8)hi;
    u64 at = index * w;
    return !w || ((load64(r->fingerprints + at / 8) >> (at & 7) ^ hi) & (((u64)1 << w) - 1)) == 0;
}

/* Where the key at an index lies, if keys are stored. 0: the file contradicts itself. */
FN GLOBAL const u8 *stored_key(const function *r, u64 index, u64 *length)
{
    u64 begin = index * r->stored_width, end = begin + r->stored_width;
    if (r->key_bounds) {
        begin = r->key_bounds[index];
        end = r->key_bounds[index + 1];
    } else if (r->stored_vary && !elias_fano_span(&r->key_offsets, index, r->stored_length, &begin, &end)) {
        return 0;
    }
    *length = end - begin;
    return r->stored + begin;
}

/* `index`, or ABSENT if another key is stored there. */
FN i64 confirmed(const function *r, i64 index, GLOBAL const u8 *key, u64 length)
{
    u64 own;
    GLOBAL const u8 *stored = stored_key(r, (u64)index, &own);
    if (!stored)
        return STATUS_CORRUPT;
    return own == length && same_bytes(stored, key, length) ? index : ABSENT;
}

/* The index of some key of the set if this one is absent; STATUS_CORRUPT. keys > 0. *empty: so is its bucket. */
FN i64 index_of_hash(const function *r, hash128 h, bool *empty)
{
    u64 bucket = mulhi64(h.hi, r->buckets);
    if (r->method == METHOD_CHAINED) {
        chain_place p;
        if (!chain_find(r, bucket, h.lo, &p))
            return STATUS_CORRUPT;
        *empty = !p.size;
        return (i64)index_behind(r, p.first, chain_before(r, &p));
    }
    bucket_place p;
    if (!find_bucket(r, bucket, &p))
        return STATUS_CORRUPT;
    *empty = !p.size;
    return (i64)index_in(r, &p, h.lo);
}

/* The key's index; ABSENT or, without `filter`, some index of a key of the set if this one is absent; STATUS_CORRUPT. keys > 0. */
FN i64 find_key(const function *r, GLOBAL const u8 *key, u64 length, bool filter)
{
    hash128 h = xxh3_128(key, length, r->seed);
    bool empty = false;
    i64 index = index_of_hash(r, h, &empty);
    if (!filter || index < 0)
        return index;
    if (empty || !matches(r, (u64)index, h.hi))
        return ABSENT;
    return r->stored ? confirmed(r, index, key, length) : index;
}

#endif

/* A file's reader: what a look-up needs at hand. */
#ifndef MPHF_READER_H
#define MPHF_READER_H

#include "chain_directory.h"
#include "directory.h"
#include "keys.h"
#include "rice.h"

struct mphf_reader {
    const instruction_set *set;
    u64 keys, seed, buckets;
    u8 method;
    u32 fingerprint_bits;
    trees trees;         /* of `brute` and `rotation` */
    directory directory;
    chains chains;       /* of `chained` */
    chain_directory lines;
    u64 bit_count;
    u32 root_bits, leaf;
    u64 distinct;        /* values that are stored; 0: all of them, and no ordinals */
    u32 ordinal_bits;
    const u8 *ordinals;
    elias_fano offsets, blocks;
    u64 blob_length, packed_length;
    const u8 *stored;    /* the keys; NULL: not kept */
    u64 stored_length, stored_width;
    bool stored_vary;    /* in width: they lie between key_offsets */
    elias_fano key_offsets;
    const u32 *key_bounds; /* the same spelled out, for scans; NULL: they are not */
    const u8 *fingerprints;
    mphf_tables *tables;
};

/* Index of a key: keys of the buckets before its own, and of its bucket before it. An empty bucket's keys are all absent; any index
 * below `keys` will do for them. */
static inline u64 index_behind(const mphf_reader *r, u64 first, u32 before)
{
    u64 index = first + before;
    return index < r->keys ? index : r->keys - 1; /* beyond: an empty bucket behind the last key */
}

#endif

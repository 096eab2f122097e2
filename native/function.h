/* A function as it lies in a file, with fingerprints and stored keys: what a look-up reads. Part of the common subset of C, CUDA C++ and OpenCL C. */
#ifndef MPHF_FUNCTION_H
#define MPHF_FUNCTION_H

#include "chain.h"
#include "chain_directory.h"
#include "directory.h"
#include "rice.h"

typedef struct {
    u64 keys, seed, buckets;
    u32 method, root_bits, leaf;
    u32 largest;             /* keys in the largest bucket: nodes and links go so far */
    GLOBAL const node *nodes;
    trees trees;             /* of `brute` and `rotation` */
    directory directory;
    chains chains;           /* of `chained` */
    chain_directory lines;
    u64 bit_count;
    u32 fingerprint_bits;
    GLOBAL const u8 *fingerprints;
    GLOBAL const u8 *stored; /* the keys; 0: not kept */
    u64 stored_length, stored_width;
    bool stored_vary;        /* in width: they lie between key_offsets */
    elias_fano key_offsets;
    GLOBAL const u32 *key_bounds; /* the same spelled out, for scans; 0: they are not */
} function;

/* Points into the two sections, 8-byte aligned; false if they are not what they should be. All that comes before `trees`, and the
 * tables of `chains`, must be set. */
FN bool function_open(function *f, bool chained, GLOBAL const u8 *trees, u64 trees_length, GLOBAL const u8 *directory,
                      u64 directory_length)
{
    if (trees_length % 8 || trees_length < 16 || (f->buckets == 0) != (f->keys == 0))
        return false;
    f->bit_count = (trees_length - 16) * 8;
    f->trees.bits = (GLOBAL const u64 *)trees + 1;
    f->trees.bit_count = f->bit_count;
    f->trees.nodes = f->nodes;
    f->trees.leaf = f->leaf;
    f->chains.bits = trees;
    if (chained)
        return chain_directory_open(&f->lines, directory, directory_length, f->buckets, f->keys, trees_length / 8 - 2);
    return directory_open(&f->directory, directory, directory_length, f->buckets, f->keys, trees_length / 8 - 2);
}

/* The same for stored keys: all of one width, or `vary` and between offsets. `stored` is not 0, nor has it less than `length` bytes. */
FN bool function_open_keys(function *f, GLOBAL const u8 *stored, u64 length, u64 width, bool vary, GLOBAL const u8 *offsets,
                           u64 offsets_length)
{
    f->stored = stored;
    f->stored_length = length;
    f->stored_width = width;
    f->stored_vary = vary;
    f->key_bounds = 0;
    if (vary)
        return elias_fano_open(&f->key_offsets, offsets, offsets_length, f->keys + 1, length);
    return !mulhi64(f->keys, width) && f->keys * width == length;
}

#endif

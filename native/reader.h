/* A file's reader: what a look-up needs at hand. */
#ifndef MPHF_READER_H
#define MPHF_READER_H

#include "directory.h"
#include "keys.h"
#include "rice.h"

struct mphf_reader {
    const instruction_set *set;
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

#endif

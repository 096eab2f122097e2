/* A file's reader: what a look-up needs at hand. */
#ifndef MPHF_READER_H
#define MPHF_READER_H

#include "function.h"
#include "keys.h"

struct mphf_reader {
    function function;
    const instruction_set *set;
    u64 distinct;        /* values that are stored; 0: all of them, and no ordinals */
    u32 ordinal_bits;
    const u8 *ordinals;
    elias_fano offsets, blocks;
    u64 blob_length, packed_length;
    mphf_tables *tables;
};

#endif

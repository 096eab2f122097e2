/* What a method's build needs at hand: the partition's growing bit string and scratch memory for one bucket. */
#ifndef MPHF_BUILDER_H
#define MPHF_BUILDER_H

#include "chain_scratch.h"

typedef struct builder {
    const mphf_tables *tables;
    const volatile int *cancel;
    u64 *bits; /* the partition's bit string, zero from bit_count on */
    u64 bit_count, capacity; /* in bits */
    /* scratch for the largest bucket */
    u32 *low, *high;   /* the halves of every key's word at a node */
    u64 *lo_parted;
    u32 *id_parted;
    u64 *numbers;      /* one per node, in preorder */
    u8 *taus;
    u32 count;         /* numbers found so far in this bucket */
    chain_scratch *chain; /* of chained seeds, which need nothing of the above */
    u64 bucket;           /* the one being built, counted from the partition's first */
    root_salt *salts;     /* root salts too large for their field */
    u32 salt_count;
} builder;

int builder_reserve(builder *b, u64 bits); /* room for so many more bits: STATUS_OK or STATUS_NO_MEMORY */

bool builder_note_salt(builder *b, u64 salt);        /* of b->bucket; false: no memory */

/* k <= 64 bits, room reserved, value < 2^k. */
static inline void builder_append(builder *b, u64 value, u32 k)
{
    u32 shift = (u32)b->bit_count & 63;
    u64 *w = b->bits + (b->bit_count >> 6);
    w[0] |= value << shift;
    w[1] |= value >> 1 >> (63 - shift);
    b->bit_count += k;
}

#endif

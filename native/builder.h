/* What a method's build needs at hand: the partition's growing bit string and scratch memory for one bucket. */
#ifndef MPHF_BUILDER_H
#define MPHF_BUILDER_H

#include "native.h"

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
} builder;

int builder_reserve(builder *b, u64 bits); /* room for so many more bits: STATUS_OK or STATUS_NO_MEMORY */

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

/* The splitting tree of a bucket (FORMAT.md §3): its shape per number of keys, and the hash of a node. */
#ifndef MPHF_TREE_H
#define MPHF_TREE_H

#ifndef FN
#include "words.h"
#endif

#define GAMMA ((u64)0x9E3779B97F4A7C15) /* the golden ratio's fraction in 0.64; parts the hashes of a tree's levels */
#define LARGEST_BUCKET 65536u       /* keys; a position is 16 random bits times m */

/* What the number of keys m decides about a node; a table of these, indexed by m, describes every tree. */
typedef struct {
    u32 unit;       /* keys in every part but the last; m in a leaf */
    u32 reciprocal; /* 2^20 / unit, rounded up: parts of more than two by multiplication */
    u32 fixed;      /* bits of the fixed parts of the whole subtree */
    u16 nodes;      /* nodes of at least 2 keys in the subtree, this one included */
    u8 fanout;      /* parts; 1 in a leaf */
    u8 tau;         /* fixed bits of the node's own number */
} node;

/* Finaliser of MurmurHash3 for 32 bits (Appleby), less its last step, which leaves the upper half alone: nothing else is
 * used. For scalars and vectors alike. */
#define MIX32(v)                                                                                                       \
    do {                                                                                                               \
        (v) ^= (v) >> 16;                                                                                              \
        (v) *= 0x85EBCA6Bu;                                                                                            \
        (v) ^= (v) >> 13;                                                                                              \
        (v) *= 0xC2B2AE35u;                                                                                            \
    } while (0)

/* Position of a key among m under y = lo + level + x. 1 <= m <= LARGEST_BUCKET. */
FN u32 position(u64 y, u32 m)
{
    u32 v = (u32)(y ^ (y >> 32));
    MIX32(v);
    return ((v >> 16) * m) >> 16;
}

/* The part that position q of a splitting falls into. */
FN u32 part_of(GLOBAL const node *v, u32 q)
{
    return v->fanout == 2 ? q >= v->unit : (q * v->reciprocal) >> 20;
}

#endif

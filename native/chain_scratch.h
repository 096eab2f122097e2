/* Memory for the search of chained seeds: made once per partition, for its largest bucket. */
#ifndef MPHF_CHAIN_SCRATCH_H
#define MPHF_CHAIN_SCRATCH_H

#include "native.h"

#define CHAIN_HELD 24u      /* solutions of a node held at a time; more are searched again from the last one on */
#define CHAIN_HALF 4096u    /* values that half of a splitting's number takes */
#define CHAIN_LANES 32u     /* lanes of 16 bits in the longest vector */

/* A node on the search's path: m of the bucket's keys from `first` on, `width` bits of its string behind `since` others. */
typedef struct {
    u32 m, first, level, since, width, salt;
    u32 count, next; /* solutions held; the next one to try */
    bool more;       /* there may be solutions beyond the last one held */
    u32 solutions[CHAIN_HELD];
} chain_node;

typedef struct chain_scratch {
    u32 stride;       /* keys per level */
    u64 *keys;        /* lo of the keys at every level of the tree, in the order of their parts so far */
    u16 *ids;         /* their numbers in the bucket */
    u16 *bits, *rest; /* halves of their words under the salt of the node that was last visited there */
    chain_node *nodes;
    u16 *runs;        /* one node's hash bits, class after class, `stride` each */
    u16 *parts;
    u16 *order;       /* ids in the order of the keys' positions */
    u16 sums[4][CHAIN_SEEDS + CHAIN_LANES];
    u16 low[CHAIN_HALF + CHAIN_LANES], high[CHAIN_HALF + CHAIN_LANES];
    u16 turned[CHAIN_SEEDS * CHAIN_LONGEST_LEAF + CHAIN_LANES]; /* every mask of class 1 once per rotation */
    u16 seeds[2][CHAIN_SEEDS + CHAIN_LANES];
    u8 closing[256 * 16]; /* for every set of eight lanes the byte shuffle that closes them up */
    u64 seen[65536 / 64]; /* a set of 16-bit sums, empty between uses */
} chain_scratch;

chain_scratch *chain_scratch_new(const mphf_tables *t, u32 largest); /* NULL: no memory */
void chain_scratch_free(chain_scratch *s);

#endif

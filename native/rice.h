/* Bucket bit strings of `brute` and `rotation`: Golomb-Rice codes, fixed and unary parts apart (FORMAT.md §4). The two methods
 * differ in full leaves only: there `rotate` is set for the latter. */
#ifndef MPHF_RICE_H
#define MPHF_RICE_H

#include "bits.h"
#include "tree.h"

/* The trees of a file: `bits` starts behind the leading zero word and has a word beyond its last. */
typedef struct trees {
    GLOBAL const u64 *bits;
    u64 bit_count;
    GLOBAL const node *nodes;
    u32 leaf;
} trees;

/* Position among the m keys of the bucket whose bit string starts at `at`; some position below m if the bits make no sense.
 * m >= 1; at + fixed bits of the bucket <= bit_count. */
FN u32 rice_locate(const trees *t, u64 lo, u32 m, u64 at, u32 rotate)
{
    u64 unary = at + t->nodes[m].fixed, word_count = (t->bit_count + 63) >> 6, y = lo;
    u32 before = 0;
    while (m > 1) {
        GLOBAL const node *v = &t->nodes[m];
        u64 one = select_from(t->bits, word_count, unary, 0);
        if (one == NOWHERE)
            return before;
        u64 x = (one - unary) << v->tau | bits_at(t->bits, at, v->tau);
        at += v->tau;
        unary = one + 1;
        y += GAMMA;
        if (v->fanout == 1) {
            if (!rotate || m != t->leaf)
                return before + position(y + x, m);
            u32 r = (u32)(x % m), q = position(y + x - r, m) + (lo & 1 ? r : 0);
            return before + (q < m ? q : q - m);
        }
        u32 part = part_of(v, position(y + x, m));
        GLOBAL const node *sibling = &t->nodes[v->unit];
        u64 skipped = (u64)part * sibling->nodes;
        if (skipped) {
            unary = select_from(t->bits, word_count, unary, skipped - 1);
            if (unary == NOWHERE)
                return before;
            unary++;
        }
        at += (u64)part * sibling->fixed;
        before += part * v->unit;
        m = part + 1u < v->fanout ? v->unit : m - part * v->unit;
    }
    return before;
}

#endif

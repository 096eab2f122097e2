/* Chained seeds, as look-up and search share them (FORMAT.md §4): what the number of keys decides about a node, and a key's
 * way through one. Part of the common subset of C, CUDA C++ and OpenCL C. */
#ifndef MPHF_CHAIN_H
#define MPHF_CHAIN_H

#include "tree.h"

#define CHAIN_WIDEST 24u      /* bits of a number: with 32 bits of salt and 7 of alignment it fits one 64-bit load */
#define CHAIN_WIDEST_FANOUT 8u
#define CHAIN_SEEDS 1024u     /* values of a sub-seed */
#define CHAIN_KINDS 5u
#define CHAIN_MOST_ROOM 512u  /* epsilon, in 1/256 bit */
#define BIT 256u              /* positions count in 1/256 bit */

/* How a node's number is cut into sub-seeds: chain_tables.c has the rule of each kind. */
enum { SMALL_LEAF, LEAF_OF_EIGHT, LEAF_OF_SIXTEEN, HALVES, PARTS };

typedef struct {
    u32 below; /* T(unit): bits of the subtree of any part but the last, in 1/256 */
    u16 scale; /* part = 16 hash bits * scale >> 27; 0 where there are two parts: then */
    u16 limit; /* the hash bits above it are in the second part; 65 535 elsewhere */
    u16 unit;  /* keys in any part but the last; 1 in a leaf, whose parts are its positions: so vectors need not tell them apart */
    u16 rest;  /* keys in the last part */
    u16 width; /* W: bits of the node's own number, in 1/256 */
    u8 last;   /* number of the last part */
    u8 kind;   /* lower half; log2 of the number of classes in the upper half */
} chain_link;

/* What a class takes of a number, packed in 16 bits: 5 of shift, 4 of width, 3 of rotation at the number's top. */
#define FIELD(shift, width, turn) ((shift) | (width) << 5 | (turn) << 9)
#define FIELD_SHIFT(f) ((f) & 31)
#define FIELD_WIDTH(f) ((f) >> 5 & 15)
#define FIELD_TURN(f) ((f) >> 9 & 7)
#define FIELD_SEED(f, number) ((number) >> FIELD_SHIFT(f) & ((1u << FIELD_WIDTH(f)) - 1)) /* of a number */
#define FIELD_TURNED(f, number, width) ((number) >> ((width) - FIELD_TURN(f)) & ((1u << FIELD_TURN(f)) - 1)) /* of `width` bits */
#define FIELD_AT(kind, width, class) ((((kind) & 15) * (CHAIN_WIDEST + 1) + (width)) * 4 + (class))

/* Every table is readable for two bytes beyond its end: gathers take four at a time. */
typedef struct {
    GLOBAL const u8 *bits; /* 8 bytes before the first bucket's bits; 8 more behind the last's */
    GLOBAL const chain_link *links;
    GLOBAL const u16 *fields;     /* of every kind, width and class: FIELD_AT */
    GLOBAL const u16 *multiplier; /* CHAIN_SEEDS odd numbers */
} chains;

#define SALT_LOW 0x7F4A7C15u /* what a salt is multiplied with before it meets the halves of a key's word */
#define SALT_HIGH 0x9E3779B9u

/* The word of a key under a node's salt: upper half hashed on, class from the upper bits of the lower half. For scalars and
 * vectors of 32 bits alike. */
#define CHAIN_MIX(low, high) (((low) | 1) * (high))
#define CHAIN_FINISH(z) (((z) ^ (z) >> 15) * 0x85EBCA6Bu)

FN u32 chain_word(u64 lo, u32 salt)
{
    u32 z = CHAIN_MIX((u32)lo ^ salt * SALT_LOW, (u32)(lo >> 32) ^ salt * SALT_HIGH);
    return CHAIN_FINISH(z);
}

FN u32 chain_class(u32 word, u32 classes_log2) { return (word & 0xFFFF) >> (16 - classes_log2); }

/* The part of a splitting that 16 hash bits fall into. */
FN u32 chain_part(GLOBAL const chain_link *v, u32 hash) { return (hash * v->scale >> 27) + (hash > v->limit); }

/* The position in a leaf of m keys, turned. */
FN u32 chain_position(u32 m, u32 hash, u32 turn)
{
    u32 position = (hash * m >> 16) + turn;
    return position - (position < m ? 0 : m);
}

/* A key on its way: the next node has m keys, `before` keys of the bucket to its left, and its bits begin `at` 1/256 bits behind
 * `start`, the bucket's first bit. */
typedef struct {
    u64 lo, start;
    u32 at, m, before;
} chain_walk;

/* What a node's number says of a key: its 16 hash bits, and the rotation of its class. */
typedef struct {
    u32 hash, turn;
} chain_answer;

/* m > 1. `root`: the salt to take in place of the preceding bits, or 0 for those. (Loading the multipliers of all classes while the word is
 * still on its way was tried: look-ups that wait for each other got no quicker, independent ones took a third longer.) */
FN chain_answer chain_ask(const chains *t, const chain_walk *k, u32 root)
{
    GLOBAL const chain_link *v = &t->links[k->m];
    u32 since = k->at / BIT, width = (k->at + v->width) / BIT - since;
    u64 begin = k->start + since;
    u64 window = load64(t->bits + ((begin + 32) >> 3)) >> (begin & 7); /* 32 bits before the number, and the number */
    u32 salt = (u32)window >> (since < 32 ? 32 - since : 0);           /* since > 0: there is a root salt */
    u32 number = (u32)(window >> 32) & ((1u << width) - 1);
    u64 fields = load64((GLOBAL const u8 *)(t->fields + FIELD_AT(v->kind, width, 0))); /* of all classes: before the key's is known */
    u32 word = chain_word(k->lo, root ? root : salt);
    u32 field = (u32)(fields >> 16 * chain_class(word, v->kind >> 4));
    chain_answer answer = {(word >> 16) * t->multiplier[FIELD_SEED(field, number)] & 0xFFFF, FIELD_TURNED(field, number, width)};
    return answer;
}

/* From a splitting to the key's part. */
FN void chain_descend(const chains *t, chain_walk *k, u32 root)
{
    GLOBAL const chain_link *v = &t->links[k->m];
    u32 part = chain_part(v, chain_ask(t, k, root).hash);
    k->before += part * v->unit;
    k->at += v->width + part * v->below;
    k->m = v->unit + (part == v->last) * ((u32)v->rest - v->unit); /* no branch: it would be wrong every few keys */
}

/* Position of a key in its bucket of m >= 1 keys. */
FN u32 chain_locate(const chains *t, u32 leaf, chain_walk k, u32 root)
{
    while (k.m > leaf) {
        chain_descend(t, &k, root);
        root = 0;
    }
    if (k.m < 2)
        return k.before;
    chain_answer answer = chain_ask(t, &k, root);
    return k.before + chain_position(k.m, answer.hash, answer.turn);
}

#endif

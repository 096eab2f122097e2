/* Tables of chained seeds (FORMAT.md §4): a link per number of keys, how numbers are cut, the multipliers. */
#include <stdlib.h>

#include "native.h"

static const struct {
    u8 classes_log2, most_turn;
} rules[CHAIN_KINDS] = {[SMALL_LEAF] = {0, 0},
                        [LEAF_OF_EIGHT] = {1, 3},
                        [LEAF_OF_SIXTEEN] = {1, 4},
                        [HALVES] = {1, 0},
                        [PARTS] = {2, 0}};

#define UNTURNED 9u /* bits of a leaf's number that go to its two sub-seeds before any to the rotation: one full vector of them
                       (AVX2). Turning more costs solutions that come in crowds, less costs evaluations; 6 to 11 take the same time */

static u8 kind_of(u32 m, u32 fanout)
{
    if (fanout == 1)
        return m < 8 ? SMALL_LEAF : m < 16 ? LEAF_OF_EIGHT : LEAF_OF_SIXTEEN;
    return fanout == 2 ? HALVES : PARTS;
}

/* The rotation takes the number's top bits; the rest is cut in halves, the lower half the longer one, with four classes each
 * half once more. */
static void cut(u32 kind, u32 width, u16 *fields)
{
    u32 turn = width > UNTURNED ? width - UNTURNED : 0, classes = 1u << rules[kind].classes_log2, at = 0;
    turn = turn < rules[kind].most_turn ? turn : rules[kind].most_turn;
    u32 rest = width - turn;
    for (u32 c = 0; c < classes; c++) {
        u32 half = classes == 1 ? rest : c < (classes + 1) / 2 ? (rest + 1) / 2 : rest / 2;
        u32 bits = classes < 4 ? half : c & 1 ? half / 2 : (half + 1) / 2;
        bits = bits < 15 ? bits : 15; /* of kinds that no node of such a width has */
        fields[c] = (u16)FIELD(at, bits, c == 1 ? turn : 0);
        at += bits;
    }
}

bool chain_tables_fill(mphf_tables *t)
{
    t->links = calloc(t->largest + 1, sizeof *t->links);
    t->fields = calloc(FIELD_AT(CHAIN_KINDS, 0, 1), sizeof *t->fields);
    t->multiplier = calloc(CHAIN_SEEDS + 1, sizeof *t->multiplier);
    if (!t->links || !t->fields || !t->multiplier)
        return false;
    for (u32 kind = 0; kind < CHAIN_KINDS; kind++)
        for (u32 width = 0; width <= CHAIN_WIDEST; width++)
            cut(kind, width, &t->fields[FIELD_AT(kind, width, 0)]);
    for (u32 seed = 0; seed < CHAIN_SEEDS; seed++) {
        u32 v = (seed + 1) * 0x9E3779B9u;
        MIX32(v);
        t->multiplier[seed] = (u16)(v >> 16 | 1);
    }
    for (u32 m = 0; m < 2 && m <= t->largest; m++) /* no node: a walk stays where it is */
        t->links[m] = (chain_link){.limit = 65535, .rest = (u16)m};
    return true;
}

bool chain_link_fill(mphf_tables *t, u32 m, u64 l)
{
    node *v = &t->nodes[m];
    chain_link *link = &t->links[m];
    bool leaf = v->fanout == 1;
    u32 width = (u32)((l + (1u << 24) - 1) >> 24) + (leaf ? t->parameters.leaf_room : t->parameters.split_room);
    if (width > CHAIN_WIDEST * BIT)
        return false;
    u32 unit = leaf ? 1 : v->unit, last = leaf ? m - 1 : v->fanout - 1u, rest = m - last * unit;
    bool halves = last == 1;
    u8 kind = kind_of(m, v->fanout);
    *link = (chain_link){
        .below = t->nodes[unit].fixed,
        .width = (u16)width,
        .unit = (u16)unit,
        .rest = (u16)rest,
        .scale = halves ? 0 : (u16)((2048 * m + unit - 1) / unit),
        .limit = halves ? (u16)((65536ull * unit + m - 1) / m - 1) : 65535,
        .last = (u8)last,
        .kind = (u8)(kind | rules[kind].classes_log2 << 4),
    };
    v->fixed = width + last * t->nodes[unit].fixed + t->nodes[rest].fixed;
    return true;
}

void mphf_chain_demands(const mphf_tables *t, uint32_t count, chain_demand *out)
{
    chain_demand most = {0, 1, 1, 0};
    for (u32 m = 0; m < count; m++) {
        const chain_link *link = &t->links[m];
        u32 kind = link->kind & 15, width = (link->width + BIT - 1) / BIT, bits[4];
        for (u32 c = 0; c < 4; c++)
            bits[c] = m < 2 || c >> (link->kind >> 4) ? 0 : FIELD_WIDTH(t->fields[FIELD_AT(kind, width, c)]);
        u32 *seeds = kind < HALVES ? &most.leaf_seeds : &most.split_seeds, low = kind < HALVES ? 0 : bits[0] + (bits[2] ? bits[1] : 0);
        for (u32 c = 0; c < 4; c++)
            *seeds = 1u << bits[c] > *seeds ? 1u << bits[c] : *seeds;
        most.low_bits = low > most.low_bits ? low : most.low_bits;
        most.nodes = t->nodes[m].nodes > most.nodes ? t->nodes[m].nodes : most.nodes;
        out[m] = most;
    }
}

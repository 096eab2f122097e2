/* The table of node shapes for one parameter set (FORMAT.md §3): no floating point, so that every machine agrees. */
#include <stdlib.h>

#include "native.h"

typedef unsigned __int128 u128;

#define INVERSE_PHI 0x9E3779B97F4A7C15ull /* 1/phi in 0.64 */
#define LOG2_HIGHEST 48                   /* of 1/p; rarer solutions are refused */

/* lg x in 32.32 for x >= 1, one bit a squaring. */
static u64 lg(u32 x)
{
    u32 e = 31u - (u32)__builtin_clz(x);
    u64 y = (u64)x << (63 - e), result = e;
    for (int i = 0; i < 32; i++) {
        u128 square = ((u128)y * y) >> 63;
        u64 bit = (u64)(square >> 64);
        y = (u64)(square >> bit);
        result = result << 1 | bit;
    }
    return result;
}

static u64 square_root(u128 x)
{
    u64 root = 0;
    for (u64 bit = 1ull << 63; bit; bit >>= 1)
        if ((u128)(root | bit) * (root | bit) <= x)
            root |= bit;
    return root;
}

/* roots[j] = 2^(-2^-j) in 0.64, j = 1 ... 32 */
static void fill_roots(u64 roots[33])
{
    roots[0] = 1ull << 63;
    for (int j = 1; j <= 32; j++)
        roots[j] = square_root((u128)roots[j - 1] << 64);
}

/* 2^-l in 0.64 for l in 32.32, l < 64. */
static u64 exp2_negative(u64 l, const u64 roots[33])
{
    u64 p = ~0ull;
    for (int j = 1; j <= 32; j++)
        if (l >> (32 - j) & 1)
            p = mulhi64(p, roots[j]);
    return p >> (l >> 32);
}

/* tau(p): how often 1 - p must be squared to fall to 1/phi. */
static u8 golomb_rice_parameter(u64 p)
{
    u64 q = -p;
    u8 tau = 0;
    for (; q > INVERSE_PHI; tau++)
        q = mulhi64(q, q);
    return tau;
}

static void shape(const mphf_parameters *p, u32 m, node *v)
{
    u32 unit1 = (u32)p->fanout1 * p->leaf, unit2 = p->fanout2 * unit1;
    if (m <= p->leaf)
        v->unit = m;
    else if (m <= unit1)
        v->unit = p->leaf;
    else if (m <= unit2)
        v->unit = unit1;
    else if (p->method == METHOD_CHAINED)
        for (v->unit = unit2, unit2 *= p->fanout3; m > unit2; v->unit = unit2, unit2 *= 2)
            ;
    else
        v->unit = (m + unit2) / (2 * unit2) * unit2;
    v->fanout = m <= p->leaf ? 1 : m <= unit2 || p->method == METHOD_CHAINED ? (u8)((m + v->unit - 1) / v->unit) : 2;
    v->reciprocal = m ? (1u << 20) / v->unit + 1 : 0;
}

void mphf_default_fanouts(mphf_parameters *p)
{
    u32 first = (35u * p->leaf + 50 + 99) / 100, second = p->leaf < 7 ? 2 : (21u * p->leaf + 90 + 99) / 100;
    p->fanout1 = (u8)(first < 2 ? 2 : first);
    p->fanout2 = (u8)second;
}

int mphf_parameters_valid(const mphf_parameters *p)
{
    bool chained = p->method == METHOD_CHAINED;
    u32 leaf = chained ? CHAIN_LONGEST_LEAF : MPHF_LONGEST_LEAF, fanout = chained ? CHAIN_WIDEST_FANOUT : MPHF_WIDEST_FANOUT;
    return p->method >= 1 && p->method <= METHODS && p->leaf >= 2 && p->leaf <= leaf && p->fanout1 >= 2 &&
           p->fanout1 <= fanout && p->fanout2 >= 2 && p->fanout2 <= fanout && (chained || p->fanout1 * p->leaf <= 254) &&
           (chained ? p->fanout3 >= 2 && p->fanout3 <= fanout && p->root_bits >= 1 && p->root_bits <= 16 &&
                          p->leaf_room <= CHAIN_MOST_ROOM && p->split_room <= CHAIN_MOST_ROOM
                    : !p->fanout3 && !p->root_bits && !p->leaf_room && !p->split_room);
}

/* Fills nodes[0 ... largest] and budget; false if a node's probability is out of bounds. */
static bool fill(mphf_tables *t, u64 *g)
{
    u64 roots[33], factorial = 0; /* lg m! */
    fill_roots(roots);
    g[0] = 0;
    for (u32 m = 0; m <= t->largest; m++) {
        node *v = &t->nodes[m];
        shape(&t->parameters, m, v);
        if (m < 2)
            continue;
        u64 log = lg(m);
        factorial += log;
        g[m] = m * log - factorial;
        u64 l = g[m];
        u32 last = m - (v->fanout - 1u) * v->unit;
        const node *child = &t->nodes[v->unit], *rest = &t->nodes[last];
        bool leaf = v->fanout == 1;
        if (!leaf) {
            u64 parts = (v->fanout - 1u) * g[v->unit] + g[last];
            l = l > parts ? l - parts : 0;
        }
        v->nodes = (u16)(1 + (leaf ? 0 : (v->fanout - 1u) * child->nodes + rest->nodes));
        if (t->parameters.method == METHOD_CHAINED) {
            if (!chain_link_fill(t, m, l))
                return false;
            t->budget[m] = 1000 + 64ull * v->nodes;
            continue;
        }
        if (l >> 32 > LOG2_HIGHEST)
            return false;
        u64 p = exp2_negative(l, roots);
        v->tau = golomb_rice_parameter(p);
        v->fixed = v->tau + (leaf ? 0 : (v->fanout - 1u) * child->fixed + rest->fixed);
        t->budget[m] = 1000 + 64 * (~0ull / p);
    }
    return true;
}

mphf_tables *mphf_tables_new(const mphf_parameters *p, uint32_t largest)
{
    if (!mphf_parameters_valid(p) || largest > LARGEST_BUCKET)
        return NULL;
    mphf_tables *t = calloc(1, sizeof *t);
    u64 *g = calloc(largest + 1, sizeof *g);
    if (t) {
        t->parameters = *p;
        t->largest = largest;
        t->nodes = calloc(largest + 1, sizeof *t->nodes);
        t->budget = calloc(largest + 1, sizeof *t->budget);
    }
    if (!t || !g || !t->nodes || !t->budget ||
        (p->method == METHOD_CHAINED && !chain_tables_fill(t)) || !fill(t, g)) {
        mphf_tables_free(t);
        t = NULL;
    }
    free(g);
    return t;
}

void mphf_tables_free(mphf_tables *t)
{
    if (!t)
        return;
    free(t->nodes);
    free(t->budget);
    free(t->links);
    free(t->fields);
    free(t->multiplier);
    free(t);
}

void mphf_tables_bytes(const mphf_tables *t, table_bytes *out)
{
    u64 chained = t->parameters.method == METHOD_CHAINED;
    *out = (table_bytes){
        (const u8 *)t->nodes,
        (const u8 *)t->links,
        (const u8 *)t->fields,
        (const u8 *)t->multiplier,
        (t->largest + 1ull) * sizeof *t->nodes,
        chained * (t->largest + 1) * sizeof *t->links,
        chained * FIELD_AT(CHAIN_KINDS, 0, 1) * sizeof *t->fields,
        chained * (CHAIN_SEEDS + 1) * sizeof *t->multiplier,
    };
}

void mphf_rice_shapes(const mphf_tables *t, uint32_t count, rice_shape *out)
{
    for (u32 m = 0; m < count; m++) {
        const node *v = &t->nodes[m];
        out[m] = (rice_shape){t->budget[m], v->unit, v->fixed, v->nodes, v->fanout, v->tau};
    }
}

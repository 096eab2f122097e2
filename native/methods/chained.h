/* Method 3, `chained`: chained seeds (FORMAT.md §4). Numbers of a fixed number of bits, each solution depending on the numbers before
 * it (Consensus; Lehmann, Sanders, Walzer, Ziegler 2025), found by joining sub-seeds (bipartite ShockHash; Lehmann, Sanders, Walzer
 * 2023) in RecSplit's tree. */
#ifndef MPHF_CHAINED_H
#define MPHF_CHAINED_H

#include "../chain.h"

#ifdef LANES
#include "../chain_search.h"

#define VISITS_BETWEEN_LOOKS 1024u /* at *cancel */

/* Lists the nodes of a subtree in preorder; `at`: 1/256 bit from the bucket's start on. */
static chain_node *list_nodes(const mphf_tables *t, chain_node *n, u32 m, u32 first, u32 level, u64 at)
{
    if (m < 2)
        return n;
    const chain_link *link = &t->links[m];
    bool leaf = t->nodes[m].fanout == 1;
    n->m = m;
    n->first = first;
    n->level = level;
    n->since = (u32)(at / BIT);
    n->width = (u32)((at + link->width) / BIT) - n->since;
    n++;
    at += link->width;
    for (u32 i = 0; !leaf && i <= link->last; i++) {
        n = list_nodes(t, n, i < link->last ? link->unit : link->rest, first + i * link->unit, level + 1, at);
        at += link->below;
    }
    return n;
}

static chain_search search_of(const builder *b, const chain_node *n, u32 from)
{
    chain_scratch *c = b->chain;
    u64 at = n->level * c->stride + n->first;
    return (chain_search){c, b->tables, c->bits + at, c->rest + at, n->m, n->width, from, &b->tables->links[n->m]};
}

static void visit(const builder *b, chain_node *n, u32 from)
{
    chain_scratch *c = b->chain;
    u64 at = n->level * c->stride + n->first;
    words_of(c->keys + at, n->m, n->salt, c->bits + at, c->rest + at);
    chain_search s = search_of(b, n, from);
    solve(&s, n);
}

/* Copies a splitting's keys to the next level, in the order of their parts under a number. */
static void apply(const builder *b, const chain_node *n, u32 number)
{
    chain_scratch *c = b->chain;
    chain_search s = search_of(b, n, 0);
    u64 at = n->level * c->stride + n->first;
    u32 next[CHAIN_WIDEST_FANOUT];
    parts_of(&s, number, c->parts);
    u64 *keys = c->keys + at + c->stride;
    u16 *ids = c->ids + at + c->stride;
    if (s.link->last < 4) { /* the places of up to four parts in one register: no store to wait for */
        u64 places = s.link->unit * 0x0003000200010000ull;
        for (u32 i = 0; i < n->m; i++) {
            u32 by = 16u * c->parts[i], to = places >> by & 0xFFFF;
            keys[to] = c->keys[at + i];
            ids[to] = c->ids[at + i];
            places += 1ull << by;
        }
        return;
    }
    for (u32 i = 0; i <= s.link->last; i++)
        next[i] = i * s.link->unit;
    for (u32 i = 0; i < n->m; i++) {
        u32 to = next[c->parts[i]]++;
        keys[to] = c->keys[at + i];
        ids[to] = c->ids[at + i];
    }
}

/* Depth first along the preorder: the smallest numbers such that every one solves its node. */
static int search_bucket(const builder *b, u32 m, u32 count, u32 *root)
{
    const mphf_tables *t = b->tables;
    chain_node *nodes = b->chain->nodes;
    u64 visits = 0;
    u32 escape = (1u << t->parameters.root_bits) - 1;
    for (*root = 0;; ++*root) {
        nodes[0].salt = *root;
        u32 i = 0;
        visit(b, &nodes[0], 0);
        for (;;) {
            chain_node *n = &nodes[i];
            if (n->next == n->count && n->more) {
                visit(b, n, n->solutions[n->count - 1] + 1);
                continue;
            }
            if (n->next == n->count) {
                if (i-- == 0)
                    break;
                continue;
            }
            u32 number = n->solutions[n->next++];
            if (++i == count)
                return STATUS_OK;
            if (t->nodes[n->m].fanout > 1)
                apply(b, n, number);
            u64 history = i == 1 && *root > escape ? escape : n->salt; /* only what is stored in the bit string */
            u32 known = n->since < 32 ? n->since : 32, all = known + n->width;
            nodes[i].salt = (u32)((history | (u64)number << known) >> (all > 32 ? all - 32 : 0));
            if (++visits > t->budget[m])
                return STATUS_EQUAL_KEYS;
            if (visits % VISITS_BETWEEN_LOOKS == 0 && *b->cancel)
                return STATUS_CANCELLED;
            visit(b, &nodes[i], 0);
        }
        if (++visits > t->budget[m])
            return STATUS_EQUAL_KEYS;
    }
}

/* Puts ids into the order of their keys' positions. */
static const chain_node *place_ids(const builder *b, const chain_node *n, u32 m, u32 first, u32 level)
{
    chain_scratch *c = b->chain;
    const u16 *ids = c->ids + level * c->stride + first;
    if (m == 1)
        c->order[first] = ids[0];
    if (m < 2)
        return n;
    const chain_link *link = &b->tables->links[m];
    chain_search s = search_of(b, n, 0);
    u32 number = n->solutions[n->next - 1];
    if (b->tables->nodes[m].fanout == 1) {
        for (u32 i = 0; i < m; i++) {
            u32 field = field_of(&s, chain_class(s.rest[i], link->kind >> 4));
            u32 hash = (u32)s.bits[i] * b->tables->multiplier[FIELD_SEED(field, number)] & 0xFFFF;
            c->order[first + chain_position(m, hash, FIELD_TURNED(field, number, n->width))] = ids[i];
        }
        return n + 1;
    }
    n++;
    for (u32 i = 0; i <= link->last; i++)
        n = place_ids(b, n, i < link->last ? link->unit : link->rest, first + i * link->unit, level + 1);
    return n;
}

/* Appends the bit string of a bucket of m >= 2 words and orders id by position. */
static int chained_build_bucket(builder *b, u64 *lo, u32 *id, u32 m)
{
    chain_scratch *c = b->chain;
    u32 root, r = b->tables->parameters.root_bits, count = (u32)(list_nodes(b->tables, c->nodes, m, 0, 0, r * BIT) - c->nodes);
    memcpy(c->keys, lo, m * sizeof *lo);
    for (u32 i = 0; i < m; i++)
        c->ids[i] = (u16)i;
    int status = search_bucket(b, m, count, &root);
    if (status == STATUS_OK)
        status = builder_reserve(b, b->tables->nodes[m].fixed / BIT + r + 1);
    if (status != STATUS_OK)
        return status;
    u32 escape = (1u << r) - 1;
    if (root >= escape && !builder_note_salt(b, root))
        return STATUS_NO_MEMORY;
    builder_append(b, root < escape ? root : escape, r);
    for (u32 i = 0; i < count; i++)
        builder_append(b, c->nodes[i].solutions[c->nodes[i].next - 1], c->nodes[i].width);
    place_ids(b, c->nodes, m, 0, 0);
    u32 *ordered = (u32 *)c->keys; /* the keys are done with */
    for (u32 i = 0; i < m; i++)
        ordered[i] = id[c->order[i]];
    memcpy(id, ordered, m * sizeof *id);
    return STATUS_OK;
}
#endif

#endif

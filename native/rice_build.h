/* Builds the bucket bit strings of `brute` and `rotation`; included by the methods inside an instruction set's file. */
#ifndef MPHF_RICE_BUILD_H
#define MPHF_RICE_BUILD_H

#include "bits.h"
#include "search_body.h"

#define LOOK_FIRST (1u << 20) /* of budget: where a search takes longer than a look for equal words, look first */

static bool has_equal(const u64 *words, u32 m)
{
    for (u32 i = 1; i < m; i++) {
        u32 equal = 0;
        for (u32 j = 0; j < i; j++)
            equal |= words[j] == words[i];
        if (equal)
            return true;
    }
    return false;
}

/* Moves the keys with a set flag behind the others, in order; returns how many have none. */
static u32 part_by_parity(builder *b, u64 *lo, u32 *id, u32 m)
{
    u32 even = 0, odd = 0;
    for (u32 i = 0; i < m; i++)
        even += !(lo[i] & 1);
    u32 first = even;
    for (u32 i = 0, e = 0; i < m; i++) {
        u32 to = lo[i] & 1 ? first + odd++ : e++;
        b->lo_parted[to] = lo[i];
        b->id_parted[to] = id[i];
    }
    memcpy(lo, b->lo_parted, m * sizeof *lo);
    memcpy(id, b->id_parted, m * sizeof *id);
    return first;
}

/* Orders the keys of a solved node by part, or by position in a leaf. next[i]: where the next key of part i goes. */
static void part(builder *b, u64 *lo, u32 *id, u32 m, const node *v, u64 y, u32 rotation)
{
    u32 next[MPHF_LONGEST_LEAF + 1];
    bool leaf = v->fanout == 1;
    for (u32 i = 0; i < (leaf ? m : v->fanout); i++)
        next[i] = leaf ? i : i * v->unit;
    for (u32 i = 0; i < m; i++) {
        u32 q = position(lo[i] + y, m);
        if (leaf) {
            q += lo[i] & 1 ? rotation : 0;
            q -= q < m ? 0 : m;
        } else {
            q = part_of(v, q);
        }
        u32 to = next[q]++;
        b->lo_parted[to] = lo[i];
        b->id_parted[to] = id[i];
    }
    memcpy(lo, b->lo_parted, m * sizeof *lo);
    memcpy(id, b->id_parted, m * sizeof *id);
}

/* Finds the numbers of a subtree in preorder and orders its keys by position. `level`: what the hash of its root adds. */
static int rice_subtree(builder *b, u64 *lo, u32 *id, u32 m, u64 level, bool rotate)
{
    if (m < 2)
        return STATUS_OK;
    const node *v = &b->tables->nodes[m];
    bool leaf = v->fanout == 1, rotated = rotate && leaf && m == b->tables->parameters.leaf;
    u64 budget = b->tables->budget[m];
    if (budget > LOOK_FIRST && has_equal(lo, m))
        return STATUS_EQUAL_KEYS;
    search s = {lo, m, m, v, level, b->low, b->high};
    if (rotated)
        s.unrotated = part_by_parity(b, lo, id, m);
    u64 x = smallest_number(&s, rotated ? ROTATED_LEAF : leaf ? LEAF : SPLITTING, budget, b->cancel);
    if (x == NONE)
        return *b->cancel ? STATUS_CANCELLED : STATUS_EQUAL_KEYS;
    b->taus[b->count] = v->tau;
    b->numbers[b->count++] = x;
    u32 rotation = rotated ? (u32)(x % m) : 0;
    part(b, lo, id, m, v, level + x - rotation, rotation);
    for (u32 i = 0; !leaf && i < v->fanout; i++) {
        u32 at = i * v->unit, size = i + 1u < v->fanout ? v->unit : m - at;
        int status = rice_subtree(b, lo + at, id + at, size, level + GAMMA, rotate);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Appends the bit string of a bucket of m distinct words and orders lo and id by position. */
static int rice_build_bucket(builder *b, u64 *lo, u32 *id, u32 m, bool rotate)
{
    b->count = 0;
    int status = rice_subtree(b, lo, id, m, GAMMA, rotate);
    if (status != STATUS_OK)
        return status;
    u64 bits = 0;
    for (u32 i = 0; i < b->count; i++)
        bits += b->taus[i] + (b->numbers[i] >> b->taus[i]) + 1;
    if (builder_reserve(b, bits) != STATUS_OK)
        return STATUS_NO_MEMORY;
    for (u32 i = 0; i < b->count; i++)
        builder_append(b, b->numbers[i] & ((1ull << b->taus[i]) - 1), b->taus[i]);
    for (u32 i = 0; i < b->count; i++) {
        b->bit_count += b->numbers[i] >> b->taus[i];
        builder_append(b, 1, 1);
    }
    return STATUS_OK;
}

#endif

/* Batches of look-ups in chained seeds. */
#ifndef MPHF_CHAIN_LOOKUP_H
#define MPHF_CHAIN_LOOKUP_H

#include "find.h"
#include "search_body.h"

#define GROUP 32 /* keys of a batch in flight, at most 64 */

/* --- batches: level by level through the trees, without a branch that depends on a key --- */

/* Buckets and lines of a group, fetched ahead. */
static inline void chain_fetch_lines(const function *r, const hash128 *h, u32 size, u64 *buckets)
{
    for (u32 i = 0; i < size; i++) {
        buckets[i] = mulhi64(h[i].hi, r->buckets);
        __builtin_prefetch(chain_directory_line(&r->lines, buckets[i]));
    }
}

static bool chain_group_plain(const function *r, const hash128 *h, u32 size, int64_t *out, u64 *empty)
{
    chain_place places[GROUP];
    u64 buckets[GROUP];
    chain_fetch_lines(r, h, size, buckets);
    for (u32 i = 0; i < size; i++) {
        if (!chain_find(r, buckets[i], h[i].lo, &places[i]))
            return false;
        __builtin_prefetch(r->chains.bits + places[i].walk.start / 8);
        *empty |= (u64)!places[i].size << i;
    }
    for (u32 i = 0; i < size; i++)
        out[i] = (int64_t)index_behind(r, places[i].first, chain_before(r, &places[i]));
    return true;
}

#ifdef GATHERS
/* The walks of a group, as arrays for vectors. A walk that has arrived stays where it is. */
typedef struct {
    u32 low[GROUP], high[GROUP]; /* halves of lo */
    u32 byte[GROUP], shift[GROUP]; /* where the bucket's bits start, from the section's fifth byte on */
    u32 at[GROUP], m[GROUP], before[GROUP];
    u64 first[GROUP], bucket[GROUP];
} chain_walks;

static inline void put(u32 *to, vec v) { memcpy(to, &v, sizeof v); }

static inline vec ones_below(vec bits) { return ~shift_left(broadcast(~0u), bits); }

/* chain_ask for LANES walks from `i` on; `width_last_kind` of their links. Returns the hash bits. */
static inline vec chain_ask_lanes(const function *r, const chain_walks *k, u32 i, vec at, vec width_last_kind, bool root, vec *turn)
{
    const chains *t = &r->chains;
    vec since = at >> 8, width = ((at + (width_last_kind & 0xFFFF)) >> 8) - since, kind = width_last_kind >> 24;
    vec bit = load(k->shift + i) + since, byte = load(k->byte + i) + (bit >> 3), shift = bit & 7;
    vec first = gather(t->bits + 4, byte), second = gather(t->bits + 8, byte);
    vec salt = (first >> shift | shift_left(second, 32 - shift)) >> ((32 - since) & (vec)(since < 32));
    vec number = second >> shift & ones_below(width);
    if (root) { /* salts that stand in the side table: of one bucket in thousands */
        vec all = broadcast((1u << r->root_bits) - 1);
        for (u32 lanes = lanes_set((vec)(salt == all) & (vec)(load(k->m + i) > 1)); lanes; lanes &= lanes - 1) {
            u32 lane = (u32)__builtin_ctz(lanes);
            u64 side = chain_directory_salt(&r->lines, k->bucket[i + lane]);
            salt[lane] = side ? (u32)side : salt[lane];
        }
    }
    vec word = CHAIN_MIX(load(k->low + i) ^ salt * SALT_LOW, load(k->high + i) ^ salt * SALT_HIGH);
    word = CHAIN_FINISH(word);
    vec class = (word & 0xFFFF) >> (16 - (kind >> 4));
    vec field = gather((const u8 *)t->fields, FIELD_AT(kind, width, class) << 1), bits = FIELD_TURN(field);
    vec seed = number >> FIELD_SHIFT(field) & ones_below(FIELD_WIDTH(field));
    *turn = number >> (width - bits) & ones_below(bits);
    return (word >> 16) * gather((const u8 *)t->multiplier, seed << 1) & 0xFFFF;
}

/* From node to child, in leaves to the position. */
static inline void chain_step_lanes(const function *r, chain_walks *k, u32 i, bool root)
{
    const u8 *links = (const u8 *)r->chains.links;
    vec at = load(k->at + i), link = load(k->m + i) << 4, turn;
    vec width_last_kind = gather(links + 12, link), unit_rest = gather(links + 8, link);
    vec scale_limit = gather(links + 4, link), below = gather(links, link);
    vec hash = chain_ask_lanes(r, k, i, at, width_last_kind, root, &turn);
    vec part = (hash * (scale_limit & 0xFFFF) >> 27) - (vec)((signed_vec)hash > (signed_vec)(scale_limit >> 16)) + turn;
    vec last = width_last_kind >> 16 & 0xFF, unit = unit_rest & 0xFFFF;
    part -= (last + 1) & (vec)((signed_vec)part > (signed_vec)last);
    put(k->before + i, load(k->before + i) + part * unit);
    put(k->at + i, at + (width_last_kind & 0xFFFF) + part * below);
    put(k->m + i, unit + (((unit_rest >> 16) - unit) & (vec)(part == last)));
}

/* The last step, where all walks have come to leaves or lone keys: five gathers instead of eight. */
static inline void chain_leaf_lanes(const function *r, chain_walks *k, u32 i)
{
    vec m = load(k->m + i), turn;
    vec hash = chain_ask_lanes(r, k, i, load(k->at + i), gather((const u8 *)r->chains.links + 12, m << 4), false, &turn);
    vec position = (hash * m >> 16) + turn;
    position -= m & ~(vec)((signed_vec)position < (signed_vec)m);
    put(k->before + i, load(k->before + i) + position);
}

static bool chain_group_lanes(const function *r, const hash128 *h, u32 size, int64_t *out, u64 *empty)
{
    chain_walks k;
    chain_fetch_lines(r, h, size, k.bucket);
    for (u32 i = 0; i < size; i++) {
        chain_place p;
        if (!chain_find(r, k.bucket[i], h[i].lo, &p))
            return false;
        __builtin_prefetch(r->chains.bits + p.walk.start / 8);
        k.low[i] = (u32)h[i].lo;
        k.high[i] = (u32)(h[i].lo >> 32);
        k.byte[i] = (u32)(p.walk.start >> 3);
        k.shift[i] = (u32)p.walk.start & 7;
        k.at[i] = p.walk.at;
        k.m[i] = p.size;
        k.before[i] = 0;
        k.first[i] = p.first;
        *empty |= (u64)!p.size << i;
    }
    for (u32 i = size; i % LANES; i++) { /* fill up the last vector with walks that have arrived */
        k.low[i] = k.high[i] = k.byte[i] = k.shift[i] = k.m[i] = k.before[i] = 0;
        k.at[i] = BIT;
    }
    for (u32 i = 0; i < size; i += LANES)
        chain_step_lanes(r, &k, i, true);
    for (u32 on = size; on;) { /* vectors with a splitting still to pass */
        on = 0;
        for (u32 i = 0; i < size; i += LANES) {
            if (!lanes_set((vec)((signed_vec)load(k.m + i) > (signed_vec)broadcast(r->leaf))))
                continue;
            chain_step_lanes(r, &k, i, false);
            on++;
        }
    }
    for (u32 i = 0; i < size; i += LANES)
        chain_leaf_lanes(r, &k, i);
    for (u32 i = 0; i < size; i++)
        out[i] = (int64_t)index_behind(r, k.first[i], k.before[i]);
    return true;
}

/* Gathers take signed offsets of 32 bits: that is enough for some 10^10 keys. */
static bool chain_group(const function *r, const hash128 *h, u32 size, int64_t *out, u64 *empty)
{
    return r->bit_count < 1ull << 33 ? chain_group_lanes(r, h, size, out, empty) : chain_group_plain(r, h, size, out, empty);
}
#else
static bool chain_group(const function *r, const hash128 *h, u32 size, int64_t *out, u64 *empty)
{
    return chain_group_plain(r, h, size, out, empty);
}
#endif

#endif

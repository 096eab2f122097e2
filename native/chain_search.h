/* All solutions of a node of chained seeds, in ascending order; once for every instruction set, as search_body.h.
 *
 *     words of all keys under the node's salt; hash bits sorted by class
 *     per class, for SHORTS sub-seeds at a time: what the class contributes under each
 *     join: tuples of sub-seeds whose contributions make up the whole
 *
 * 1. Sixteen bits of hash per key: a vector holds twice as many lanes as with 32, its multiplications are single operations, and
 *    two keys that agree in all 16 part under the next salt.
 * 2. A leaf's contribution is a mask of positions; a position's bit comes from one byte shuffle. A mask of class 1 counts for
 *    eight or sixteen sub-seeds, for its rotations are sub-seeds, too: with two classes of k sub-seeds each and 8 rotations,
 *    8 k^2 numbers cost 2 k evaluations (bipartite ShockHash without its graphs, rotation as in Bez 2022 §5.5).
 * 3. A splitting's contribution is the sum of one 16-bit constant per key, chosen by the key's part: a fingerprint of the counts
 *    that adds up over classes. Equal counts have equal sums; the few tuples that only seem right are counted. So two
 *    parts or eight cost the same. Of two parts, the sum is the count itself.
 * 4. With two classes the keys need not be sorted by class: the second sum is masked.
 *
 * Shim: vectors of SHORTS lanes of 16 bits, see isa/avx2.c. */
#include "builder.h"
#include "chain_scratch.h"

typedef struct {
    chain_scratch *scratch;
    const mphf_tables *tables;
    const u16 *bits, *rest; /* upper and lower halves of the words of the node's keys; readable up to a whole vector */
    u32 m, width, from; /* numbers below `from` do not count */
    const chain_link *link;
} chain_search;

static inline short_vec short_broadcast(u16 x) { return (short_vec){0} + x; }

static inline short_vec short_load(const u16 *from)
{
    short_vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline short_vec short_lane_numbers(void)
{
    static const u16 numbers[CHAIN_LANES] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                             16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    return short_load(numbers);
}

/* 2^v of every lane, v < 16. */
static inline short_vec power_of_two(short_vec v) { return pick(v, bit_table()); }

static inline void short_store(u16 *to, short_vec v) { memcpy(to, &v, sizeof v); }

/* The bits of `lanes` that belong to the first `count` lanes. */
static inline u64 first_lanes(u64 lanes, u32 count)
{
    return count >= SHORTS ? lanes : lanes & ((1ull << count * SHORT_STEP) - 1);
}

static inline u32 field_of(const chain_search *s, u32 class)
{
    return s->tables->fields[FIELD_AT(s->link->kind, s->width, class)];
}

static inline void report(chain_node *n, u32 number, u32 from)
{
    if (number < from)
        return;
    u32 i = n->count;
    if (i == CHAIN_HELD) {
        n->more = true;
        if (number > n->solutions[i - 1])
            return;
        i--;
    } else {
        n->count++;
    }
    for (; i && n->solutions[i - 1] > number; i--)
        n->solutions[i] = n->solutions[i - 1];
    n->solutions[i] = number;
}

static void words_of(const u64 *keys, u32 m, u32 salt, u16 *bits, u16 *rest)
{
    for (u32 i = 0; i < m; i++) {
        u32 word = chain_word(keys[i], salt);
        bits[i] = (u16)(word >> 16);
        rest[i] = (u16)word;
    }
}

/* Sorts the keys' hash bits by class; returns how many each class has, 16 bits a class. */
static inline u64 sort_by_class(const chain_search *s, u32 classes_log2)
{
    u16 *runs = s->scratch->runs;
    u32 counts[4] = {0, 0, 0, 0}, classes = 1u << classes_log2;
    for (u32 i = 0; i < s->m; i += SHORTS) {
        short_vec bits = short_load(s->bits + i), class = short_load(s->rest + i) >> (16 - classes_log2);
        for (u32 c = 0; c < classes; c++) {
            u64 lanes = first_lanes(shorts_set((short_vec)(class == (u16)c)), s->m - i);
            counts[c] += close_up(runs + c * s->scratch->stride + counts[c], bits, lanes, s->scratch->closing);
        }
    }
    return counts[0] | (u64)counts[1] << 16 | (u64)counts[2] << 32 | (u64)counts[3] << 48;
}

/* --- leaves --- */

static inline short_vec position_bits(u16 bits, short_vec multiplier, short_vec m, short_table table)
{
    return pick(high_product(short_broadcast(bits) * multiplier, m), table);
}

/* Masks and sub-seeds without a collision, closed up. */
typedef struct {
    u16 *masks, *seeds;
    u32 count;
} mask_list;

/* Adds those of SHORTS sub-seeds from `seed` on, of which there are `seeds`. */
static inline void keep(mask_list *list, short_vec all, short_vec sum, u32 seed, u32 seeds, const u8 *closing)
{
    u64 lanes = first_lanes(shorts_set((short_vec)(all == sum)), seeds - seed);
    close_up(list->seeds + list->count, short_lane_numbers() + (u16)seed, lanes, closing);
    list->count += close_up(list->masks + list->count, all, lanes, closing);
}

/* The masks of one class under its sub-seeds. */
static inline void class_masks(const chain_search *s, const u16 *bits, u32 keys, u32 seeds, mask_list *list)
{
    short_table table = bit_table();
    short_vec size = short_broadcast((u16)s->m);
    for (u32 seed = 0; seed < seeds; seed += SHORTS) {
        short_vec multiplier = short_load(s->tables->multiplier + seed), all = short_broadcast(0), sum = all;
        for (u32 i = 0; i < keys; i++) {
            short_vec bit = position_bits(bits[i], multiplier, size, table);
            all |= bit;
            sum += bit;
        }
        keep(list, all, sum, seed, seeds, s->scratch->closing);
    }
}

/* Of both classes at once: more operations, but loops of one length and no sorting. For few sub-seeds. */
static inline void both_masks(const chain_search *s, u32 seeds0, u32 seeds1, mask_list *list0, mask_list *list1)
{
    short_table table = bit_table();
    short_vec size = short_broadcast((u16)s->m);
    u16 odd[CHAIN_LONGEST_LEAF + CHAIN_LANES];
    for (u32 i = 0; i < s->m; i += SHORTS)
        short_store(odd + i, (short_vec)((signed_short_vec)short_load(s->rest + i) >> 15));
    for (u32 seed = 0; seed < seeds0; seed += SHORTS) {
        short_vec multiplier = short_load(s->tables->multiplier + seed), none = short_broadcast(0);
        short_vec all0 = none, sum0 = none, all1 = none, sum1 = none;
        for (u32 i = 0; i < s->m; i++) {
            short_vec bit = position_bits(s->bits[i], multiplier, size, table), bit1 = bit & odd[i], bit0 = bit ^ bit1;
            all0 |= bit0;
            sum0 += bit0;
            all1 |= bit1;
            sum1 += bit1;
        }
        keep(list0, all0, sum0, seed, seeds0, s->scratch->closing);
        if (seed < seeds1)
            keep(list1, all1, sum1, seed, seeds1, s->scratch->closing);
    }
}

static void small_leaf(const chain_search *s, chain_node *n)
{
    chain_scratch *c = s->scratch;
    mask_list list = {c->low, c->seeds[0], 0};
    class_masks(s, s->bits, s->m, 1u << s->width, &list);
    for (u32 i = 0; i < list.count; i++) /* m keys that do not collide fill the leaf */
        report(n, list.seeds[i], s->from);
}

/* Leaves from eight keys on. A mask turned by r is mask * 2^r, and what that moves beyond bit m - 1 comes in again below. */
static void large_leaf(const chain_search *s, chain_node *n)
{
    chain_scratch *c = s->scratch;
    u32 m = s->m, fields[2] = {field_of(s, 0), field_of(s, 1)}, turn_log2 = FIELD_TURN(fields[1]), turns = 1u << turn_log2;
    u32 seeds0 = 1u << FIELD_WIDTH(fields[0]), seeds1 = 1u << FIELD_WIDTH(fields[1]); /* not fewer of class 0 */
    u16 full = (u16)((1u << m) - 1);
    mask_list first = {c->low, c->seeds[0], 0}, second = {c->high, c->seeds[1], 0};
    if (seeds0 <= 2 * SHORTS) {
        both_masks(s, seeds0, seeds1, &first, &second);
    } else {
        u64 counts = sort_by_class(s, 1);
        class_masks(s, c->runs, counts & 0xFFFF, seeds0, &first);
        class_masks(s, c->runs + c->stride, counts >> 16 & 0xFFFF, seeds1, &second);
    }
    u32 copies = second.count * turns;
    short_vec up[2], down[2]; /* of turns 0 ... 15 */
    for (u32 i = 0; i < 2; i++) {
        short_vec turn = (short_lane_numbers() + (u16)(i * SHORTS)) & (u16)(turns - 1);
        up[i] = power_of_two(turn);
        down[i] = power_of_two(turn + (u16)(16 - m));
    }
    for (u32 i = 0; i < copies; i += SHORTS) {
        u32 k = i / SHORTS & (turns > SHORTS);
        short_vec mask = spread(second.masks + (i >> turn_log2), turn_log2);
        short_vec wanted = ((mask * up[k] | high_product(mask, down[k])) & full) ^ full;
        short_vec any = short_broadcast(0);
        for (u32 a = 0; a < first.count; a++)
            any |= (short_vec)(wanted == short_broadcast(first.masks[a]));
        if (!first_lanes(shorts_set(any), copies - i))
            continue;
        for (u32 a = 0; a < first.count; a++) {
            u64 hits = first_lanes(shorts_set((short_vec)(wanted == short_broadcast(first.masks[a]))), copies - i);
            for (; hits; hits &= hits - 1) {
                u32 turned = i + (u32)__builtin_ctzll(hits) / SHORT_STEP;
                report(n, first.seeds[a] | (u32)second.seeds[turned >> turn_log2] << FIELD_SHIFT(fields[1]) |
                              (turned & (turns - 1)) << (s->width - turn_log2), s->from);
            }
        }
    }
}

/* --- splittings --- */

/* The parts of a splitting's keys under a number, SHORTS keys at a time. Signed comparisons as in `halves`. */
static void parts_of(const chain_search *s, u32 number, u16 *parts)
{
    u32 classes_log2 = s->link->kind >> 4;
    u16 m[4];
    for (u32 class = 0; class < 4; class++) {
        u32 field = field_of(s, class >> (2 - classes_log2));
        m[class] = s->tables->multiplier[FIELD_SEED(field, number)];
    }
    signed_short_vec limit = (signed_short_vec)short_broadcast(s->link->limit ^ 0x8000);
    short_vec scale = short_broadcast(s->link->scale);
    for (u32 i = 0; i < s->m; i += SHORTS) {
        short_vec rest = short_load(s->rest + i);
        short_vec upper = (short_vec)((signed_short_vec)rest >> 15), lower = (short_vec)((signed_short_vec)(rest << 1) >> 15);
        short_vec first = m[0] ^ (lower & (u16)(m[0] ^ m[1])), second = m[2] ^ (lower & (u16)(m[2] ^ m[3]));
        short_vec hash = short_load(s->bits + i) * (first ^ (upper & (first ^ second)));
        if (s->link->last == 1)
            short_store(parts + i, 0 - (short_vec)((signed_short_vec)(hash ^ 0x8000) > limit));
        else
            short_store(parts + i, high_product(hash, scale) >> 11);
    }
}

static bool splits(const chain_search *s, u32 number)
{
    u16 *parts = s->scratch->parts;
    parts_of(s, number, parts);
    for (u32 i = s->m; i % SHORTS; i++)
        parts[i] = CHAIN_WIDEST_FANOUT; /* no part */
    for (u32 part = 0; part < s->link->last; part++) {
        short_vec counts = short_broadcast(0);
        for (u32 i = 0; i < s->m; i += SHORTS)
            counts -= (short_vec)(short_load(parts + i) == (u16)part);
        u32 count = 0;
        for (u32 lane = 0; lane < SHORTS; lane++)
            count += counts[lane];
        if (count != s->link->unit)
            return false;
    }
    return true;
}

/* Reports every pair with low[i] == high[j], as number j << low_bits | i. */
static void join(const chain_search *s, chain_node *n, u32 low_bits, u32 high_bits, bool certain)
{
    chain_scratch *c = s->scratch;
    u32 lows = 1u << low_bits, highs = 1u << high_bits;
    bool marked = low_bits + high_bits >= 12;
    for (u32 i = 0; marked && i < lows; i++)
        c->seen[c->low[i] >> 6] |= 1ull << (c->low[i] & 63);
    for (u32 j = 0; j < highs && !n->more; j++) {
        if (marked && !(c->seen[c->high[j] >> 6] >> (c->high[j] & 63) & 1))
            continue;
        short_vec wanted = short_broadcast(c->high[j]);
        for (u32 i = 0; i < lows; i += SHORTS)
            for (u64 hits = first_lanes(shorts_set((short_vec)(short_load(c->low + i) == wanted)), lows - i); hits; hits &= hits - 1) {
                u32 number = j << low_bits | (i + (u32)__builtin_ctzll(hits) / SHORT_STEP);
                if (number >= s->from && (certain || splits(s, number)))
                    report(n, number, s->from);
            }
    }
    for (u32 i = 0; marked && i < lows; i++)
        c->seen[c->low[i] >> 6] = 0;
}

/* Two parts: counts of the first part, of all keys and of those of class 1. A signed comparison will do: an odd multiplier leaves
 * the highest bit where it is. */
static void halves(const chain_search *s, chain_node *n)
{
    chain_scratch *c = s->scratch;
    u16 *bits = c->runs, *second = c->runs + c->stride;
    u32 fields[2] = {field_of(s, 0), field_of(s, 1)};
    u32 low = 1u << FIELD_WIDTH(fields[0]), high = 1u << FIELD_WIDTH(fields[1]);
    for (u32 i = 0; i < s->m; i++) {
        bits[i] = s->bits[i] ^ 0x8000;
        second[i] = (u16)((int16_t)s->rest[i] >> 15);
    }
    signed_short_vec limit = (signed_short_vec)short_broadcast(s->link->limit ^ 0x8000);
    for (u32 seed = 0; seed < low; seed += SHORTS) {
        short_vec multipliers = short_load(s->tables->multiplier + seed), all = short_broadcast(0), odd = all;
        for (u32 i = 0; i < s->m; i++) {
            short_vec left = (short_vec)((signed_short_vec)(short_broadcast(bits[i]) * multipliers) <= limit);
            all -= left;
            odd -= left & second[i];
        }
        short_store(c->low + seed, all - odd);
        if (seed < high)
            short_store(c->high + seed, short_broadcast(s->link->unit) - odd);
    }
    join(s, n, FIELD_WIDTH(fields[0]), FIELD_WIDTH(fields[1]), true);
}

/* One constant per part: what a key there adds to a sum. */
static const u16 part_constants[CHAIN_WIDEST_FANOUT] = {0x9E37, 0x79B9, 0xF39D, 0x4CF5, 0xB8E3, 0x2C1B, 0xD6A5, 0x6F0F};

static void parts(const chain_search *s, chain_node *n)
{
    chain_scratch *c = s->scratch;
    u64 counts = sort_by_class(s, 2);
    short_table table = short_table_of(part_constants);
    short_vec scale = short_broadcast(s->link->scale);
    u32 bits[4];
    for (u32 class = 0; class < 4; class++) {
        const u16 *run = c->runs + class * c->stride;
        u32 keys = counts >> 16 * class & 0xFFFF;
        bits[class] = FIELD_WIDTH(field_of(s, class));
        for (u32 seed = 0; seed < 1u << bits[class]; seed += SHORTS) {
            short_vec multipliers = short_load(s->tables->multiplier + seed), sum = short_broadcast(0);
            for (u32 i = 0; i < keys; i++)
                sum += pick(high_product(short_broadcast(run[i]) * multipliers, scale) >> 11, table);
            short_store(c->sums[class] + seed, sum);
        }
    }
    u16 target = (u16)((u32)s->link->rest * part_constants[s->link->last]); /* u16 alone would be multiplied as int */
    for (u32 i = 0; i < s->link->last; i++)
        target += (u16)((u32)s->link->unit * part_constants[i]);
    for (u32 b = 0; b < 1u << bits[1]; b++)
        for (u32 a = 0; a < 1u << bits[0]; a++)
            c->low[b << bits[0] | a] = (u16)(c->sums[0][a] + c->sums[1][b]);
    for (u32 b = 0; b < 1u << bits[3]; b++)
        for (u32 a = 0; a < 1u << bits[2]; a++)
            c->high[b << bits[2] | a] = (u16)(target - c->sums[2][a] - c->sums[3][b]);
    join(s, n, bits[0] + bits[1], bits[2] + bits[3], false);
}

/* Fills n with the node's smallest solutions from `from` on. */
static void solve(const chain_search *s, chain_node *n)
{
    n->count = n->next = 0;
    n->more = false;
    switch (s->link->kind & 15) {
    case SMALL_LEAF:
        small_leaf(s, n);
        break;
    case LEAF_OF_EIGHT:
    case LEAF_OF_SIXTEEN:
        large_leaf(s, n);
        break;
    case HALVES:
        halves(s, n);
        break;
    default:
        parts(s, n);
    }
}

/* The search for a node's number, once for every instruction set: isa/x.c defines LANES, the shim below and SET_NAME, then
 * includes this file.
 *
 *     for every block of numbers x, x + 1, ... that carries into no key's upper half
 *         for LANES numbers at a time
 *             positions of one key under all of them, key after key, gathered per lane
 *             lanes that solve the node -> the lowest is the answer
 *
 * 1. Lanes are numbers, not keys: a key is broadcast, nothing is ever summed across lanes, and a short leaf fills a vector.
 * 2. y = lo + level + x is a sum of 64 bits, but x is small: while no key's lower half overflows, only that half changes, and
 *    a vector of 32-bit lanes does. How far that holds is computed per block (`safe`); the LANES numbers around an overflow
 *    go through the scalar path, the same function that defines what a solution is.
 * 3. A leaf is a bijection exactly if the bits of its keys' positions fill the mask. Two keys on one bit show early as
 *    sum != or: a sum of single bits equals their union only if they differ (24 keys below bit 24: no overflow).
 * 4. Leaves from MIDSTOP keys on: of a block, only the numbers whose first keys differ go on, closed up into full vectors, so
 *    that every lane stops midway for itself and not only when its neighbours do (Bez 2022 §5.4 and §5.5.3 stop whole vectors).
 * 5. Rotations of a candidate are tried with one rotation per lane, not one after the other.
 * 6. Counts of more than two parts are bytes packed in words. A byte may overflow in a wrong splitting, hence every
 *    candidate is checked by the scalar path.
 *
 * The price: numbers are tried in blocks, so up to LANES - 1 (midstop: BLOCK - 1) are tried in vain at every node.
 *
 * Shim: vec shift_left(vec v, vec by) lane by lane, 0 for by >= 32; u32 lanes_set(vec v), a bit per lane that is all ones. */
#ifndef MPHF_SEARCH_BODY_H
#define MPHF_SEARCH_BODY_H

#include "builder.h"

#define MIDSTOP 11     /* keys; below, whole leaves are hashed */
#define BLOCK 256      /* numbers between two passes of a midstop */
#define STRETCH 65536u /* numbers between two looks at *cancel */
#define NONE (~0ull)

typedef enum { LEAF, ROTATED_LEAF, SPLITTING } node_kind;

typedef struct {
    const u64 *lo; /* the node's keys; the rotated half of a ROTATED_LEAF last */
    u32 m, unrotated;
    const node *shape;
    u64 level;
    u32 *low, *high;
} search;

static inline vec broadcast(u32 x) { return (vec){0} + x; }

static inline vec lane_numbers(void)
{
    vec v;
    for (u32 i = 0; i < LANES; i++)
        v[i] = i;
    return v;
}

/* The upper 16 of a key's 32 hash bits, under every lane's number. */
static inline vec hash_bits(const search *s, u32 key, vec x)
{
    vec v = (x + s->low[key]) ^ s->high[key];
    MIX32(v);
    return v >> 16;
}

static inline vec position_bit(const search *s, u32 key, vec x)
{
    return shift_left(broadcast(1), (hash_bits(s, key, x) * s->m) >> 16);
}

/* Adds the position bits of keys `from` ... `to` - 1 to a union and a sum. */
static inline void place(const search *s, u32 from, u32 to, vec x, vec *all, vec *sum)
{
    for (u32 key = from; key < to; key++) {
        vec bit = position_bit(s, key, x);
        *all |= bit;
        *sum += bit;
    }
}

/* Rotation r of b that fills what a leaves of m bits, the smallest; m if there is none. a and b have m bits together. */
static inline u32 fitting_rotation(u32 a, u32 b, u32 m)
{
    u32 full = (1u << m) - 1;
    for (u32 r = 0; r < m; r += LANES) {
        vec by = lane_numbers() + r;
        vec rotated = (shift_left(broadcast(b), by) | (broadcast(b) >> ((m - by) & 31))) & full;
        u32 hits = lanes_set((vec)(rotated == broadcast(a ^ full)));
        if (hits) /* lanes from m on repeat rotation 0 or show bits too few: never the first to fit */
            return r + (u32)__builtin_ctz(hits) < m ? r + (u32)__builtin_ctz(hits) : m;
    }
    return m;
}

/* Whether number x solves the node, one key at a time: the definition. In a ROTATED_LEAF x counts hashes and *rotation receives
 * the smallest one that fits. */
static inline bool solves(const search *s, node_kind kind, u64 x, u32 *rotation)
{
    u64 y = s->level + (kind == ROTATED_LEAF ? x * s->m : x);
    u32 placed[2] = {0, 0}, counts[MPHF_WIDEST_FANOUT] = {0};
    for (u32 key = 0; key < s->m; key++) {
        u32 q = position(s->lo[key] + y, s->m);
        if (kind == SPLITTING) {
            counts[part_of(s->shape, q)]++;
            continue;
        }
        u32 *half = &placed[kind == ROTATED_LEAF && key >= s->unrotated];
        if (*half >> q & 1)
            return false;
        *half |= 1u << q;
    }
    if (kind == ROTATED_LEAF)
        return (*rotation = fitting_rotation(placed[0], placed[1], s->m)) < s->m;
    for (u32 i = 0; kind == SPLITTING && i + 1 < s->shape->fanout; i++)
        if (counts[i] != s->shape->unit)
            return false;
    return true;
}

/* The scans return the first of the numbers 0 ... count - 1 that may solve the node, or `count`. count is a multiple of LANES. */

static u64 scan_leaf(const search *s, u32 count)
{
    vec full = broadcast((1u << s->m) - 1);
    for (u32 x = 0; x < count; x += LANES) {
        vec all = broadcast(0), numbers = lane_numbers() + x;
        for (u32 key = 0; key < s->m; key++)
            all |= position_bit(s, key, numbers);
        u32 hits = lanes_set((vec)(all == full));
        if (hits)
            return x + (u32)__builtin_ctz(hits);
    }
    return count;
}

/* Keys of a leaf hashed before the midstop: some nine of ten numbers collide by then (Esposito, Graf, Vigna 2020). */
static inline u32 keys_to_midstop(u32 m)
{
    u32 keys = 1;
    while (keys * keys < 4 * m)
        keys++;
    return keys;
}

typedef struct {
    u32 x[BLOCK + LANES], placed[BLOCK + LANES];
    u32 count;
} survivors;

/* Of numbers step * (0 ... count - 1), those under which keys `from` ... `to` - 1 do not collide. */
static inline void first_pass(const search *s, u32 from, u32 to, u32 begin, u32 count, u32 step, survivors *out)
{
    out->count = 0;
    for (u32 x = begin; x < begin + count; x += LANES) {
        vec all = broadcast(0), sum = all;
        place(s, from, to, (lane_numbers() + x) * step, &all, &sum);
        for (u32 left = lanes_set((vec)(all == sum)); left; left &= left - 1) {
            u32 lane = (u32)__builtin_ctz(left);
            out->x[out->count] = x + lane;
            out->placed[out->count++] = all[lane];
        }
    }
    for (u32 i = 0; i < LANES; i++) /* fill up the last vector */
        out->x[out->count + i] = out->x[0];
}

static inline vec load(const u32 *from)
{
    vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

static u64 scan_leaf_midstop(const search *s, u32 count)
{
    survivors left;
    u32 first = keys_to_midstop(s->m);
    vec full = broadcast((1u << s->m) - 1);
    for (u32 begin = 0; begin < count; begin += BLOCK) {
        first_pass(s, 0, first, begin, count - begin < BLOCK ? count - begin : BLOCK, 1, &left);
        for (u32 i = 0; i < left.count; i += LANES) {
            vec all = load(left.placed + i), numbers = load(left.x + i);
            for (u32 key = first; key < s->m; key++)
                all |= position_bit(s, key, numbers);
            u32 hits = lanes_set((vec)(all == full));
            if (i + LANES > left.count)
                hits &= (1u << (left.count - i)) - 1;
            if (hits)
                return left.x[i + (u32)__builtin_ctz(hits)];
        }
    }
    return count;
}

/* Numbers whose two halves each are without collision go on to the rotations; halves of one pass if the leaf is small. */
static u64 scan_rotations(const search *s, u32 count)
{
    survivors left;
    u32 m = s->m, half = m < MIDSTOP ? 0 : s->unrotated;
    for (u32 begin = 0; begin < count; begin += BLOCK) {
        u32 block = count - begin < BLOCK ? count - begin : BLOCK;
        if (half)
            first_pass(s, 0, half, begin, block, m, &left);
        for (u32 i = 0; i < (half ? left.count : block); i += LANES) {
            vec numbers = half ? load(left.x + i) : lane_numbers() + (begin + i);
            vec a = broadcast(0), b = a, sum = a;
            if (half)
                sum = a = load(left.placed + i);
            else
                place(s, 0, s->unrotated, numbers * m, &a, &sum);
            vec sum_b = b;
            place(s, s->unrotated, m, numbers * m, &b, &sum_b);
            u32 distinct = lanes_set((vec)((a == sum) & (b == sum_b)));
            if (half && i + LANES > left.count)
                distinct &= (1u << (left.count - i)) - 1;
            for (; distinct; distinct &= distinct - 1) {
                u32 lane = (u32)__builtin_ctz(distinct);
                if (fitting_rotation(a[lane], b[lane], m) < m)
                    return numbers[lane];
            }
        }
    }
    return count;
}

/* q < unit exactly if the hash's upper bits are below ceil(unit * 2^16 / m): no multiplication per key. */
static u64 scan_halves(const search *s, u32 count)
{
    u32 unit = s->shape->unit, below = (u32)((((u64)unit << 16) + s->m - 1) / s->m);
    for (u32 x = 0; x < count; x += LANES) {
        vec left = broadcast(unit), numbers = lane_numbers() + x;
        for (u32 key = 0; key < s->m; key++)
            left += (vec)((signed_vec)hash_bits(s, key, numbers) < (signed_vec)broadcast(below));
        u32 hits = lanes_set((vec)(left == broadcast(0)));
        if (hits)
            return x + (u32)__builtin_ctz(hits);
    }
    return count;
}

/* Counts of parts 0 ... 3 and 4 ... 7 in the bytes of two words; `wide`: more than five parts. */
static inline u64 scan_parts(const search *s, u32 count, bool wide)
{
    u32 counted = s->shape->fanout - 1u; /* the last part follows from the others */
    u64 mask = counted < 8 ? (1ull << 8 * counted) - 1 : ~0ull, wanted = s->shape->unit * (0x0101010101010101ull & mask);
    for (u32 x = 0; x < count; x += LANES) {
        vec first = broadcast(0), second = first, numbers = lane_numbers() + x;
        for (u32 key = 0; key < s->m; key++) {
            vec q = (hash_bits(s, key, numbers) * s->m) >> 16;
            vec byte = (q * s->shape->reciprocal) >> 20 << 3;
            first += shift_left(broadcast(1), byte);
            if (wide)
                second += shift_left(broadcast(1), byte - 32);
        }
        vec fits = (vec)((first & (u32)mask) == broadcast((u32)wanted));
        if (wide)
            fits &= (vec)((second & (u32)(mask >> 32)) == broadcast((u32)(wanted >> 32)));
        u32 hits = lanes_set(fits);
        if (hits)
            return x + (u32)__builtin_ctz(hits);
    }
    return count;
}

static u64 scan(const search *s, node_kind kind, u32 count)
{
    if (kind == LEAF)
        return s->m < MIDSTOP ? scan_leaf(s, count) : scan_leaf_midstop(s, count);
    if (kind == ROTATED_LEAF)
        return scan_rotations(s, count);
    if (s->shape->fanout == 2)
        return scan_halves(s, count);
    return s->shape->fanout <= 5 ? scan_parts(s, count, false) : scan_parts(s, count, true);
}

/* Splits every key's word under number x into halves; returns how many numbers from there on leave all upper halves alone. */
static inline u64 prepare(const search *s, u64 x, u32 step)
{
    u32 highest = 0;
    for (u32 key = 0; key < s->m; key++) {
        u64 y = s->lo[key] + s->level + x * step;
        s->low[key] = (u32)y;
        s->high[key] = (u32)(y >> 32);
        highest = s->low[key] > highest ? s->low[key] : highest;
    }
    return (0xFFFFFFFFu - highest) / step + 1;
}

/* The smallest number that solves the node; NONE if there is none below `budget` or *cancel is set. */
static u64 smallest_number(const search *s, node_kind kind, u64 budget, const volatile int *cancel)
{
    u32 step = kind == ROTATED_LEAF ? s->m : 1, rotation = 0;
    for (u64 x = 0; x * step < budget && !*cancel;) {
        u64 safe = prepare(s, x, step);
        u32 count = (u32)(safe < STRETCH ? safe : STRETCH) / LANES * LANES;
        u64 hit = count ? scan(s, kind, count) : 0;
        u64 end = count ? hit + (hit < count) : LANES; /* past the candidate, or the numbers around an overflow */
        for (; hit < end; hit++)
            if (solves(s, kind, x + hit, &rotation))
                return (x + hit) * step + rotation;
        x += end;
    }
    return NONE;
}

#endif

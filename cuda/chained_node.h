/* A node of chained seeds in local memory: what a work-group holds of its bucket, and the phases of a visit to a node, each of which all
 * items take part in. A phase ends at a barrier in the kernel's own body (chained.h). */

enum { LISTING, SEARCHING, SOLVED, GIVEN_UP, FINISHED };

#define HELD 0x7FFFFFFFu
#define MORE 0x80000000u

/* Item 0's decisions, and counters of all items. */
enum {
    C_BUCKET, C_FIRST, C_COUNT, C_STATE, C_NODE, C_APPLY, C_ROOT, C_VISITS, C_TOP, C_FOUND, C_BEST,
    C_SIZES,                 /* keys of every class; then how many are in place */
    C_PLACED = C_SIZES + 4,
    C_LISTED = C_PLACED + 4, /* entries of both lists of a leaf */
    C_CURSORS = C_LISTED + 2,
    C_WORDS = C_CURSORS + 8
};

/* The node in work. */
typedef struct {
    GLOBAL const chain_link *link;
    u32 fields[4];
    u32 m, first, salt, width, from, kind, classes_log2;
} work;

/* _device.py has the sizes, for the host to reckon with. */
typedef char control_has_room[C_WORDS <= CONTROL_WORDS ? 1 : -1];
typedef char work_has_room[sizeof(work) <= 8 * WORK_WORDS ? 1 : -1];

typedef struct {
    LOCAL work *work;
    GLOBAL u64 *keys, *spare;   /* lo of the group's keys; the bucket's are those from control[C_FIRST] on */
    LOCAL u32 *words;           /* of the node's keys */
    LOCAL u16 *runs;            /* their hash bits, class after class */
    LOCAL u32 *at;              /* of every node: its place in 1/256 bit, */
    LOCAL u32 *stretch;         /* its first key, and in the lower half how many, */
    LOCAL u32 *salt, *number;
    LOCAL u32 *held;            /* solutions of it on the stack; MORE: there may be others beyond */
    LOCAL u32 *stack, *found;
    LOCAL u32 *table;           /* leaves: two lists of masks; splittings: four lists of sums */
    LOCAL u32 *seen;
    LOCAL u32 *control;
    u32 masks_size, sums_size, seen_words, seen_shift, stack_size;
} arena;

/* For buckets of up to so many keys and nodes; `table`: entries of that, `log2` of the bits of `seen`. */
FN arena arena_of(LOCAL u64 *memory, GLOBAL u64 *keys, GLOBAL u64 *spare, u32 most_keys, u32 nodes, u32 table, u32 log2)
{
    arena a;
    a.work = (LOCAL work *)memory;
    a.keys = keys;
    a.spare = spare;
    a.words = (LOCAL u32 *)(memory + WORK_WORDS);
    a.runs = (LOCAL u16 *)(a.words + most_keys);
    a.at = a.words + most_keys + (most_keys + 1) / 2;
    a.stretch = a.at + nodes;
    a.salt = a.stretch + nodes;
    a.number = a.salt + nodes;
    a.held = a.number + nodes;
    a.stack = a.held + nodes;
    a.stack_size = nodes + FOUND;
    a.found = a.stack + a.stack_size;
    a.table = a.found + FOUND;
    a.seen = a.table + table;
    a.masks_size = table / 2;
    a.sums_size = table / 4;
    a.seen_words = (1u << log2) / 32;
    a.seen_shift = 32 - log2;
    a.control = a.seen + a.seen_words;
    return a;
}

/* --- a bucket's beginning --- */

/* Lists the nodes in preorder. Every leaf's item walks down to it and notes the nodes that begin where it begins. */
FN void list_nodes(const arena *a, GLOBAL const node *nodes, GLOBAL const chain_link *links, u32 m, u32 leaf, u32 root_bits)
{
    for (u32 to = ITEM * leaf; to < m; to += ITEMS * leaf) {
        u32 size = m, first = 0, at = root_bits * BIT, rank = 0;
        while (size > 1) {
            if (first == to) {
                a->at[rank] = at;
                a->stretch[rank] = first << 16 | size;
            }
            if (size <= leaf)
                break;
            GLOBAL const chain_link *v = &links[size];
            u32 unit = v->unit, part = (to - first) / unit;
            part = part < v->last ? part : v->last;
            rank += 1 + part * nodes[unit].nodes;
            at += v->width + part * v->below;
            first += part * unit;
            size = part == v->last ? v->rest : unit;
        }
    }
}

/* Item 0: the node to look at next, of m keys from `first` on, whose number begins at `at`; numbers below `from` do not count. */
FN void set_work(const arena *a, const chains *t, u32 m, u32 first, u32 at, u32 salt, u32 from)
{
    LOCAL work *w = a->work;
    LOCAL u32 *control = a->control;
    GLOBAL const chain_link *link = &t->links[m];
    w->link = link;
    w->m = m;
    w->first = first;
    w->salt = salt;
    w->from = from;
    w->width = (at + link->width) / BIT - at / BIT;
    w->kind = link->kind & 15;
    w->classes_log2 = link->kind >> 4;
    for (u32 c = 0; c < 4; c++)
        w->fields[c] = t->fields[FIELD_AT(w->kind, w->width, c)];
    control[C_FOUND] = 0;
    control[C_BEST] = ~0u;
    for (u32 c = C_SIZES; c < C_CURSORS; c++)
        control[c] = 0;
}

FN void next_visit(const arena *a, const chains *t, u32 i, u32 from)
{
    a->control[C_NODE] = i;
    set_work(a, t, a->stretch[i] & 0xFFFF, a->stretch[i] >> 16, a->at[i], a->salt[i], from);
}

/* --- the phases of a visit --- */

FN void count_classes(const arena *a, LOCAL const work *w)
{
    for (u32 i = ITEM; i < w->m; i += ITEMS) {
        u32 word = chain_word(a->keys[a->control[C_FIRST] + w->first + i], w->salt);
        a->words[i] = word;
        ATOMIC_ADD(&a->control[C_SIZES + chain_class(word, w->classes_log2)], 1u);
    }
}

FN u32 run_start(const arena *a, u32 class_number)
{
    u32 start = 0;
    for (u32 c = 0; c < class_number; c++)
        start += a->control[C_SIZES + c];
    return start;
}

FN void sort_by_class(const arena *a, LOCAL const work *w)
{
    for (u32 i = ITEM; i < w->m; i += ITEMS) {
        u32 word = a->words[i], c = chain_class(word, w->classes_log2);
        a->runs[run_start(a, c) + ATOMIC_ADD(&a->control[C_PLACED + c], 1u)] = (u16)(word >> 16);
    }
}

FN void report(const arena *a, u32 number, u32 from)
{
    if (number < from)
        return;
    u32 n = ATOMIC_ADD(&a->control[C_FOUND], 1u);
    if (n < FOUND)
        a->found[n] = number;
    ATOMIC_MIN(&a->control[C_BEST], number);
}

/* A class's sub-seeds are tried some at a time: one look at a key serves them all, and compilers for processors make vectors of it. */
#define AT_ONCE 4u

/* The work of a visit's widest phase, in units of AT_ONCE sub-seeds over all classes: class and first sub-seed of a unit, false behind
 * the last one. */
FN bool unit_of(LOCAL const work *w, u32 unit, u32 *class_number, u32 *first)
{
    for (u32 c = 0; c < 1u << w->classes_log2; c++) {
        u32 units = ((1u << FIELD_WIDTH(w->fields[c])) + AT_ONCE - 1) / AT_ONCE;
        if (unit < units) {
            *class_number = c;
            *first = unit * AT_ONCE;
            return true;
        }
        unit -= units;
    }
    return false;
}

/* Masks of the positions that a class takes under each sub-seed under which no two keys collide. Without other classes, that is it. */
FN void leaf_masks(const arena *a, LOCAL const work *w, GLOBAL const u16 *multiplier)
{
    u32 c, first, m = w->m;
    for (u32 unit = ITEM; unit_of(w, unit, &c, &first); unit += ITEMS) {
        u32 begin = run_start(a, c), end = begin + a->control[C_SIZES + c], seeds = 1u << FIELD_WIDTH(w->fields[c]);
        u32 factors[AT_ONCE], all[AT_ONCE], sums[AT_ONCE];
        for (u32 k = 0; k < AT_ONCE; k++) {
            factors[k] = multiplier[first + k];
            all[k] = sums[k] = 0;
        }
        for (u32 i = begin; i < end; i++) {
            u32 hash = a->runs[i];
            for (u32 k = 0; k < AT_ONCE; k++) {
                u32 bit = 1u << ((hash * factors[k] & 0xFFFF) * m >> 16);
                all[k] |= bit;
                sums[k] += bit;
            }
        }
        for (u32 k = 0; k < AT_ONCE && first + k < seeds; k++) {
            u32 seed = first + k;
            if (all[k] != sums[k])
                continue;
            if (w->kind == SMALL_LEAF)
                report(a, seed, w->from);
            else
                a->table[c * a->masks_size + ATOMIC_ADD(&a->control[C_LISTED + c], 1u)] = all[k] | seed << 16;
        }
    }
}

/* A key in part p adds 2^(p * step) to its class's sum: equal counts have equal sums, and of two parts others have not. */
FN u32 part_step(LOCAL const work *w) { return w->link->last == 1 ? 16 : w->link->last < 4 ? 8 : 4; }

FN void split_sums(const arena *a, LOCAL const work *w, GLOBAL const u16 *multiplier)
{
    u32 c, first, step = part_step(w), scale = w->link->scale, limit = w->link->limit;
    for (u32 unit = ITEM; unit_of(w, unit, &c, &first); unit += ITEMS) {
        u32 begin = run_start(a, c), end = begin + a->control[C_SIZES + c], seeds = 1u << FIELD_WIDTH(w->fields[c]);
        u32 factors[AT_ONCE], sums[AT_ONCE];
        for (u32 k = 0; k < AT_ONCE; k++) {
            factors[k] = multiplier[first + k];
            sums[k] = 0;
        }
        for (u32 i = begin; i < end; i++) {
            u32 bits = a->runs[i];
            for (u32 k = 0; k < AT_ONCE; k++) {
                u32 hash = bits * factors[k] & 0xFFFF;
                sums[k] += 1u << step * ((hash * scale >> 27) + (hash > limit));
            }
        }
        for (u32 k = 0; k < AT_ONCE && first + k < seeds; k++)
            a->table[c * a->sums_size + first + k] = sums[k];
    }
}

FN u32 seen_bit(const arena *a, u32 value) { return value * 0x9E3779B1u >> a->seen_shift; }

FN void clear_seen(const arena *a)
{
    for (u32 i = ITEM; i < a->seen_words; i += ITEMS)
        a->seen[i] = 0;
}

FN void mark(const arena *a, u32 value)
{
    u32 bit = seen_bit(a, value);
    ATOMIC_OR(&a->seen[bit >> 5], 1u << (bit & 31));
}

FN bool marked(const arena *a, u32 value)
{
    u32 bit = seen_bit(a, value);
    return a->seen[bit >> 5] >> (bit & 31) & 1;
}

/* A splitting's number has a lower and an upper half, of one class each or of two; what i adds in one of them. */
FN u32 half_bits(LOCAL const work *w, u32 upper)
{
    return w->classes_log2 == 1 ? FIELD_WIDTH(w->fields[upper])
                                : FIELD_WIDTH(w->fields[2 * upper]) + FIELD_WIDTH(w->fields[2 * upper + 1]);
}

FN u32 half_sum(const arena *a, LOCAL const work *w, u32 upper, u32 i)
{
    if (w->classes_log2 == 1)
        return a->table[upper * a->sums_size + i];
    u32 c = 2 * upper, bits = FIELD_WIDTH(w->fields[c]);
    return a->table[c * a->sums_size + (i & ((1u << bits) - 1))] + a->table[(c + 1) * a->sums_size + (i >> bits)];
}

FN void mark_first(const arena *a, LOCAL const work *w)
{
    if (w->kind >= HALVES)
        for (u32 i = ITEM; i < 1u << half_bits(w, 0); i += ITEMS)
            mark(a, half_sum(a, w, 0, i));
    else
        for (u32 i = ITEM; i < a->control[C_LISTED]; i += ITEMS)
            mark(a, a->table[i] & 0xFFFF);
}

/* Whether a number sends the right counts to all parts: for sums of more than two parts, which may be equal by chance. */
FN bool splits(const arena *a, LOCAL const work *w, GLOBAL const u16 *multiplier, u32 number)
{
    u64 counts[2] = {0, 0}; /* of parts 0 to 3 and 4 to 7, 16 bits each */
    for (u32 i = 0; i < w->m; i++) {
        u32 word = a->words[i], field = w->fields[chain_class(word, w->classes_log2)];
        u32 seed = FIELD_SEED(field, number);
        u32 part = chain_part(w->link, (word >> 16) * multiplier[seed] & 0xFFFF);
        counts[part >> 2] += (u64)1 << 16 * (part & 3);
    }
    for (u32 part = 0; part < w->link->last; part++)
        if ((counts[part >> 2] >> 16 * (part & 3) & 0xFFFF) != w->link->unit)
            return false;
    return true;
}

FN void join_sums(const arena *a, LOCAL const work *w, GLOBAL const u16 *multiplier)
{
    u32 step = part_step(w), target = (u32)w->link->rest << step * w->link->last, low_bits = half_bits(w, 0);
    for (u32 part = 0; part < w->link->last; part++)
        target += (u32)w->link->unit << step * part;
    for (u32 j = ITEM; j < 1u << half_bits(w, 1); j += ITEMS) {
        u32 wanted = target - half_sum(a, w, 1, j);
        if (!marked(a, wanted))
            continue;
        for (u32 i = 0; i < 1u << low_bits; i++) {
            u32 number = j << low_bits | i;
            if (half_sum(a, w, 0, i) == wanted && number >= w->from &&
                (w->kind == HALVES || splits(a, w, multiplier, number)))
                report(a, number, w->from);
        }
    }
}

/* A mask turned by r is mask * 2^r, and what that moves beyond bit m - 1 comes in again below. */
FN void join_masks(const arena *a, LOCAL const work *w)
{
    u32 m = w->m, full = (1u << m) - 1, turn_log2 = FIELD_TURN(w->fields[1]), first = a->control[C_LISTED];
    for (u32 i = ITEM; i < a->control[C_LISTED + 1] << turn_log2; i += ITEMS) {
        u32 entry = a->table[a->masks_size + (i >> turn_log2)], turn = i & ((1u << turn_log2) - 1), mask = entry & 0xFFFF;
        u32 wanted = ~(mask << turn | mask >> (m - turn)) & full;
        if (!marked(a, wanted))
            continue;
        for (u32 k = 0; k < first; k++)
            if ((a->table[k] & 0xFFFF) == wanted)
                report(a, a->table[k] >> 16 | (entry >> 16) << FIELD_SHIFT(w->fields[1]) | turn << (w->width - turn_log2),
                       w->from);
    }
}

/* Build of chained seeds (FORMAT.md §4): one work-group per bucket, all of its items on one node, node after node depth first.
 *
 *     count_buckets, scatter_keys    group a batch's keys by bucket
 *     build_chained                  persistent groups pull buckets from a counter; the bits of each go to a slot of its own
 *     place_records                  looks every key up in those bits and puts its record at its index
 *
 * 1. Keys, node list, contributions of sub-seeds, solutions still to try and the join's bitmap are in local memory. A bucket for which
 *    that is too small, or that takes more visits than a launch allows, is left to the CPU.
 * 2. The search is that of native/methods/chained.h, but for the order of keys within a node: no node depends on it. So one copy of
 *    the keys serves all levels: a splitting that is given another number sorts its stretch again.
 * 3. A node's solutions arrive in any order and are sorted; those still to try are a stack over all nodes. What does not fit
 *    is looked for again from the last one tried on.
 * 4. Every phase below ends at a barrier in the kernel's own body, which every item reaches whatever the node: control flow depends on
 *    local memory that item 0 writes between two barriers. */

enum { LOADING, SEARCHING, SOLVED, GIVEN_UP, FINISHED };

#define FOUND 32u  /* solutions of a node taken at a time */
#define HELD 0x7FFFFFFFu
#define MORE 0x80000000u

/* Item 0's decisions, and counters of all items. */
enum {
    C_BUCKET, C_COUNT, C_STATE, C_NODE, C_APPLY, C_ROOT, C_VISITS, C_TOP, C_FOUND, C_BEST,
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

#define WORK_WORDS 8u /* of 64 bits, at most */

typedef struct {
    LOCAL work *work;
    LOCAL u64 *keys, *spare;    /* lo */
    LOCAL u32 *words;           /* of the node's keys; words and runs lie in `spare` */
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
FN arena arena_of(LOCAL u64 *memory, u32 keys, u32 nodes, u32 table, u32 log2)
{
    arena a;
    a.work = (LOCAL work *)memory;
    a.keys = memory + WORK_WORDS;
    a.spare = a.keys + keys;
    a.words = (LOCAL u32 *)a.spare;
    a.runs = (LOCAL u16 *)(a.words + keys);
    a.at = (LOCAL u32 *)(a.spare + keys);
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

FN void load(const arena *a, GLOBAL const node *nodes, GLOBAL const chain_link *links, GLOBAL const u64 *lo,
             GLOBAL const u32 *offsets, u32 leaf, u32 root_bits)
{
    u32 bucket = a->control[C_BUCKET], first = offsets[bucket], m = offsets[bucket + 1] - first;
    for (u32 i = ITEM; i < m; i += ITEMS)
        a->keys[i] = lo[first + i];
    list_nodes(a, nodes, links, m, leaf, root_bits);
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
        u32 word = chain_word(a->keys[w->first + i], w->salt);
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

/* Masks of the positions that a class takes under each sub-seed under which no two keys collide. Without other classes, that is it. */
FN void leaf_masks(const arena *a, LOCAL const work *w, GLOBAL const u16 *multiplier, u32 class_number)
{
    u32 begin = run_start(a, class_number), end = begin + a->control[C_SIZES + class_number];
    u32 seeds = 1u << FIELD_WIDTH(w->fields[class_number]);
    for (u32 seed = ITEM; seed < seeds; seed += ITEMS) {
        u32 factor = multiplier[seed], all = 0, sum = 0;
        for (u32 i = begin; i < end; i++) {
            u32 bit = 1u << ((a->runs[i] * factor & 0xFFFF) * w->m >> 16);
            all |= bit;
            sum += bit;
        }
        if (all != sum)
            continue;
        if (w->kind == SMALL_LEAF)
            report(a, seed, w->from);
        else
            a->table[class_number * a->masks_size + ATOMIC_ADD(&a->control[C_LISTED + class_number], 1u)] = all | seed << 16;
    }
}

/* A key in part p adds 2^(p * step) to its class's sum: equal counts have equal sums, and of two parts others have not. */
FN u32 part_step(LOCAL const work *w) { return w->link->last == 1 ? 16 : w->link->last < 4 ? 8 : 4; }

FN void split_sums(const arena *a, LOCAL const work *w, GLOBAL const u16 *multiplier, u32 class_number)
{
    u32 begin = run_start(a, class_number), end = begin + a->control[C_SIZES + class_number];
    u32 seeds = 1u << FIELD_WIDTH(w->fields[class_number]), step = part_step(w);
    u32 scale = w->link->scale, limit = w->link->limit;
    for (u32 seed = ITEM; seed < seeds; seed += ITEMS) {
        u32 factor = multiplier[seed], sum = 0;
        for (u32 i = begin; i < end; i++) {
            u32 hash = a->runs[i] * factor & 0xFFFF;
            sum += 1u << step * ((hash * scale >> 27) + (hash > limit));
        }
        a->table[class_number * a->sums_size + seed] = sum;
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
        u32 seed = number >> FIELD_SHIFT(field) & ((1u << FIELD_WIDTH(field)) - 1);
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

/* --- between visits --- */

/* Takes up to `room` of what was found, the smallest on top of the stack. */
FN u32 hold(const arena *a, u32 room)
{
    LOCAL u32 *found = a->found;
    u32 count = a->control[C_FOUND], top = a->control[C_TOP], more = 0;
    if (count > FOUND) { /* not the smallest ones, perhaps; the very smallest is known */
        found[0] = a->control[C_BEST];
        count = 1;
        more = MORE;
    }
    for (u32 i = 1; i < count; i++) {
        u32 number = found[i], k = i;
        for (; k && found[k - 1] > number; k--)
            found[k] = found[k - 1];
        found[k] = number;
    }
    if (count > room) {
        count = room;
        more = MORE;
    }
    for (u32 i = count; i--;)
        a->stack[top++] = found[i];
    a->control[C_TOP] = top;
    return count | more;
}

/* Item 0: the next number, and what is to be done under it. */
OUTLINE_FN void decide(const arena *a, const chains *t, u32 escape, u32 visits_per_node)
{
    LOCAL u32 *control = a->control;
    u32 i = control[C_NODE], count = control[C_COUNT];
    control[C_STATE] = SEARCHING;
    control[C_APPLY] = 0;
    a->held[i] = hold(a, a->stack_size - control[C_TOP] - (count - 1 - i)); /* a place is left for each node to come */
    if (++control[C_VISITS] > visits_per_node * count) {
        control[C_STATE] = GIVEN_UP;
        return;
    }
    while (!(a->held[i] & HELD)) {
        if (a->held[i] & MORE) {
            next_visit(a, t, i, a->number[i] + 1);
            return;
        }
        if (i == 0) {
            a->salt[0] = ++control[C_ROOT];
            next_visit(a, t, 0, 0);
            return;
        }
        i--;
    }
    u32 number = a->stack[--control[C_TOP]], m = a->stretch[i] & 0xFFFF;
    a->held[i]--;
    a->number[i] = number;
    if (i + 1 == count) {
        control[C_STATE] = SOLVED;
        return;
    }
    GLOBAL const chain_link *link = &t->links[m];
    u32 since = a->at[i] / BIT, width = (a->at[i] + link->width) / BIT - since;
    u32 known = since < 32 ? since : 32, all = known + width;
    u64 history = i == 0 && control[C_ROOT] > escape ? escape : a->salt[i]; /* only what is stored in the bit string */
    a->salt[i + 1] = (u32)((history | (u64)number << known) >> (all > 32 ? all - 32 : 0));
    if ((link->kind & 15) >= HALVES) {
        control[C_APPLY] = i + 1;
        for (u32 part = 0; part <= link->last; part++)
            control[C_CURSORS + part] = part * link->unit;
    }
    next_visit(a, t, i + 1, 0);
}

/* Copies a splitting's keys to `spare`, by their parts under its number. Its stretch receives them then. */
FN void sort_by_part(const arena *a, const chains *t, u32 i)
{
    u32 m = a->stretch[i] & 0xFFFF, first = a->stretch[i] >> 16, number = a->number[i], salt = a->salt[i], at = a->at[i];
    GLOBAL const chain_link *link = &t->links[m];
    GLOBAL const u16 *fields = &t->fields[FIELD_AT(link->kind, (at + link->width) / BIT - at / BIT, 0)];
    for (u32 k = ITEM; k < m; k += ITEMS) {
        u64 key = a->keys[first + k];
        u32 word = chain_word(key, salt), field = fields[chain_class(word, link->kind >> 4)];
        u32 seed = number >> FIELD_SHIFT(field) & ((1u << FIELD_WIDTH(field)) - 1);
        u32 part = chain_part(link, (word >> 16) * t->multiplier[seed] & 0xFFFF);
        a->spare[ATOMIC_ADD(&a->control[C_CURSORS + part], 1u)] = key;
    }
}

FN void copy_back(const arena *a, u32 i)
{
    u32 m = a->stretch[i] & 0xFFFF, first = a->stretch[i] >> 16;
    for (u32 k = ITEM; k < m; k += ITEMS)
        a->keys[first + k] = a->spare[k];
}

/* Writes k bits, zero so far, from bit `at` on; k <= 24. */
FN void put_bits(GLOBAL u32 *bits, u64 at, u32 value)
{
    u64 shifted = (u64)value << (at & 31);
    ATOMIC_OR(&bits[at >> 5], (u32)shifted);
    if (shifted >> 32)
        ATOMIC_OR(&bits[(at >> 5) + 1], (u32)(shifted >> 32));
}

/* First bit of the bucket in `bits`. */
FN u64 slot_of(const arena *a, GLOBAL const u32 *slots) { return 64 * ((u64)slots[a->control[C_BUCKET]] + 1); }

FN void write_numbers(const arena *a, GLOBAL const u32 *slots, GLOBAL u32 *bits)
{
    u64 start = slot_of(a, slots);
    for (u32 i = ITEM; i < a->control[C_COUNT]; i += ITEMS)
        put_bits(bits, start + a->at[i] / BIT, a->number[i]);
}

FN void write_root(const arena *a, GLOBAL const u32 *slots, GLOBAL u32 *bits, GLOBAL u32 *roots, GLOBAL u32 *solved, u32 escape)
{
    u32 bucket = a->control[C_BUCKET], root = a->control[C_ROOT];
    put_bits(bits, slot_of(a, slots), root < escape ? root : escape);
    roots[bucket] = root;
    solved[bucket] = 1;
}

/* Item 0: the next bucket that there is memory for. */
OUTLINE_FN void pull(const arena *a, const chains *t, u32 buckets, u32 most_keys, u32 most_nodes, u32 root_bits,
                     GLOBAL const node *nodes, GLOBAL const u32 *offsets, GLOBAL u32 *counter)
{
    LOCAL u32 *control = a->control;
    control[C_STATE] = FINISHED;
    for (;;) {
        u32 bucket = ATOMIC_ADD(counter, 1u);
        if (bucket >= buckets)
            return;
        u32 m = offsets[bucket + 1] - offsets[bucket];
        if (m < 2 || m > most_keys || nodes[m].nodes > most_nodes)
            continue;
        control[C_BUCKET] = bucket;
        control[C_STATE] = LOADING;
        control[C_COUNT] = nodes[m].nodes;
        control[C_ROOT] = control[C_VISITS] = control[C_TOP] = a->salt[0] = 0;
        control[C_NODE] = 0;
        set_work(a, t, m, 0, root_bits * BIT, 0, 0);
        return;
    }
}

/* Bucket b of the batch has the keys lo[offsets[b] … offsets[b + 1]); its bits, zero so far, start at word 1 + slots[b] of `bits`,
 * words of 64 bits. Sets roots[b] and solved[b] of every bucket that gets its bits.
 *
 * One flat loop, and item 0's own work always between two barriers: PoCL (3.0, 3.1) gives up on nested loops with barriers, and where
 * a loop over ITEM stands in one stretch with `if (ITEM == 0)`, items beyond the loop's end run it once. */
KERNEL void build_chained(u32 buckets, u32 leaf, u32 root_bits, u32 most_keys, u32 most_nodes, u32 table, u32 seen_log2,
                          u32 visits_per_node, GLOBAL const node *nodes, GLOBAL const chain_link *links,
                          GLOBAL const u16 *fields, GLOBAL const u16 *multiplier, GLOBAL const u64 *lo,
                          GLOBAL const u32 *offsets, GLOBAL const u32 *slots, GLOBAL u32 *counter, GLOBAL u32 *bits,
                          GLOBAL u32 *roots, GLOBAL u32 *solved LOCAL_ARGUMENT)
{
    LOCAL_MEMORY
    arena a = arena_of(local_words, most_keys, most_nodes, table, seen_log2);
    chains t = {0, links, fields, multiplier};
    LOCAL const work *w = a.work;
    u32 escape = (1u << root_bits) - 1;
    clear_seen(&a);
    BARRIER();
    if (ITEM == 0)
        pull(&a, &t, buckets, most_keys, most_nodes, root_bits, nodes, offsets, counter);
    BARRIER();
    while (a.control[C_STATE] != FINISHED) {
        if (a.control[C_STATE] == LOADING)
            load(&a, nodes, links, lo, offsets, leaf, root_bits);
        BARRIER();
        count_classes(&a, w);
        BARRIER();
        sort_by_class(&a, w);
        BARRIER();
        for (u32 c = 0; c < 1u << w->classes_log2; c++)
            if (w->kind >= HALVES)
                split_sums(&a, w, multiplier, c);
            else
                leaf_masks(&a, w, multiplier, c);
        BARRIER();
        mark_first(&a, w);
        BARRIER();
        if (w->kind >= HALVES)
            join_sums(&a, w, multiplier);
        else if (w->kind != SMALL_LEAF)
            join_masks(&a, w);
        BARRIER();
        if (ITEM == 0)
            decide(&a, &t, escape, visits_per_node);
        BARRIER();
        clear_seen(&a);
        u32 apply = a.control[C_APPLY], state = a.control[C_STATE];
        if (apply)
            sort_by_part(&a, &t, apply - 1);
        if (state == SOLVED)
            write_numbers(&a, slots, bits);
        BARRIER();
        if (apply)
            copy_back(&a, apply - 1);
        BARRIER();
        if (ITEM == 0 && state != SEARCHING) {
            if (state == SOLVED)
                write_root(&a, slots, bits, roots, solved, escape);
            pull(&a, &t, buckets, most_keys, most_nodes, root_bits, nodes, offsets, counter);
        }
        BARRIER();
    }
}

/* --- around it --- */

/* Records are triples hi, lo, id; of their buckets, from `first` on, `all` make up the function. */
KERNEL void count_buckets(GLOBAL const u64 *records, u64 count, u64 all, u64 first, GLOBAL u32 *sizes)
{
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS)
        ATOMIC_ADD(&sizes[mulhi64(records[3 * i], all) - first], 1u);
}

/* `cursors`: zero for every bucket. */
KERNEL void scatter_keys(GLOBAL const u64 *records, u64 count, u64 all, u64 first, GLOBAL const u32 *offsets,
                         GLOBAL u32 *cursors, GLOBAL u64 *lo)
{
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS) {
        u64 bucket = mulhi64(records[3 * i], all) - first;
        lo[offsets[bucket] + ATOMIC_ADD(&cursors[bucket], 1u)] = records[3 * i + 1];
    }
}

/* hi and id of every record at its key's index, counted from the batch's first; those of buckets without bits in any order.
 * `cursors`: zero for every bucket. */
KERNEL void place_records(GLOBAL const u64 *records, u64 count, u64 all, u64 first, u32 leaf, u32 root_bits,
                          GLOBAL const chain_link *links, GLOBAL const u16 *fields, GLOBAL const u16 *multiplier,
                          GLOBAL const u32 *offsets, GLOBAL const u32 *slots, GLOBAL const u8 *bits, GLOBAL const u32 *roots,
                          GLOBAL const u32 *solved, GLOBAL u32 *cursors, GLOBAL u64 *hi, GLOBAL u64 *ids)
{
    chains t = {bits, links, fields, multiplier};
    u32 escape = (1u << root_bits) - 1;
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS) {
        u64 bucket = mulhi64(records[3 * i], all) - first, start = 64 * (u64)slots[bucket];
        u32 to = offsets[bucket], m = offsets[bucket + 1] - to;
        if (!solved[bucket]) {
            to += ATOMIC_ADD(&cursors[bucket], 1u);
        } else {
            chain_walk walk = {records[3 * i + 1], start, root_bits * BIT, m, 0};
            to += chain_locate(&t, leaf, walk, roots[bucket] < escape ? 0 : roots[bucket]);
        }
        hi[to] = records[3 * i];
        ids[to] = records[3 * i + 2];
    }
}

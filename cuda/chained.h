/* Build of chained seeds (FORMAT.md §4): one work-group per bucket, all of its items on one node, node after node depth first.
 *
 *     build_chained    persistent work-groups pull buckets from a counter; the bits of each go to their place in the file
 *     place_records    looks every key up in those bits and puts its record at its index
 *
 * 1. A node's words, the node list, contributions of sub-seeds, solutions still to try and the join's bitmap are in local memory. Keys are
 *    read once a visit, and are in global memory: in local memory, a multiprocessor would hold half as many buckets. A bucket for which
 *    local memory is too small, or that takes more visits than a launch allows, is left to the CPU.
 * 2. The search is that of native/methods/chained.h, but for the order of keys within a node: no node depends on it. So one copy of
 *    the keys serves all levels: a splitting that is given another number sorts its stretch again.
 * 3. A node's solutions arrive in any order and are sorted; those still to try are a stack over all nodes. What does not fit
 *    is looked for again from the last one tried on.
 * 4. Every phase below ends at a barrier in the kernel's own body, which every item reaches whatever the node: control flow depends on
 *    local memory that item 0 writes between two barriers. */

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
APART_FN void decide(const arena *a, const chains *t, u32 escape, u32 visits_per_node)
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
    u32 start = a->control[C_FIRST];
    GLOBAL const u64 *keys = a->keys + start + first;
    for (u32 k = ITEM; k < m; k += ITEMS) {
        u64 key = keys[k];
        u32 word = chain_word(key, salt), field = fields[chain_class(word, link->kind >> 4)];
        u32 seed = FIELD_SEED(field, number);
        u32 part = chain_part(link, (word >> 16) * t->multiplier[seed] & 0xFFFF);
        a->spare[start + ATOMIC_ADD(&a->control[C_CURSORS + part], 1u)] = key;
    }
}

FN void copy_back(const arena *a, u32 i)
{
    u32 m = a->stretch[i] & 0xFFFF, first = a->stretch[i] >> 16;
    GLOBAL u64 *keys = a->keys + a->control[C_FIRST] + first;
    GLOBAL const u64 *spare = a->spare + a->control[C_FIRST];
    for (u32 k = ITEM; k < m; k += ITEMS)
        keys[k] = spare[k];
}

/* Where bit strings lie, in the order in which _device_chained.py puts it: along a line over keys and buckets, of which there are some
 * before this group's; `origin`: the first bit that `bits` has, behind a word. */
enum { L_SLOPE, L_OFFSET, L_KEYS, L_BUCKETS, L_ORIGIN };

FN u64 start_of(GLOBAL const u64 *line, GLOBAL const u32 *offsets, u32 bucket)
{
    return chain_directory_start(line[L_SLOPE], line[L_OFFSET], line[L_KEYS] + offsets[bucket], line[L_BUCKETS] + bucket) -
           line[L_ORIGIN];
}

FN void write_numbers(const arena *a, u64 start, GLOBAL u32 *bits)
{
    for (u32 i = ITEM; i < a->control[C_COUNT]; i += ITEMS)
        put_number(bits, 64 + start + a->at[i] / BIT, a->number[i], CHAIN_WIDEST);
}

FN void write_root(const arena *a, u64 start, GLOBAL u32 *bits, GLOBAL u32 *roots, GLOBAL u32 *solved, u32 escape)
{
    u32 bucket = a->control[C_BUCKET], root = a->control[C_ROOT];
    put_number(bits, 64 + start, root < escape ? root : escape, CHAIN_WIDEST);
    roots[bucket] = root;
    solved[bucket] = 1;
}

/* Item 0: the next bucket that there is memory for. */
APART_FN void pull(const arena *a, const chains *t, u32 buckets, u32 most_keys, u32 most_nodes, u32 root_bits,
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
        control[C_FIRST] = offsets[bucket];
        control[C_STATE] = LISTING;
        control[C_COUNT] = nodes[m].nodes;
        control[C_ROOT] = control[C_VISITS] = control[C_TOP] = a->salt[0] = 0;
        control[C_NODE] = 0;
        set_work(a, t, m, 0, root_bits * BIT, 0, 0);
        return;
    }
}

/* Bucket b of the group has the keys[offsets[b] … offsets[b + 1]), which change places, and as much of `spare`; its bits, zero so far, start at start_of(b), a word behind the
 * beginning of `bits`. Buckets from *counter to `buckets` are built; sets roots[b] and solved[b] of every one that gets its bits.
 *
 * One flat loop, and item 0's own work always between two barriers: PoCL (3.0, 3.1) gives up on nested loops with barriers, and where
 * a loop over ITEM stands in one stretch with `if (ITEM == 0)`, items beyond the loop's end run it once. */
KERNEL void build_chained(u32 buckets, u32 leaf, u32 root_bits, u32 most_keys, u32 most_nodes, u32 table, u32 seen_log2,
                          u32 visits_per_node, GLOBAL const node *nodes, GLOBAL const chain_link *links,
                          GLOBAL const u16 *fields, GLOBAL const u16 *multiplier, GLOBAL u64 *keys, GLOBAL u64 *spare,
                          GLOBAL const u32 *offsets, GLOBAL const u64 *line, GLOBAL u32 *counter, GLOBAL u32 *bits,
                          GLOBAL u32 *roots, GLOBAL u32 *solved LOCAL_ARGUMENT)
{
    LOCAL_MEMORY
    arena a = arena_of(local_words, keys, spare, most_keys, most_nodes, table, seen_log2);
    chains t = {0, links, fields, multiplier};
    LOCAL const work *w = a.work;
    u32 escape = (1u << root_bits) - 1;
    clear_seen(&a);
    BARRIER();
    if (ITEM == 0)
        pull(&a, &t, buckets, most_keys, most_nodes, root_bits, nodes, offsets, counter);
    BARRIER();
    while (a.control[C_STATE] != FINISHED) {
        if (a.control[C_STATE] == LISTING)
            list_nodes(&a, nodes, links, w->m, leaf, root_bits);
        BARRIER();
        count_classes(&a, w);
        BARRIER();
        sort_by_class(&a, w);
        BARRIER();
        if (w->kind >= HALVES)
            split_sums(&a, w, multiplier);
        else
            leaf_masks(&a, w, multiplier);
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
            write_numbers(&a, start_of(line, offsets, a.control[C_BUCKET]), bits);
        BARRIER();
        if (apply)
            copy_back(&a, apply - 1);
        BARRIER();
        if (ITEM == 0 && state != SEARCHING) {
            if (state == SOLVED)
                write_root(&a, start_of(line, offsets, a.control[C_BUCKET]), bits, roots, solved, escape);
            pull(&a, &t, buckets, most_keys, most_nodes, root_bits, nodes, offsets, counter);
        }
        BARRIER();
    }
}

/* hi and id of the group's records, which stand in the order of their buckets, to their keys' indices; of buckets without bits in the
 * order they have. */
KERNEL void place_records(u32 count, u64 all, u32 leaf, u32 root_bits, GLOBAL const chain_link *links, GLOBAL const u16 *fields,
                          GLOBAL const u16 *multiplier, GLOBAL const u64 *lo, GLOBAL const u64 *hi, GLOBAL const u64 *ids,
                          GLOBAL const u32 *offsets, GLOBAL const u64 *line, GLOBAL const u8 *bits, GLOBAL const u32 *roots,
                          GLOBAL const u32 *solved, GLOBAL u32 *taken, u32 wanted, GLOBAL u64 *placed_hi, GLOBAL u64 *placed_ids)
{
    chains t = {bits, links, fields, multiplier};
    u32 escape = (1u << root_bits) - 1;
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS) {
        u32 bucket = (u32)(mulhi64(hi[i], all) - line[L_BUCKETS]), m = offsets[bucket + 1] - offsets[bucket], to = (u32)i;
        if (m > 1 && solved[bucket]) {
            chain_walk walk = {lo[i], start_of(line, offsets, bucket), root_bits * BIT, m, 0};
            to = offsets[bucket] + chain_locate(&t, leaf, walk, roots[bucket] < escape ? 0 : roots[bucket]);
        }
        place_record((u32)i, to, hi, ids, taken, wanted, placed_hi, placed_ids);
    }
}

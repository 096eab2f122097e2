/* Build of `brute` and `rotation` (FORMAT.md §4), level by level: the shape of every tree is known before anything runs, so the host
 * lists the nodes of a bucket of every size that occurs, a list per level.
 *
 *     for every list           list_tasks                      the same of all buckets
 *     for every level          search_alone, search_together   the numbers of its splittings
 *                              part_keys                       their keys to where their parts begin, in the other buffer of two
 *     for all leaves at once   search_alone, search_together
 *                              note_leaves
 *     where a search is long   look_for_equal
 *     for every bucket         measure_buckets, pack_buckets   numbers to its bit string
 *     for every key            place_by_rice                   looks it up in those bits and puts its record at its index
 *
 * 1. A node at depth d has its keys in the buffer `even` or `odd`, as d is. No later level touches those of a leaf.
 * 2. No number depends on the order of a node's keys: parting them need not be stable.
 * 3. An item tries NUMBERS_AT_ONCE numbers at a time, with one look at each key: lanes of a vector where the processor is the device, independent
 *    instructions on a GPU. No midstop: among so many numbers in step, some are nearly always still without collision.
 * 4. Small nodes get an item each, others a work-group, which tries a stretch of numbers per round; if nodes are few, several groups, whose
 *    smallest find counts. Around a round's result are two barriers: with one, an item that is ahead could write the next round's find
 *    before all have read this one's, and they would part ways.
 * 5. A launch tries `span` numbers of every node. Nodes not solved by then are listed again, for the next launch; beyond a node's budget the
 *    host is told that there is no solution. */


typedef struct {
    u32 first, size, slot, depth; /* its first key, where its number goes */
} task;

/* A node of all buckets of one size: what its task is in a bucket that begins at 0, and which of the sizes that is. */
typedef struct {
    task node;
    u32 owner;
} pattern;

/* A task per pattern and bucket of its size, pattern after pattern; ends[i] tasks up to pattern i. The buckets of size s are
 * by_size[starts[s]] and the following. */
KERNEL void list_tasks(u32 patterns, u32 count, GLOBAL const pattern *list, GLOBAL const u32 *ends, GLOBAL const u32 *starts,
                       GLOBAL const u32 *by_size, GLOBAL const u32 *offsets, GLOBAL const u32 *slots, GLOBAL task *tasks)
{
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS) {
        u32 low = 0, high = patterns - 1;
        while (low < high) {
            u32 middle = (low + high) / 2;
            if (ends[middle] > i)
                high = middle;
            else
                low = middle + 1;
        }
        pattern p = list[low];
        u32 bucket = by_size[starts[p.owner] + ((u32)i - (low ? ends[low - 1] : 0))];
        p.node.first += offsets[bucket];
        p.node.slot += slots[bucket];
        tasks[i] = p.node;
    }
}

/* A node in search. A number is counted from the launch's first one. */
typedef struct {
    GLOBAL const u64 *lo;
    GLOBAL const node *shape;
    u64 level; /* what the hash adds to `lo`, with the launch's first number */
    u32 m, step; /* step: m where a number has a rotation, else 1 */
} quest;

FN quest quest_of(task t, u64 begin, u32 rotated, GLOBAL const node *nodes, GLOBAL const u64 *even, GLOBAL const u64 *odd)
{
    quest q;
    q.lo = (t.depth & 1 ? odd : even) + t.first;
    q.shape = &nodes[t.size];
    q.level = (t.depth + 1) * GAMMA + begin;
    q.m = t.size;
    q.step = rotated ? t.size : 1;
    return q;
}

/* Each returns the smallest solution among the numbers from x to x + step * NUMBERS_AT_ONCE - 1, or UNFOUND. */

FN u32 try_leaf(const quest *q, u32 x)
{
    u32 all[NUMBERS_AT_ONCE] = {0}, m = q->m, full = (1u << m) - 1, hit = UNFOUND;
    for (u32 key = 0; key < m; key++) {
        u64 y = q->lo[key] + q->level + x;
        for (u32 j = 0; j < NUMBERS_AT_ONCE; j++)
            all[j] |= 1u << position(y + j, m);
    }
    for (u32 j = NUMBERS_AT_ONCE; j-- > 0;)
        hit = all[j] == full ? x + j : hit;
    return hit;
}

/* The smallest rotation of b that fills what a leaves of m bits; m if there is none. */
FN u32 rotation_that_fits(u32 a, u32 b, u32 m)
{
    u32 full = (1u << m) - 1, r = 0;
    while (r < m && ((b << r | b >> (m - r)) & full) != (a ^ full))
        r++;
    return r;
}

FN u32 try_rotations(const quest *q, u32 x)
{
    u32 a[NUMBERS_AT_ONCE] = {0}, b[NUMBERS_AT_ONCE] = {0}, m = q->m;
    for (u32 key = 0; key < m; key++) {
        u64 lo = q->lo[key], y = lo + q->level + x;
        u32 in_b = (u32)lo & 1;
        for (u32 j = 0; j < NUMBERS_AT_ONCE; j++) {
            u32 bit = 1u << position(y + j * m, m);
            a[j] |= in_b ? 0 : bit;
            b[j] |= in_b ? bit : 0;
        }
    }
    for (u32 j = 0; j < NUMBERS_AT_ONCE; j++)
        if (popcount64((u64)a[j] << 32 | b[j]) == m) {
            u32 r = rotation_that_fits(a[j], b[j], m);
            if (r < m)
                return x + j * m + r;
        }
    return UNFOUND;
}

FN u32 try_halves(const quest *q, u32 x)
{
    u32 left[NUMBERS_AT_ONCE] = {0}, m = q->m, unit = q->shape->unit, hit = UNFOUND;
    for (u32 key = 0; key < m; key++) {
        u64 y = q->lo[key] + q->level + x;
        for (u32 j = 0; j < NUMBERS_AT_ONCE; j++)
            left[j] += position(y + j, m) < unit;
    }
    for (u32 j = NUMBERS_AT_ONCE; j-- > 0;)
        hit = left[j] == unit ? x + j : hit;
    return hit;
}

/* Counts of all parts but the last in the bytes of a word; there are eight of them at most. No overflow goes unseen: it would take 255
 * keys too many, and the last part has no more than 254 to give. */
FN u32 try_parts(const quest *q, u32 x)
{
    u64 counts[NUMBERS_AT_ONCE] = {0};
    u32 m = q->m, counted = q->shape->fanout - 1u, hit = UNFOUND;
    u64 mask = ~(u64)0 >> (64 - 8 * counted), wanted = q->shape->unit * ((u64)0x0101010101010101 & mask);
    for (u32 key = 0; key < m; key++) {
        u64 y = q->lo[key] + q->level + x;
        for (u32 j = 0; j < NUMBERS_AT_ONCE; j++) {
            u32 part = part_of(q->shape, position(y + j, m));
            counts[j] += part < 8 ? (u64)1 << 8 * part : 0;
        }
    }
    for (u32 j = NUMBERS_AT_ONCE; j-- > 0;)
        hit = (counts[j] & mask) == wanted ? x + j : hit;
    return hit;
}

APART_FN u32 try_numbers(const quest *q, u32 x)
{
    if (q->step > 1)
        return try_rotations(q, x);
    if (q->shape->fanout == 1)
        return try_leaf(q, x);
    return q->shape->fanout == 2 ? try_halves(q, x) : try_parts(q, x);
}

/* One item per node, from task `from` on. found[i]: the smallest solution of task i among `span` steps of numbers from `begin` on, or
 * UNFOUND. */
KERNEL void search_alone(GLOBAL const task *tasks, u32 from, u32 count, u64 begin, u32 span, u32 rotated,
                         GLOBAL const node *nodes, GLOBAL const u64 *even, GLOBAL const u64 *odd, GLOBAL u32 *found)
{
    for (u64 i = from + ALL_ITEM; i < count; i += ALL_ITEMS) {
        quest q = quest_of(tasks[i], begin, rotated, nodes, even, odd);
        u32 hit = UNFOUND;
        for (u32 tried = 0; tried < span && hit == UNFOUND; tried += NUMBERS_AT_ONCE)
            hit = try_numbers(&q, tried * q.step);
        found[i] = hit;
    }
}

/* `slices` groups per node, each of which tries `span` / `slices` steps of numbers. found[i] is UNFOUND before. */
KERNEL void search_together(GLOBAL const task *tasks, u32 slices, u64 begin, u32 span, u32 rotated,
                            GLOBAL const node *nodes, GLOBAL const u64 *even, GLOBAL const u64 *odd,
                            GLOBAL u32 *found LOCAL_ARGUMENT)
{
    LOCAL_MEMORY
    LOCAL u32 *best = (LOCAL u32 *)local_words;
    u32 i = GROUP / slices, chunk = span / slices, start = GROUP % slices * chunk, smallest = UNFOUND;
    quest q = quest_of(tasks[i], begin, rotated, nodes, even, odd);
    if (ITEM == 0)
        *best = UNFOUND;
    BARRIER();
    for (u32 tried = 0; tried < chunk && smallest == UNFOUND; tried += ITEMS * NUMBERS_AT_ONCE) {
        u32 hit = try_numbers(&q, (start + tried + ITEM * NUMBERS_AT_ONCE) * q.step);
        if (hit != UNFOUND)
            ATOMIC_MIN(best, hit);
        BARRIER();
        smallest = *best;
        BARRIER();
    }
    if (ITEM == 0 && smallest != UNFOUND)
        ATOMIC_MIN(&found[i], smallest);
}

/* Of the outcome of a launch. */
enum { O_AGAIN, O_FAILED, O_WORDS };

/* What a solved task leaves; else it is listed again, or fails for good if its budget is used up. `span`: numbers tried. */
FN void settle(task t, u32 hit, u64 begin, u64 span, GLOBAL const node *nodes, GLOBAL const u64 *budgets, GLOBAL u64 *numbers,
               GLOBAL u8 *taus, GLOBAL task *again, GLOBAL u32 *outcome)
{
    u64 budget = budgets[t.size];
    if (hit != UNFOUND && begin + hit < budget) {
        numbers[t.slot] = begin + hit;
        taus[t.slot] = nodes[t.size].tau;
    } else if (hit == UNFOUND && begin + span < budget) {
        again[ATOMIC_ADD(&outcome[O_AGAIN], 1u)] = t;
    } else {
        ATOMIC_OR(&outcome[O_FAILED], 1u);
    }
}

KERNEL void note_leaves(GLOBAL const task *tasks, u32 count, GLOBAL const u32 *found, u64 begin, u64 span,
                        GLOBAL const node *nodes, GLOBAL const u64 *budgets, GLOBAL u64 *numbers, GLOBAL u8 *taus,
                        GLOBAL task *again, GLOBAL u32 *outcome)
{
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS)
        settle(tasks[i], found[i], begin, span, nodes, budgets, numbers, taus, again, outcome);
}

/* One group per splitting, local memory for a cursor per part. */
KERNEL void part_keys(GLOBAL const task *tasks, GLOBAL const u32 *found, u64 begin, u64 span, GLOBAL const node *nodes,
                      GLOBAL const u64 *budgets, GLOBAL u64 *numbers, GLOBAL u8 *taus, GLOBAL task *again,
                      GLOBAL u32 *outcome, GLOBAL u64 *even, GLOBAL u64 *odd LOCAL_ARGUMENT)
{
    LOCAL_MEMORY
    LOCAL u32 *cursors = (LOCAL u32 *)local_words;
    task t = tasks[GROUP];
    quest q = quest_of(t, begin, 0, nodes, even, odd);
    u32 hit = found[GROUP], moved = hit == UNFOUND ? 0 : q.m;
    GLOBAL u64 *to = (t.depth & 1 ? even : odd) + t.first;
    for (u32 part = ITEM; part < q.shape->fanout; part += ITEMS)
        cursors[part] = part * q.shape->unit;
    BARRIER();
    for (u32 key = ITEM; key < moved; key += ITEMS) {
        u64 lo = q.lo[key];
        to[ATOMIC_ADD(&cursors[part_of(q.shape, position(lo + q.level + hit, q.m))], 1u)] = lo;
    }
    BARRIER();
    if (ITEM == 0)
        settle(t, hit, begin, span, nodes, budgets, numbers, taus, again, outcome);
}

/* Fails if two keys of a node are the same. `width`: at least the keys of the largest node. */
KERNEL void look_for_equal(GLOBAL const task *tasks, u32 count, u32 width, GLOBAL const u64 *even, GLOBAL const u64 *odd,
                           GLOBAL u32 *outcome)
{
    for (u64 i = ALL_ITEM; i < (u64)count * width; i += ALL_ITEMS) {
        task t = tasks[i / width];
        GLOBAL const u64 *lo = (t.depth & 1 ? odd : even) + t.first;
        u32 key = (u32)(i % width), other = key + 1;
        while (other < t.size && lo[other] != lo[key])
            other++;
        if (other < t.size)
            ATOMIC_OR(&outcome[O_FAILED], 1u);
    }
}

/* --- bit strings: bucket b has the numbers slots[b] ... slots[b + 1] - 1, in preorder --- */

KERNEL void measure_buckets(u32 buckets, GLOBAL const u32 *slots, GLOBAL const u64 *numbers, GLOBAL const u8 *taus,
                            GLOBAL u64 *lengths)
{
    for (u64 b = ALL_ITEM; b < buckets; b += ALL_ITEMS) {
        u64 bits = 0;
        for (u32 i = slots[b]; i < slots[b + 1]; i++)
            bits += taus[i] + (numbers[i] >> taus[i]) + 1;
        lengths[b] = bits;
    }
}

/* `starts`: of the buckets' bit strings in `bits`. */
KERNEL void pack_buckets(u32 buckets, GLOBAL const u32 *slots, GLOBAL const u64 *starts, GLOBAL const u32 *offsets,
                         GLOBAL const node *nodes, GLOBAL const u64 *numbers, GLOBAL const u8 *taus, GLOBAL u32 *bits)
{
    for (u64 b = ALL_ITEM; b < buckets; b += ALL_ITEMS) {
        u64 fixed = starts[b], unary = fixed + nodes[offsets[b + 1] - offsets[b]].fixed;
        for (u32 i = slots[b]; i < slots[b + 1]; i++) {
            put_number(bits, fixed, numbers[i], taus[i]);
            fixed += taus[i];
            unary += numbers[i] >> taus[i];
            put_number(bits, unary++, 1, 1);
        }
    }
}

/* hi and id of the group's records to their keys' indices, as place_records. `starts`: of the buckets' bit strings in `bits`. */
KERNEL void place_by_rice(u32 count, u64 all, u64 first, u32 leaf, u32 rotate, GLOBAL const node *nodes, GLOBAL const u64 *lo,
                          GLOBAL const u64 *hi, GLOBAL const u64 *ids, GLOBAL const u32 *offsets, GLOBAL const u64 *starts,
                          GLOBAL const u64 *bits, u64 bit_count, GLOBAL u32 *taken, u32 wanted, GLOBAL u64 *placed_hi,
                          GLOBAL u64 *placed_ids)
{
    trees t = {bits, bit_count, nodes, leaf};
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS) {
        u64 bucket = mulhi64(hi[i], all) - first;
        u32 begin = offsets[bucket], m = offsets[bucket + 1] - begin;
        place_record((u32)i, begin + rice_locate(&t, lo[i], m, starts[bucket], rotate), hi, ids, taken, wanted, placed_hi, placed_ids);
    }
}

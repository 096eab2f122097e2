/* From keys to buckets: a group is some buckets one after the other, whose records come to stand in the order of their buckets.
 *
 *     count_keys    how many keys every bucket of the function has
 *     group_keys    hash and number of every key of the group to a place of its bucket */

/* `hashed` keys are 16 bytes, hi and lo of their own hash. */
FN hash128 hash_in(const key_batch *keys, u32 hashed, u64 i, u64 seed)
{
    if (!hashed)
        return key_hash(keys, i, seed);
    hash128 h;
    h.hi = load64(keys->data + 16 * i);
    h.lo = load64(keys->data + 16 * i + 8);
    return h;
}

/* `all`: buckets of the function. */
KERNEL void count_keys(KEY_ARGUMENTS, u32 hashed, u64 seed, u64 all, GLOBAL u32 *sizes)
{
    key_batch keys = KEYS_GIVEN;
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS)
        ATOMIC_ADD(&sizes[mulhi64(hash_in(&keys, hashed, i, seed).hi, all)], 1u);
}

/* The group has `buckets` from `first` on; `starts`: the first record of each, `cursors`: zero for each; `id`: number of the first key. */
KERNEL void group_keys(KEY_ARGUMENTS, u32 hashed, u64 seed, u64 all, u64 first, u64 buckets, u64 id, GLOBAL const u32 *starts,
                       GLOBAL u32 *cursors, GLOBAL u64 *lo, GLOBAL u64 *hi, GLOBAL u64 *ids)
{
    key_batch keys = KEYS_GIVEN;
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS) {
        hash128 h = hash_in(&keys, hashed, i, seed);
        u64 bucket = mulhi64(h.hi, all) - first;
        if (bucket >= buckets)
            continue;
        u32 to = starts[bucket] + ATOMIC_ADD(&cursors[bucket], 1u);
        lo[to] = h.lo;
        hi[to] = h.hi;
        ids[to] = id + i;
    }
}

/* Writes the low k bits of a number, k < 64, from bit `at` on; they are zero so far. */
FN void put_number(GLOBAL u32 *bits, u64 at, u64 number, u32 k)
{
    for (number &= ((u64)1 << k) - 1; number;) {
        u32 shift = (u32)at & 31;
        ATOMIC_OR(&bits[at >> 5], (u32)(number << shift)); /* buckets share words */
        number >>= 32 - shift;
        at += 32 - shift;
    }
}

/* Record i of a group goes to index `to`, both counted from the group's first. taken: a bit for every index; without `wanted` that alone. */
FN void place_record(u32 i, u32 to, GLOBAL const u64 *hi, GLOBAL const u64 *ids, GLOBAL u32 *taken, u32 wanted, GLOBAL u64 *placed_hi,
                     GLOBAL u64 *placed_ids)
{
    ATOMIC_OR(&taken[to >> 5], 1u << (to & 31));
    if (wanted) {
        placed_hi[to] = hi[i];
        placed_ids[to] = ids[i];
    }
}

KERNEL void copy_words(GLOBAL const u64 *from, u64 count, GLOBAL u64 *to)
{
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS)
        to[i] = from[i];
}

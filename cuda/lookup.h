/* Look-ups of batches: one work-item per key and turn, from its bytes to its index – find.h, as on the processor –, then to its value. */

/* Numbers of a file, in the order in which _device.py puts them. */
enum { N_KEYS, N_SEED, N_BUCKETS, N_METHOD, N_ROOT_BITS, N_LEAF, N_LARGEST, N_FINGERPRINT_BITS, N_TREES_LENGTH, N_DIRECTORY_LENGTH,
       N_EXACT, N_STORED_LENGTH, N_STORED_WIDTH, N_STORED_VARY, N_KEY_OFFSETS_LENGTH };

/* How a kernel is given a file's function: numbers, tables, sections. */
#define FUNCTION_ARGUMENTS                                                                                                      \
    GLOBAL const u64 *numbers, GLOBAL const node *nodes, GLOBAL const chain_link *links, GLOBAL const u16 *fields,              \
        GLOBAL const u16 *multiplier, GLOBAL const u8 *trees_section, GLOBAL const u8 *directory_section,                      \
        GLOBAL const u8 *fingerprints, GLOBAL const u8 *stored, GLOBAL const u8 *key_offsets
#define FUNCTION_GIVEN                                                                                                          \
    numbers, nodes, links, fields, multiplier, trees_section, directory_section, fingerprints, stored, key_offsets

/* False if the file contradicts itself. `method` is what numbers[N_METHOD] says: kernels have a text of their own for chained seeds and
 * for the others, since one for all takes so many registers that a GPU holds half as many items. */
FN bool function_given(function *f, u32 method, FUNCTION_ARGUMENTS)
{
    f->keys = numbers[N_KEYS];
    f->seed = numbers[N_SEED];
    f->buckets = numbers[N_BUCKETS];
    f->method = method;
    f->root_bits = (u32)numbers[N_ROOT_BITS];
    f->leaf = (u32)numbers[N_LEAF];
    f->largest = (u32)numbers[N_LARGEST];
    f->nodes = nodes;
    f->chains.links = links;
    f->chains.fields = fields;
    f->chains.multiplier = multiplier;
    f->fingerprint_bits = (u32)numbers[N_FINGERPRINT_BITS];
    f->fingerprints = fingerprints;
    f->stored = 0;
    if (numbers[N_EXACT] && !function_open_keys(f, stored, numbers[N_STORED_LENGTH], numbers[N_STORED_WIDTH],
                                                numbers[N_STORED_VARY] != 0, key_offsets, numbers[N_KEY_OFFSETS_LENGTH]))
        return false;
    return function_open(f, method == METHOD_CHAINED, trees_section, numbers[N_TREES_LENGTH], directory_section,
                         numbers[N_DIRECTORY_LENGTH]);
}

/* The method of a function whose trees are of Golomb-Rice numbers. */
#define RICE_METHOD (numbers[N_METHOD] == METHOD_ROTATION ? METHOD_ROTATION : METHOD_BRUTE)

FN void look_up_all(const function *f, bool sound, const key_batch *keys, u32 filter, GLOBAL u32 *corrupt, GLOBAL i64 *out)
{
    for (u64 i = ALL_ITEM; i < keys->count; i += ALL_ITEMS) {
        u64 length;
        GLOBAL const u8 *key = key_at(keys, i, &length);
        i64 index = sound ? find_key(f, key, length, filter != 0) : (i64)STATUS_CORRUPT;
        if (index == STATUS_CORRUPT)
            ATOMIC_OR(corrupt, 1u);
        out[i] = index;
    }
}

/* Indices of keys, as mphf_find_batch and, without `filter`, mphf_index_batch; keys > 0. *corrupt becomes 1 if the file contradicts
 * itself. */
KERNEL void look_up_chained(FUNCTION_ARGUMENTS, KEY_ARGUMENTS, u32 filter, GLOBAL u32 *corrupt, GLOBAL i64 *out)
{
    function f;
    bool sound = function_given(&f, METHOD_CHAINED, FUNCTION_GIVEN);
    key_batch keys = KEYS_GIVEN;
    look_up_all(&f, sound, &keys, filter, corrupt, out);
}

KERNEL void look_up_rice(FUNCTION_ARGUMENTS, KEY_ARGUMENTS, u32 filter, GLOBAL u32 *corrupt, GLOBAL i64 *out)
{
    function f;
    bool sound = function_given(&f, RICE_METHOD, FUNCTION_GIVEN);
    key_batch keys = KEYS_GIVEN;
    look_up_all(&f, sound, &keys, filter, corrupt, out);
}

/* *first: the smallest i whose index is below 0, if it is smaller than what stands there. */
KERNEL void first_absent(GLOBAL const i64 *indices, u64 count, GLOBAL u32 *first)
{
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS)
        if (indices[i] < 0)
            ATOMIC_MIN(first, (u32)i);
}

/* out[i] = the row of `width` bytes at indices[i]; of an index below 0, the row `missing`. */
KERNEL void gather_rows(GLOBAL const u8 *rows, u64 width, GLOBAL const i64 *indices, u64 count, GLOBAL const u8 *missing,
                        GLOBAL u8 *out)
{
    for (u64 at = ALL_ITEM; at < count * width; at += ALL_ITEMS) { /* neighbours read neighbouring bytes of a row */
        u64 i = at / width, byte = at - i * width;
        out[at] = indices[i] < 0 ? missing[byte] : rows[(u64)indices[i] * width + byte];
    }
}

/* out[i] = 1 where a key was found, else 0. */
KERNEL void mark_found(GLOBAL const i64 *indices, u64 count, GLOBAL u8 *out)
{
    for (u64 i = ALL_ITEM; i < count; i += ALL_ITEMS)
        out[i] = indices[i] >= 0;
}

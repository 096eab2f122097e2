/* Keys in a text: an item per place and turn. What is found is appended by a counter, in any order; the host sorts it. If there are more
 * than have room, the counter says how many, and the host runs the kernel again with as much.
 *
 *     scan_pattern    one pattern, which lies in local memory
 *     scan_anywhere…  keys of a dictionary: prefilter (native/scan_filter.h), hash, index, fingerprint, key (find.h)
 *     scan_windows…   stretches of given widths */

#define FOUND_ARGUMENTS GLOBAL u32 *found, u32 room, GLOBAL i64 *starts, GLOBAL i64 *lengths, GLOBAL i64 *indices
#define FOUND_GIVEN found, room, starts, lengths, indices

FN void append(FOUND_ARGUMENTS, u64 start, u64 length, i64 index)
{
    u32 i = ATOMIC_ADD(found, 1u);
    if (i >= room)
        return;
    starts[i] = (i64)start;
    lengths[i] = (i64)length;
    indices[i] = index;
}

/* Occurrences that begin before `end`; all of each lies in the text. Of the pattern, `staged` bytes are kept in local memory. */
KERNEL void scan_pattern(GLOBAL const u8 *pattern, u64 size, u32 staged, GLOBAL const u8 *text, u64 end, FOUND_ARGUMENTS LOCAL_ARGUMENT)
{
    LOCAL_MEMORY
    LOCAL u8 *near = (LOCAL u8 *)local_words;
    for (u32 i = ITEM; i < staged; i += ITEMS)
        near[i] = pattern[i];
    BARRIER();
    for (u64 at = ALL_ITEM; at < end; at += ALL_ITEMS) {
        u64 same = 0;
        while (same < staged && text[at + same] == near[same])
            same++;
        if (same == staged && same_bytes(text + at + staged, pattern + staged, size - staged))
            append(FOUND_GIVEN, at, size, 0);
    }
}

/* Appends a key if there is one; or STATUS_CORRUPT. t: 0 without a prefilter. */
FN void look_at(const function *f, const scan_tables *t, GLOBAL const u8 *text, u64 at, u64 length, u64 first, FOUND_ARGUMENTS)
{
    if (t && !scan_holds(t, scan_key_element(text + at, first, length)))
        return;
    i64 index = find_key(f, text + at, length, true);
    if (index != ABSENT)
        append(FOUND_GIVEN, at, length, index);
}

FN void look_anywhere(const function *f, const scan_tables *t, GLOBAL const u8 *text, u64 length, u64 end, FOUND_ARGUMENTS)
{
    for (u64 at = ALL_ITEM; at < end; at += ALL_ITEMS) {
        u64 left = length - at, first = scan_first(text + at, left);
        u32 bits = scan_lengths(t, first);
        if (bits)
            bits = scan_eight(t, first, bits);
        for (; bits & (SCAN_ALL >> 1); bits &= bits - 1) {
            u64 size = trailing_zeros64(bits) + 1;
            if (size <= left)
                look_at(f, t, text, at, size, first, FOUND_GIVEN);
        }
        if (!bits || left < SCAN_LONG || !scan_holds(t, scan_sixteen_element(text + at)))
            continue;
        for (u64 k = 0; k < t->long_count && t->long_lengths[k] <= left; k++)
            look_at(f, t, text, at, t->long_lengths[k], first, FOUND_GIVEN);
    }
}

FN void look_at_windows(const function *f, const scan_tables *t, GLOBAL const u64 *widths, u32 width_count, GLOBAL const u8 *text,
                        u64 length, u64 end, FOUND_ARGUMENTS)
{
    for (u64 at = ALL_ITEM; at < end; at += ALL_ITEMS) {
        u64 first = scan_first(text + at, length - at);
        for (u32 k = 0; k < width_count && widths[k] <= length - at; k++)
            look_at(f, t, text, at, widths[k], first, FOUND_GIVEN);
    }
}

/* A kernel for chained seeds and one for the others, see function_given. Keys that begin before `end`; keys > 0. Without a prefilter,
 * filter_length is 0. */
#define SCAN_KERNELS(suffix, method)                                                                                                \
    KERNEL void scan_anywhere_##suffix(FUNCTION_ARGUMENTS, GLOBAL const u8 *filter, u64 filter_length, GLOBAL const u8 *text,       \
                                       u64 length, u64 end, FOUND_ARGUMENTS)                                                        \
    {                                                                                                                               \
        function f;                                                                                                                 \
        scan_tables t;                                                                                                              \
        if (function_given(&f, method, FUNCTION_GIVEN) && scan_tables_open(&t, filter, filter_length))                              \
            look_anywhere(&f, &t, text, length, end, FOUND_GIVEN);                                                                  \
        else if (ALL_ITEM == 0)                                                                                                     \
            append(FOUND_GIVEN, 0, 0, STATUS_CORRUPT);                                                                              \
    }                                                                                                                               \
    KERNEL void scan_windows_##suffix(FUNCTION_ARGUMENTS, GLOBAL const u8 *filter, u64 filter_length, GLOBAL const u64 *widths,     \
                                      u32 width_count, GLOBAL const u8 *text, u64 length, u64 end, FOUND_ARGUMENTS)                 \
    {                                                                                                                               \
        function f;                                                                                                                 \
        scan_tables t;                                                                                                              \
        if (function_given(&f, method, FUNCTION_GIVEN) && (!filter_length || scan_tables_open(&t, filter, filter_length)))          \
            look_at_windows(&f, filter_length ? &t : 0, widths, width_count, text, length, end, FOUND_GIVEN);                       \
        else if (ALL_ITEM == 0)                                                                                                     \
            append(FOUND_GIVEN, 0, 0, STATUS_CORRUPT);                                                                              \
    }
SCAN_KERNELS(chained, METHOD_CHAINED)
SCAN_KERNELS(rice, RICE_METHOD)

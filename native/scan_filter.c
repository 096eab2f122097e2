/* A prefilter opened, with every size checked, and filled. */
#include <stdlib.h>

#include "keys.h"
#include "scan.h"

static bool sound(scan_tables *t, const u8 *section, u64 length)
{
    if (!scan_tables_open(t, section, length))
        return false;
    for (u64 i = 0; i < t->long_count; i++)
        if (t->long_lengths[i] < SCAN_LONG || t->long_lengths[i] >> 62 || (i && t->long_lengths[i] <= t->long_lengths[i - 1]))
            return false;
    return true;
}

mphf_scan_filter *mphf_scan_filter_new(const uint8_t *section, uint64_t length, int *status)
{
    *status = STATUS_NO_MEMORY;
    mphf_scan_filter *filter = calloc(1, sizeof *filter);
    if (!filter)
        return NULL;
    *status = sound(&filter->tables, section, length) ? STATUS_OK : STATUS_CORRUPT;
    if (*status == STATUS_OK)
        return filter;
    free(filter);
    return NULL;
}

void mphf_scan_filter_free(mphf_scan_filter *filter) { free(filter); }

uint64_t mphf_scan_longest(const mphf_scan_filter *filter)
{
    const scan_tables *t = &filter->tables;
    return t->long_count ? t->long_lengths[t->long_count - 1] : SCAN_LONG - 1;
}

uint64_t mphf_scan_lengths(const mphf_scan_filter *filter) { return SCAN_LONG - 1 + filter->tables.long_count; }

static void enter(const scan_tables *t, u64 *words, u64 element) { words[scan_word_at(element, t->word_shift)] |= scan_bits(element); }

int mphf_scan_filter_fill(uint8_t *section, uint64_t length, const key_batch *keys)
{
    scan_tables t;
    if (!sound(&t, section, length))
        return STATUS_CORRUPT;
    u8 *starts = t.starts ? section + (t.starts - section) : NULL;
    u32 *heads = (u32 *)(section + ((const u8 *)t.heads - section));
    u64 *words = (u64 *)(section + ((const u8 *)t.words - section));
    for (u64 i = 0; i < keys->count; i++) {
        u64 size;
        const u8 *key = key_at(keys, i, &size);
        if (!size)
            continue;
        u64 first = scan_first(key, size);
        enter(&t, words, scan_key_element(key, first, size));
        if (size < 4) {
            if (!starts)
                return STATUS_CORRUPT;
            u32 step = size == 1 ? 256 : 65536; /* whatever follows a single byte */
            for (u32 at = (u32)first & 0xFFFF; at < 65536; at += step)
                starts[at] |= (u8)(1u << (size - 1));
            continue;
        }
        u32 hash = SCAN_HASH((u32)first), at = hash >> t.head_shift;
        heads[at] |= 1u << (size < SCAN_LONG ? size - 1 : SCAN_LONG_BIT);
        if (size > 4)
            heads[at] |= 1u << (SCAN_MARKS + SCAN_FIFTH(hash, (u32)(first >> 32) & 0xFF));
        if (size > 8)
            enter(&t, words, scan_eight_element(first));
        if (size >= SCAN_LONG)
            enter(&t, words, scan_sixteen_element(key));
    }
    return STATUS_OK;
}

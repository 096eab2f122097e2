/* Chooses the line, lays bit strings out along it, writes the directory of chained seeds. */
#include <stdlib.h>

#include "chain_directory.h"
#include "native.h"

/* Bits of a bucket of m keys. */
static u64 needed(const mphf_tables *t, u32 m) { return m < 2 ? 0 : t->parameters.root_bits + t->nodes[m].fixed / BIT; }

static u32 smallest_entry(const u32 *sizes, u64 buckets, u64 smallest, u64 largest)
{
    if (largest - smallest < 256)
        return 1;
    u64 per_line = line_buckets(2), sum = 0;
    for (u64 i = 0; i < buckets; i++) {
        sum = i % per_line ? sum : 0;
        sum += sizes[i] - smallest;
        if (sum > 0xFFFF)
            return 4;
    }
    return 2;
}

/* The edge above the mean size of the upper hull of (size, bits) gives the slope, the buckets that stick out most the offset. */
int mphf_chain_line(const mphf_tables *t, const uint32_t *sizes, uint64_t buckets, chain_line *line)
{
    *line = (chain_line){0, 0, 0, 1};
    if (!buckets)
        return STATUS_OK;
    u64 keys = 0, smallest = ~0ull, largest = 0;
    for (u64 i = 0; i < buckets; i++) {
        keys += sizes[i];
        smallest = sizes[i] < smallest ? sizes[i] : smallest;
        largest = sizes[i] > largest ? sizes[i] : largest;
    }
    u8 *present = calloc(largest + 1, 1);
    u32 *corner = malloc((largest + 1) * sizeof *corner);
    if (!present || !corner) {
        free(present);
        free(corner);
        return STATUS_NO_MEMORY;
    }
    for (u64 i = 0; i < buckets; i++)
        present[sizes[i]] = 1;
    u64 count = 0;
    for (u32 m = (u32)smallest; m <= largest; m++) {
        if (!present[m])
            continue;
        for (; count >= 2; count--) { /* drop corners on or below the line from the one before to m */
            u32 a = corner[count - 2], b = corner[count - 1];
            int64_t rise = (int64_t)(needed(t, b) - needed(t, a)), whole = (int64_t)(needed(t, m) - needed(t, a));
            if (rise * (m - a) > whole * (b - a))
                break;
        }
        corner[count++] = m;
    }
    for (u64 i = 1; i < count; i++) {
        u32 a = corner[i - 1], b = corner[i];
        line->slope = needed(t, b) > needed(t, a) ? ((needed(t, b) - needed(t, a)) << 16) / (b - a) : 0;
        if (b * buckets >= keys)
            break;
    }
    for (u32 m = (u32)smallest; m <= largest; m++) {
        int64_t offset = (int64_t)((needed(t, m) << 16) - line->slope * m);
        if (present[m] && (m == smallest || offset > line->offset))
            line->offset = offset;
    }
    line->smallest = smallest;
    line->entry_bytes = smallest_entry(sizes, buckets, smallest, largest);
    free(present);
    free(corner);
    return STATUS_OK;
}

uint64_t mphf_chain_start(const chain_line *line, uint64_t keys_before, uint64_t bucket)
{
    return chain_directory_start(line->slope, (u64)line->offset, keys_before, bucket);
}

void mphf_chain_lay_out(const chain_line *line, const mphf_partition *p, uint64_t first, uint64_t buckets,
                        uint64_t keys_before, uint64_t *words)
{
    for (u64 i = 0; i < buckets; i++) {
        u64 end = i + 1 < buckets ? p->starts[i + 1] : p->bit_count;
        mphf_copy_bits(words, mphf_chain_start(line, keys_before, first + i), p->bits, p->starts[i], end - p->starts[i]);
        keys_before += p->sizes[i];
    }
}

uint64_t mphf_chain_directory_words(const chain_line *line, uint64_t buckets, uint64_t salt_count)
{
    return LINE_HEADER_WORDS + line_count(buckets, line->entry_bytes) * (LINE_BYTES / 8) + 2 * salt_count;
}

void mphf_chain_directory_build(const chain_line *line, const uint32_t *sizes, uint64_t buckets, const root_salt *salts,
                                uint64_t salt_count, uint64_t *words)
{
    u64 keys = 0, per_line = line_buckets(line->entry_bytes), lines = line_count(buckets, line->entry_bytes);
    memset(words, 0, mphf_chain_directory_words(line, buckets, salt_count) * sizeof *words);
    words[0] = line->slope;
    words[1] = (u64)line->offset;
    words[2] = line->smallest;
    words[3] = line->entry_bytes;
    words[4] = salt_count;
    u8 *at = (u8 *)(words + LINE_HEADER_WORDS);
    for (u64 i = 0; i < lines; i++, at += LINE_BYTES) {
        u32 sum = 0;
        memcpy(at + LINE_ENTRY_BYTES, &keys, LINE_BYTES - LINE_ENTRY_BYTES); /* little-endian: its lower 48 bits */
        for (u64 j = 0; j < per_line && i * per_line + j < buckets; j++) {
            u32 size = sizes[i * per_line + j];
            keys += size;
            sum += size - (u32)line->smallest;
            if (line->entry_bytes == 1)
                at[j] = (u8)(size - line->smallest);
            else
                memcpy(at + (j + 1) * line->entry_bytes, &sum, line->entry_bytes);
        }
    }
    if (salt_count)
        memcpy(at, salts, salt_count * sizeof *salts);
}

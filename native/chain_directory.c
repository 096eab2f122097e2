/* Chooses the line, lays bit strings out along it, writes and opens the directory of chained seeds. */
#include <stdlib.h>

#include "chain_directory.h"

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
    return (line->slope * keys_before + (u64)line->offset * bucket) >> 16;
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

static u64 lines_of(u64 buckets, u32 entry_bytes)
{
    u64 per_line = line_buckets(entry_bytes);
    return (buckets + per_line - 1) / per_line;
}

uint64_t mphf_chain_directory_words(const chain_line *line, uint64_t buckets, uint64_t salt_count)
{
    return LINE_HEADER_WORDS + lines_of(buckets, line->entry_bytes) * (LINE_BYTES / 8) + 2 * salt_count;
}

void mphf_chain_directory_build(const chain_line *line, const uint32_t *sizes, uint64_t buckets, const root_salt *salts,
                                uint64_t salt_count, uint64_t *words)
{
    u64 keys = 0, per_line = line_buckets(line->entry_bytes), lines = lines_of(buckets, line->entry_bytes);
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

bool chain_directory_open(chain_directory *d, const u8 *section, u64 length, u64 buckets, u64 keys, u64 bit_words)
{
    const u64 *words = (const u64 *)section;
    if (length % 8 || length / 8 < LINE_HEADER_WORDS || (words[3] != 1 && words[3] != 2 && words[3] != 4))
        return false;
    chain_line line = {words[0], (int64_t)words[1], words[2], (u32)words[3]};
    u64 lines = lines_of(buckets, line.entry_bytes), rest = length / 8 - LINE_HEADER_WORDS;
    if (buckets >> 48 || lines > rest / (LINE_BYTES / 8) || line.smallest > LARGEST_BUCKET ||
        words[4] != (rest - lines * (LINE_BYTES / 8)) / 2 || (rest & 1) || keys >> 48 || words[5] | words[6] | words[7])
        return false;
    d->lines = section + LINE_HEADER_WORDS * 8;
    d->slope = line.slope;
    d->offset = (u64)line.offset;
    d->smallest = line.smallest;
    d->entry_bytes = line.entry_bytes;
    d->per_line = line_buckets(line.entry_bytes);
    d->inverse = ~0ull / d->per_line + 1;
    d->salts = (const root_salt *)(d->lines + lines * LINE_BYTES);
    d->salt_count = words[4];
    return (mphf_chain_start(&line, keys, buckets) + 63) / 64 == bit_words;
}

/* Writes Elias-Fano sequences and the directory made of two. */
#include <stdlib.h>

#include "directory.h"
#include "native.h"

uint64_t elias_fano_words(uint64_t count, uint64_t last) { return elias_fano_layout_of(count, last).all; }

void elias_fano_build(const uint64_t *values, uint64_t count, uint64_t *words)
{
    u64 last = values[count - 1], start = 0;
    elias_fano_layout l = elias_fano_layout_of(count, last);
    memset(words, 0, l.all * sizeof *words);
    u64 *long_samples = words + 2, *lower = long_samples + l.long_samples + l.short_samples, *upper = lower + l.lower;
    u16 *short_samples = (u16 *)(long_samples + l.long_samples);
    words[0] = count;
    words[1] = last;
    for (u64 i = 0; i < count; i++) {
        u64 one = (values[i] >> l.lower_bits) + i, at = i * l.lower_bits;
        u64 low = values[i] & ((1ull << l.lower_bits) - 1);
        u32 shift = (u32)at & 63;
        upper[one >> 6] |= 1ull << (one & 63);
        lower[at >> 6] |= low << shift;
        lower[(at >> 6) + 1] |= low >> 1 >> (63 - shift);
        if (i % EF_LONG == 0)
            long_samples[i / EF_LONG] = start = one;
        if (i % EF_SHORT == 0)
            short_samples[i / EF_SHORT] = (u16)(one - start < EF_FAR ? one - start : EF_FAR);
    }
}

typedef struct {
    u64 size, bits; /* of buckets of `size` keys, the fewest bits */
} corner;

/* Whether b lies on or above the line from a to c. */
static bool above(corner a, corner b, corner c)
{
    __int128 left = ((__int128)b.bits - a.bits) * (__int128)(c.size - a.size);
    return left >= ((__int128)c.bits - a.bits) * (__int128)(b.size - a.size);
}

/* The slope of the line under all (size, fewest bits) that is highest at the mean size: an edge of their lower hull. Then the
 * starts, less the line, grow by the least on average. `corners` has a place for every size up to the largest. */
static u64 best_slope(const u64 *keys, const u64 *starts, u64 buckets, corner *corners, u64 sizes)
{
    for (u64 i = 0; i < sizes; i++)
        corners[i] = (corner){i, NOWHERE};
    for (u64 i = 0; i < buckets; i++) {
        corner *c = &corners[keys[i + 1] - keys[i]];
        u64 bits = starts[i + 1] - starts[i];
        c->bits = bits < c->bits ? bits : c->bits;
    }
    u64 count = 0; /* of the hull's corners, kept in front */
    for (u64 i = 0; i < sizes; i++) {
        if (corners[i].bits == NOWHERE)
            continue;
        while (count >= 2 && above(corners[count - 2], corners[count - 1], corners[i]))
            count--;
        corners[count++] = corners[i];
    }
    for (u64 i = 1; i < count; i++)
        if ((unsigned __int128)corners[i].size * buckets >= keys[buckets]) {
            u64 from = corners[i - 1].bits, to = corners[i].bits;
            return to < from ? 0 : (u64)(((unsigned __int128)(to - from) << 32) / (corners[i].size - corners[i - 1].size));
        }
    return 0;
}

int mphf_directory_line(const uint64_t *keys, const uint64_t *starts, uint64_t buckets, directory_line *line)
{
    *line = (directory_line){0, 0, 0};
    if (!buckets)
        return STATUS_OK;
    u64 largest = 0, before = 0;
    line->kmin = NOWHERE;
    for (u64 i = 0; i < buckets; i++) {
        u64 size = keys[i + 1] - keys[i];
        largest = size > largest ? size : largest;
        line->kmin = size < line->kmin ? size : line->kmin;
    }
    corner *corners = malloc((largest + 1) * sizeof *corners);
    if (!corners)
        return STATUS_NO_MEMORY;
    line->slope = best_slope(keys, starts, buckets, corners, largest + 1);
    free(corners);
    for (u64 i = 0; i < buckets; i++) {
        u64 d = starts[i + 1] - sloped(line->slope, keys[i + 1]), step = d - before;
        if (i == 0 || (int64_t)step < (int64_t)line->pmin)
            line->pmin = step;
        before = d;
    }
    return STATUS_OK;
}

static void straightened(const directory_line *f, const u64 *keys, const u64 *starts, u64 i, u64 *k, u64 *d)
{
    *k = keys[i] - i * f->kmin;
    *d = starts[i] - sloped(f->slope, keys[i]) - i * f->pmin;
}

uint64_t mphf_directory_words(const uint64_t *keys, const uint64_t *starts, uint64_t buckets, const directory_line *line)
{
    u64 k, d;
    straightened(line, keys, starts, buckets, &k, &d);
    return 3 + elias_fano_words(buckets + 1, k) + elias_fano_words(buckets + 1, d);
}

int mphf_directory_build(const uint64_t *keys, const uint64_t *starts, uint64_t buckets, const directory_line *line,
                         uint64_t *words)
{
    u64 *k = malloc((buckets + 1) * sizeof *k), *d = malloc((buckets + 1) * sizeof *d);
    if (k && d) {
        for (u64 i = 0; i <= buckets; i++)
            straightened(line, keys, starts, i, &k[i], &d[i]);
        words[0] = line->kmin;
        words[1] = line->slope;
        words[2] = line->pmin;
        elias_fano_build(k, buckets + 1, words + 3);
        elias_fano_build(d, buckets + 1, words + 3 + elias_fano_words(buckets + 1, k[buckets]));
    }
    int status = k && d ? STATUS_OK : STATUS_NO_MEMORY;
    free(k);
    free(d);
    return status;
}

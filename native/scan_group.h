/* The end of every scan: stretches of a text that may be keys are looked up in groups, and what is found is appended to the hits. */
#ifndef MPHF_SCAN_GROUP_H
#define MPHF_SCAN_GROUP_H

#include "scan.h"

typedef struct {
    const u8 *keys[GROUP]; /* in the text, but where a scan spells them differently */
    u64 lengths[GROUP];    /* of the keys */
    u64 starts[GROUP], spans[GROUP]; /* what the text has there */
    u32 count;
} scan_group;

/* Room has ended: whoever goes on begins at `start`, so what was found there is forgotten. */
static int scan_full(scan_hits *out, u64 start)
{
    while (out->count && out->start[out->count - 1] == (int64_t)start)
        out->count--;
    out->next = start;
    return SCAN_FULL;
}

/* STATUS_OK, STATUS_CORRUPT or SCAN_FULL. The group is empty afterwards. */
static int scan_look_up(const mphf_reader *r, scan_group *g, scan_hits *out)
{
    hash128 h[GROUP];
    int64_t index[GROUP];
    u32 count = g->count;
    g->count = 0;
    if (!count)
        return STATUS_OK;
    if (out->capacity - out->count < count)
        return scan_full(out, g->starts[0]);
    for (u32 i = 0; i < count; i++)
        h[i] = xxh3_128(g->keys[i], g->lengths[i], r->function.seed);
    if (index_group(&r->function, h, count, true, index) != STATUS_OK)
        return STATUS_CORRUPT;
    for (u32 i = 0; out->numbers && i < count; i++)
        if (index[i] >= 0)
            __builtin_prefetch(out->numbers + index[i]);
    if (r->function.stored && confirm_group(&r->function, g->keys, g->lengths, count, index) != STATUS_OK)
        return STATUS_CORRUPT;
    for (u32 i = 0; out->numbers && i < count; i++)
        if (index[i] >= 0)
            index[i] = out->numbers[index[i]];
    u64 n = out->count;
    for (u32 i = 0; i < count; i++) { /* without a branch: what is no hit is written over */
        out->start[n] = (int64_t)g->starts[i];
        out->length[n] = (int64_t)g->spans[i];
        out->index[n] = index[i];
        n += index[i] >= 0;
    }
    out->count = n;
    return STATUS_OK;
}

/* Adds a stretch of the text that is spelled as the key; a full group is looked up. */
static inline int scan_add(const mphf_reader *r, scan_group *g, const u8 *text, u64 start, u64 length, scan_hits *out)
{
    u32 i = g->count++;
    g->keys[i] = text + start;
    g->starts[i] = start;
    g->lengths[i] = g->spans[i] = length;
    return g->count < GROUP ? STATUS_OK : scan_look_up(r, g, out);
}

#endif

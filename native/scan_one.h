/* The occurrences of one pattern, overlapping ones too: its first and last byte are looked for in vectors of the text, and where both
 * stand at their distance the rest is compared. */
#include "scan.h"

static inline byte_vec byte_lanes(u8 byte) { return (byte_vec){0} + byte; }

static inline byte_vec load_bytes(const u8 *from)
{
    byte_vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* False: no room. */
static inline bool scan_one_at(const u8 *pattern, u64 size, const u8 *text, u64 at, scan_hits *out)
{
    if (memcmp(text + at, pattern, size))
        return true;
    if (out->count == out->capacity) {
        out->next = at;
        return false;
    }
    out->start[out->count] = (int64_t)at;
    out->length[out->count] = (int64_t)size;
    out->index[out->count++] = 0;
    return true;
}

static int scan_one(const u8 *pattern, u64 size, const scan_stretch *s, scan_hits *out)
{
    const u8 *text = s->text;
    u64 at = s->begin, end = s->length < size ? 0 : s->length - size + 1;
    end = s->end < end ? s->end : end;
    byte_vec first = byte_lanes(pattern[0]), last = byte_lanes(pattern[size - 1]);
    for (; at < end && end - at >= BYTES; at += BYTES) {
        u64 both = bytes_set((byte_vec)(load_bytes(text + at) == first) & (byte_vec)(load_bytes(text + at + size - 1) == last));
        for (; both; both &= both - 1)
            if (!scan_one_at(pattern, size, text, at + trailing_zeros64(both), out))
                return SCAN_FULL;
    }
    for (; at < end; at++)
        if (!scan_one_at(pattern, size, text, at, out))
            return SCAN_FULL;
    out->next = s->end;
    return STATUS_OK;
}

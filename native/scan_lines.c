/* Hits as lines, for the command line. */
#include "native.h"
#include "words.h"

/* Decimal digits of a number, at `to`; at most 20. Returns how many. */
static u64 digits(u64 number, u8 *to)
{
    u8 reversed[20];
    u64 count = 0;
    do
        reversed[count++] = (u8)('0' + number % 10);
    while (number /= 10);
    for (u64 i = 0; i < count; i++)
        to[i] = reversed[count - 1 - i];
    return count;
}

uint64_t mphf_scan_lines(const uint8_t *text, uint64_t base, const int64_t *start, const int64_t *length, uint64_t count,
                         const uint8_t *prefix, uint64_t prefix_length, int offsets, uint8_t end, uint8_t *out, uint64_t room,
                         uint64_t *used)
{
    u64 at = 0, i = 0;
    for (; i < count; i++) {
        u64 own = (u64)length[i];
        if (room - at < prefix_length + own + 22)
            break;
        memcpy(out + at, prefix, prefix_length);
        at += prefix_length;
        if (offsets) {
            at += digits((u64)start[i], out + at);
            out[at++] = ':';
        }
        memcpy(out + at, text + ((u64)start[i] - base), own);
        at += own;
        out[at++] = end;
    }
    *used = at;
    return i;
}

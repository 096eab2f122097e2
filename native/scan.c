/* Scans, by the instruction set of the reader. */
#include "scan.h"

#include "reader.h"
#include "utf8.h"

static int nothing(const scan_stretch *s, scan_hits *out)
{
    out->next = s->end;
    return STATUS_OK;
}

int mphf_scan_anywhere(const mphf_reader *r, const mphf_scan_filter *filter, const scan_stretch *s, scan_hits *out)
{
    return r->function.keys ? r->set->scan_anywhere(r, filter, s, out) : nothing(s, out);
}

int mphf_scan_windows(const mphf_reader *r, const mphf_scan_filter *filter, const scan_stretch *s, const uint64_t *widths, uint32_t count,
                      scan_hits *out)
{
    return r->function.keys ? r->set->scan_windows(r, filter, s, widths, count, out) : nothing(s, out);
}

int mphf_scan_words(const mphf_reader *r, const scan_stretch *s, const uint8_t *letters, const uint32_t *grams, uint32_t count, int last,
                    scan_hits *out)
{
    return r->function.keys ? r->set->scan_words(r, s, letters, grams, count, last, out) : nothing(s, out);
}

int mphf_scan_one(const char *isa, const uint8_t *pattern, uint64_t size, const scan_stretch *s, scan_hits *out)
{
    const instruction_set *set = instruction_set_named(isa);
    return set ? set->scan_one(pattern, size, s, out) : STATUS_CORRUPT;
}

/* An ASCII character that is of no word: no character of several bytes goes across it, either. */
uint64_t mphf_scan_gap(const uint8_t *text, uint64_t length, uint64_t at)
{
    for (; at < length; at++) {
        u8 byte = text[at], lower = byte | 0x20;
        if (byte < 0x80 && !(lower >= 'a' && lower <= 'z') && !(byte >= '0' && byte <= '9') && byte != '_')
            break;
    }
    return at;
}

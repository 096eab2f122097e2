/* Words of a text, and n-grams of words: where words begin and end, 64 bytes at a time, then look-ups in groups.
 *
 *     bytes  ->  one bit each, set for bytes of words       vectors for ASCII; code points through a table for the rest
 *     bits   ->  edges: begin, end, begin, end ...          where a bit differs from the one before
 *     edges  ->  n-grams                                    a key is the text from the first word's begin to the last one's end, but
 *                                                           white space between two words counts as one space
 *
 * Bytes that are no UTF-8 part words. The Bloom filter is not asked: most words of a text are in a dictionary of words, and its
 * cache misses cost more than the others save. */
#include <stdlib.h>

#include "scan_group.h"
#include "utf8.h"

enum { SCAN_EDGES = 2048 }; /* held at a time */

typedef struct {
    const scan_stretch *s;
    const u8 *letters;
    bool last;      /* nothing follows the text */
    u64 at;         /* bytes before are done */
    u64 carried;    /* bits of the bytes from `at` on that belong to a character before: 1, 11 or 111 */
    bool carried_in; /* that is of a word */
    u64 inside;     /* 1: the byte before `at` is of a word */
    u32 count;
    u64 edges[SCAN_EDGES + 64];
} scan_edges;

/* Bits of the bytes that are ASCII letters, digits or underscores; of those that are no ASCII. */
static inline u64 scan_classes(const u8 *block, u64 *others)
{
    u64 words = 0;
    *others = 0;
    for (u32 i = 0; i < 64; i += BYTES) {
        byte_vec v = load_bytes(block + i), lower = v | 0x20;
        byte_vec letter = (byte_vec)(lower - 'a' < 26), digit = (byte_vec)(v - '0' < 10), underscore = (byte_vec)(v == '_');
        words |= bytes_set(letter | digit | underscore) << i;
        *others |= bytes_set((byte_vec)(v >= 0x80)) << i;
    }
    return words;
}

/* The bits of characters beyond ASCII in the `size` bytes from w->at on, which begin in `others`. */
static u64 scan_letters(scan_edges *w, u64 others, u32 size)
{
    u64 words = w->carried_in ? w->carried : 0;
    others &= ~w->carried;
    w->carried = 0;
    while (others) {
        u32 i = trailing_zeros64(others), code;
        u64 at = w->at + i, left = w->s->length - at;
        int length = utf8_decode(w->s->text + at, left, &code);
        bool in = length > 0 && w->letters[code >> 3] >> (code & 7) & 1;
        if (length == UTF8_CUT && !w->last) { /* a character that may be one of the word's */
            length = (int)left;
            in = true;
        }
        u32 bytes = length > 0 ? (u32)length : 1;
        u64 bits = ((1ull << bytes) - 1) << i;
        words |= in ? bits : 0;
        others &= ~bits;
        if (i + bytes > size) {
            w->carried = (1ull << (i + bytes - size)) - 1;
            w->carried_in = in;
        }
    }
    return words;
}

static void scan_block_edges(scan_edges *w)
{
    u64 left = w->s->length - w->at, others;
    u32 size = left < 64 ? (u32)left : 64;
    u8 tail[64];
    const u8 *block = w->s->text + w->at;
    if (size < 64) {
        memset(tail, 0, sizeof tail);
        memcpy(tail, block, size);
        block = tail;
    }
    u64 words = scan_classes(block, &others);
    if (others)
        words |= scan_letters(w, others, size);
    u64 edges = words ^ (words << 1 | w->inside);
    if (size < 64)
        edges &= (1ull << size) - 1;
    u64 *to = w->edges + w->count;
    w->count += popcount64(edges);
    while (edges) { /* eight at a time: how many there are is hard to predict */
        for (u32 i = 0; i < 8; i++) {
            to[i] = w->at + (edges ? trailing_zeros64(edges) : 0);
            edges &= edges - 1;
        }
        to += 8;
    }
    w->inside = words >> (size - 1) & 1;
    w->at += size;
}

/* Keys that are not spelled as the text is. */
typedef struct {
    u8 *bytes;
    u64 used, room;
} scan_scratch;

static inline bool is_blank(u8 byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/* Whether the bytes between two words are white space, and not just a space. */
static inline bool scan_is_wide(const u8 *from, const u8 *to)
{
    if (to - from == 1)
        return *from != ' ' && is_blank(*from);
    for (; from < to; from++)
        if (!is_blank(*from))
            return false;
    return true;
}

/* The key of the n-gram of `words` words whose edges are given, if its spelling is not the text's, in scratch memory with room for
 * it. A text that others write to meanwhile may have it end early. */
static const u8 *scan_spell(const u8 *text, const u64 *edges, u32 words, u64 room, scan_scratch *scratch, u64 *length)
{
    const u8 *limit = scratch->bytes + scratch->used + room;
    u8 *begin = scratch->bytes + scratch->used, *to = begin;
    for (u32 i = 0; i < words; i++) {
        u64 from = edges[2 * i], end = edges[2 * i + 1], next = i + 1 < words ? edges[2 * i + 2] : end;
        bool wide = next > end && scan_is_wide(text + end, text + next);
        u64 size = (wide ? end : next) - from;
        if (size + wide > (u64)(limit - to))
            break;
        memcpy(to, text + from, size);
        to += size;
        if (wide)
            *to++ = ' ';
    }
    *length = (u64)(to - begin);
    scratch->used += *length;
    return begin;
}

static int scan_add_gram(const mphf_reader *r, scan_group *g, const u8 *text, const u64 *edges, u32 words, scan_scratch *scratch,
                         scan_hits *out)
{
    u64 start = edges[0], span = edges[2 * words - 1] - start;
    u64 size = span; /* of the key */
    bool wide = false;
    for (u32 i = 1; i < words; i++)
        if (scan_is_wide(text + edges[2 * i - 1], text + edges[2 * i])) {
            wide = true;
            size -= edges[2 * i] - edges[2 * i - 1] - 1;
        }
    if (!wide)
        return scan_add(r, g, text, start, span, out);
    if (scratch->room - scratch->used < size) {
        int status = scan_look_up(r, g, out); /* nothing points to the scratch any more */
        if (status != STATUS_OK)
            return status;
        scratch->used = 0;
        if (scratch->room < size) {
            free(scratch->bytes);
            scratch->room = 2 * size + 4096;
            if (!(scratch->bytes = malloc(scratch->room))) {
                scratch->room = 0;
                return STATUS_NO_MEMORY;
            }
        }
    }
    u64 length;
    const u8 *key = scan_spell(text, edges, words, size, scratch, &length);
    u32 i = g->count++;
    g->keys[i] = key;
    g->lengths[i] = length;
    g->starts[i] = start;
    g->spans[i] = span;
    if (g->count < GROUP)
        return STATUS_OK;
    scratch->used = 0;
    return scan_look_up(r, g, out);
}

/* Whether what begins before the stretch's end can do without the text that follows: nothing, or words with all that belong to the
 * first one's n-grams. */
static bool scan_enough(const scan_edges *w, u32 widest)
{
    return w->at >= w->s->end && ((!w->count && !w->inside) || (w->count && w->edges[0] >= w->s->end) || w->count >= 2 * widest);
}

static int scan_words(const mphf_reader *r, const scan_stretch *s, const u8 *letters, const u32 *grams, u32 count, bool last, scan_hits *out)
{
    scan_edges w = {.s = s, .letters = letters, .last = last, .at = s->begin};
    scan_group group = {.count = 0};
    scan_scratch scratch = {NULL, 0, 0};
    u32 widest = grams[count - 1];
    int status = STATUS_OK;
    for (bool more = true; more && status == STATUS_OK;) {
        while (w.at < s->length && w.count <= SCAN_EDGES && !scan_enough(&w, widest))
            scan_block_edges(&w);
        bool ended = w.at == s->length;
        if (ended && last && w.count & 1)
            w.edges[w.count++] = s->length;
        u32 words = w.count / 2, done = 0;
        u32 whole = ended && last ? words : words >= widest ? words - widest + 1 : 0; /* with all that may follow them */
        more = !ended && !(w.at >= s->end && (!w.count || w.edges[0] >= s->end));
        for (; done < whole && status == STATUS_OK; done++) {
            const u64 *edges = w.edges + 2 * done;
            if (edges[0] >= s->end) {
                more = false;
                break;
            }
            for (u32 k = 0; k < count && done + grams[k] <= words && status == STATUS_OK; k++)
                status = grams[k] == 1 ? scan_add(r, &group, s->text, edges[0], edges[1] - edges[0], out)
                                       : scan_add_gram(r, &group, s->text, edges, grams[k], &scratch, out);
        }
        w.count -= 2 * done;
        memmove(w.edges, w.edges + 2 * done, w.count * sizeof *w.edges);
    }
    if (status == STATUS_OK)
        status = scan_look_up(r, &group, out);
    if (status == STATUS_OK)
        out->next = w.count && w.edges[0] < s->end ? w.edges[0] : s->end;
    free(scratch.bytes);
    return status;
}

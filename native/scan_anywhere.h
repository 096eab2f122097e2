/* Keys at every place of a text, once for every instruction set:
 *
 *     for every block of places:
 *         heads    places whose first five bytes begin some key, and the lengths such keys have
 *         look again   at eight bytes: lengths above that are struck off if no key begins so
 *         pairs    a pair (place, length) for each length that is left
 *         probe    pairs that the Bloom filter holds: nearly all are keys
 *         look up  hash, index, fingerprint, key
 *
 * 1. No stage branches on what it finds: all write every result, and go on behind those that count. In text, where every second
 *    place begins some key, a branch would be mispredicted at every second place.
 * 2. What will be asked of the Bloom filter is computed for a whole block first, and fetched: the words of a million keys do not fit
 *    the second-level cache, and a text of random letters took twice as long.
 * 3. Pairs come out by place and then by length, and so do the hits.
 *
 * The cost: some dozen bytes of stores per place that passes the heads, and every place and pair is gone through twice. */
#include "scan_group.h"

enum {
    SCAN_BLOCK = 4096,  /* places: what a block writes stays in the first-level cache */
    SCAN_PAIRS = 1024,  /* pairs probed at a time */
    SCAN_FOUND = 1024   /* pairs held that are looked up at a time */
};

typedef struct {
    const mphf_reader *reader;
    const scan_tables *tables;
    const u8 *text;
    u64 length; /* of the text */
    u64 at;     /* where the block begins */
    scan_hits *out;
    scan_group group;
    u32 count; /* of the pairs that the filter holds: places in the block, lengths */
    u16 places[SCAN_FOUND];
    u64 lengths[SCAN_FOUND];
    u8 set[256][8]; /* positions of the bits that are set in a byte */
} scan_walk;

static int scan_drain(scan_walk *w)
{
    int status = STATUS_OK;
    for (u32 i = 0; i < w->count && status == STATUS_OK; i++)
        status = scan_add(w->reader, &w->group, w->text, w->at + w->places[i], w->lengths[i], w->out);
    w->count = 0;
    return status;
}

#ifdef GATHERS
/* scan_lengths of the LANES places from p on. */
static inline vec scan_lengths_lanes(const scan_tables *t, const u8 *p)
{
    vec first = load_windows(p), hash = SCAN_HASH(first), heads = gather((const u8 *)t->heads, hash >> t->head_shift << 2);
    vec marked = heads >> SCAN_MARKS >> SCAN_FIFTH(hash, load_windows(p + 4) & 0xFF) & 1;
    vec lengths = heads & (SCAN_FOUR | ((0 - marked) & SCAN_ALL));
    return t->starts ? lengths | (gather(t->starts, first & 0xFFFF) & 0xFF) : lengths;
}
#endif

/* Heads of `size` places of the block. Returns how many begin some key. `roomy`: 32 bytes more than all can be read. */
static inline u32 scan_heads(const scan_walk *w, u32 size, bool roomy, u16 *places, u16 *masks)
{
    const scan_tables t = *w->tables;
    const u8 *text = w->text + w->at;
    u32 count = 0, i = 0;
#ifdef GATHERS
    vec numbers;
    for (u32 lane = 0; lane < LANES; lane++)
        numbers[lane] = lane;
    for (; roomy && i + LANES <= size; i += LANES) {
        vec lengths = scan_lengths_lanes(&t, text + i);
        u32 set = lanes_set((vec)(lengths != 0));
        close_up_lanes(places + count, numbers + i, set);
        count += close_up_lanes(masks + count, lengths, set);
    }
#endif
    for (; i < size; i++) {
        u32 lengths = scan_lengths(&t, roomy ? load64(text + i) : scan_first(text + i, w->length - w->at - i));
        places[count] = (u16)i;
        masks[count] = (u16)lengths;
        count += lengths != 0;
    }
    return count;
}

/* Both looks. Returns how many places pass. */
static inline u32 scan_pass(const scan_walk *w, u32 size, bool roomy, u16 *places, u16 *masks)
{
    const scan_tables t = *w->tables; /* which no store can change */
    const u8 *text = w->text + w->at;
    u64 elements[SCAN_BLOCK];
    u32 count = scan_heads(w, size, roomy, places, masks), left = 0;
    for (u32 k = 0; k < count; k++) {
        const u8 *p = text + places[k];
        elements[k] = scan_eight_element(roomy ? load64(p) : scan_first(p, w->length - w->at - places[k]));
        __builtin_prefetch(t.words + scan_word_at(elements[k], t.word_shift));
    }
    for (u32 k = 0; k < count; k++) {
        u32 lengths = masks[k] & (scan_holds(&t, elements[k]) ? SCAN_ALL : SCAN_EIGHT);
        places[left] = places[k];
        masks[left] = (u16)lengths;
        left += lengths != 0;
    }
    return left;
}

/* The lengths of a place that lie in their list: all of them are probed, if sixteen bytes there begin some key. */
static int scan_probe_long(scan_walk *w, u16 place)
{
    const scan_tables *t = w->tables;
    u64 start = w->at + place, left = w->length - start;
    const u8 *p = w->text + start;
    if (left < SCAN_LONG || !scan_holds(t, scan_sixteen_element(p)))
        return STATUS_OK;
    u64 first = load64(p);
    for (u64 k = 0; k < t->long_count && t->long_lengths[k] <= left; k++) {
        u64 length = t->long_lengths[k];
        if (!scan_holds(t, scan_key_element(p, first, length)))
            continue;
        if (w->count == SCAN_FOUND) {
            int status = scan_drain(w);
            if (status != STATUS_OK)
                return status;
        }
        w->places[w->count] = place;
        w->lengths[w->count++] = length;
    }
    return STATUS_OK;
}

/* Of the pairs whose place and length's bit are given those that the filter holds. roomy: sixteen bytes from each place lie in the
 * text. */
static inline int scan_probe(scan_walk *w, const u16 *places, const u8 *bits, u32 count, bool roomy)
{
    const scan_tables t = *w->tables;
    const u8 *text = w->text + w->at;
    u64 elements[SCAN_PAIRS];
    for (u32 k = 0; roomy && k < count; k++) { /* both cases of scan_key_element without a branch */
        const u8 *p = text + places[k];
        u32 length = bits[k] + 1u, beyond = length < 8 ? 64 - 8 * length : 0;
        u64 first = load64(p), last = load64(p + (length < 8 ? 0 : length - 8));
        elements[k] = scan_element(first << beyond >> beyond, last << beyond >> beyond, length);
        __builtin_prefetch(t.words + scan_word_at(elements[k], t.word_shift));
    }
    u32 found = w->count;
    int status = STATUS_OK;
    for (u32 k = 0; k < count; k++) {
        u64 place = places[k], length = bits[k] + 1;
        if (__builtin_expect(found == SCAN_FOUND || length == SCAN_LONG, 0)) {
            w->count = found;
            if (found == SCAN_FOUND)
                status = scan_drain(w);
            if (status == STATUS_OK && length == SCAN_LONG)
                status = scan_probe_long(w, (u16)place);
            if (status != STATUS_OK)
                return status;
            found = w->count;
            if (length == SCAN_LONG)
                continue;
        }
        u64 left = w->length - w->at - place;
        if (!roomy && length > left)
            continue;
        u64 element = roomy ? elements[k] : scan_key_element(text + place, scan_first(text + place, left), length);
        w->places[found] = (u16)place;
        w->lengths[found] = length;
        found += scan_holds(&t, element);
    }
    w->count = found;
    return STATUS_OK;
}

/* The block's places that pass, as pairs. */
static inline int scan_pairs(scan_walk *w, const u16 *places, const u16 *masks, u32 count, bool roomy)
{
    u16 pair_places[SCAN_PAIRS];
    u8 pair_bits[SCAN_PAIRS];
    for (u32 k = 0; k < count;) {
        u32 pairs = 0;
        for (; k < count && pairs <= SCAN_PAIRS - 16; k++) {
            u64 four = places[k] * 0x0001000100010001ull;
            for (u32 half = 0; half < 16; half += 8) {
                u32 set = masks[k] >> half & 0xFF;
                u64 positions = load64(w->set[set]) + half * 0x0101010101010101ull;
                memcpy(pair_bits + pairs, &positions, 8);
                memcpy(pair_places + pairs, &four, 8);
                memcpy(pair_places + pairs + 4, &four, 8);
                pairs += popcount64(set);
            }
        }
        int status = scan_probe(w, pair_places, pair_bits, pairs, roomy);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static int scan_anywhere(const mphf_reader *r, const mphf_scan_filter *filter, const scan_stretch *s, scan_hits *out)
{
    scan_walk w = {.reader = r, .tables = &filter->tables, .text = s->text, .length = s->length, .out = out};
    u16 places[SCAN_BLOCK + 16], masks[SCAN_BLOCK + 16]; /* a vector's lanes are written whole */
    for (u32 byte = 0; byte < 256; byte++)
        for (u32 bit = 0, n = 0; bit < 8; bit++)
            if (byte >> bit & 1)
                w.set[byte][n++] = (u8)bit;
    int status = STATUS_OK;
    for (w.at = s->begin; w.at < s->end && status == STATUS_OK; w.at += SCAN_BLOCK) {
        u32 size = (u32)(s->end - w.at < SCAN_BLOCK ? s->end - w.at : SCAN_BLOCK);
        u64 left = s->length - w.at;
        bool roomy = left >= size + 2 * SCAN_LONG;
        u32 count = roomy ? scan_pass(&w, size, true, places, masks) : scan_pass(&w, size, false, places, masks);
        status = roomy ? scan_pairs(&w, places, masks, count, true) : scan_pairs(&w, places, masks, count, false);
        if (status == STATUS_OK)
            status = scan_drain(&w);
    }
    if (status == STATUS_OK)
        status = scan_look_up(r, &w.group, out);
    if (status == STATUS_OK)
        out->next = s->end;
    return status;
}

/* Without the filter, or past its Bloom filter. */
static int scan_windows(const mphf_reader *r, const mphf_scan_filter *filter, const scan_stretch *s, const u64 *widths, u32 count,
                        scan_hits *out)
{
    scan_group group = {.count = 0};
    int status = STATUS_OK;
    for (u64 at = s->begin; at < s->end && status == STATUS_OK; at++)
        for (u32 k = 0; k < count && widths[k] <= s->length - at && status == STATUS_OK; k++) {
            const u8 *p = s->text + at;
            if (filter && !scan_holds(&filter->tables, scan_key_element(p, scan_first(p, s->length - at), widths[k])))
                continue;
            status = scan_add(r, &group, s->text, at, widths[k], out);
        }
    if (status == STATUS_OK)
        status = scan_look_up(r, &group, out);
    if (status == STATUS_OK)
        out->next = s->end;
    return status;
}

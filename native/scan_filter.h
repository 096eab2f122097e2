/* The prefilter of a dictionary (FORMAT.md §8): at which places of a text keys can begin, and of which lengths they can be there.
 *
 *     starts  first two bytes -> which of the lengths 1, 2 and 3
 *     heads   hash of the first four bytes -> which of the lengths 4 ... 15, and whether 16 or more; and a mark of the
 *             first five bytes of each key of more than four
 *     words   a blocked Bloom filter of (first eight bytes, last eight bytes, length), of the first eight bytes of keys of
 *             more than eight, and of the first sixteen of keys of sixteen or more
 *
 * It may let pass what is no key, and never holds a key back: the look-up that follows decides. */
#ifndef MPHF_SCAN_FILTER_H
#define MPHF_SCAN_FILTER_H

#ifndef FN
#include "words.h"
#endif

#define SCAN_LONG 16u        /* lengths from here on share one bit of a head, and are listed */
#define SCAN_LONG_BIT 15u
#define SCAN_STARTS 65536u   /* bytes of `starts` */
#define SCAN_FOUR 0x000Fu    /* bits of the lengths up to four, and up to eight */
#define SCAN_EIGHT 0x00FFu
#define SCAN_ALL 0xFFFFu
#define SCAN_MARKS 16u       /* begin at this bit of a head */

typedef struct {
    u32 head_shift; /* 32 less log2 of the number of heads */
    u32 word_shift; /* 64 less log2 of the number of words */
    u64 long_count;
    GLOBAL const u64 *long_lengths; /* ascending */
    GLOBAL const u8 *starts;        /* 0: no key is shorter than four bytes */
    GLOBAL const u32 *heads;
    GLOBAL const u64 *words;
} scan_tables;

enum { SCAN_HEADER = 16 }; /* bytes: log2 of heads and of words, whether there are starts, how many lengths are listed */

/* Points into a section of the file, 8-byte aligned; false if its sizes contradict each other. */
FN bool scan_tables_open(scan_tables *t, GLOBAL const u8 *section, u64 length)
{
    if (length < SCAN_HEADER)
        return false;
    u64 heads = load32(section), words = load32(section + 4), starts = load32(section + 8), listed = load32(section + 12);
    if (heads < 2 || heads > 24 || words < 1 || words > 40 || starts > 1 ||
        length != SCAN_HEADER + 8 * listed + SCAN_STARTS * starts + ((u64)4 << heads) + ((u64)8 << words))
        return false;
    t->head_shift = 32 - (u32)heads;
    t->word_shift = 64 - (u32)words;
    t->long_count = listed;
    t->long_lengths = (GLOBAL const u64 *)(section + SCAN_HEADER);
    GLOBAL const u8 *at = section + SCAN_HEADER + 8 * listed;
    t->starts = starts ? at : 0;
    t->heads = (GLOBAL const u32 *)(at + SCAN_STARTS * starts);
    t->words = (GLOBAL const u64 *)(t->heads + ((u64)1 << heads));
    return true;
}

/* Macros, so that they take vectors as well: the number of a head, to be shifted down, and that of a mark of five bytes. */
#define SCAN_HASH(first_four) ((first_four) * 0x9E3779B1u)
#define SCAN_FIFTH(hash, fifth) (((hash) + (fifth) * 0x85EBCA6Bu) * 0xC2B2AE35u >> 28)

/* Bits of the lengths 1 ... 15 and of the longer ones (FORMAT.md), of keys that may begin with these eight bytes: a first look. */
FN u32 scan_lengths(const scan_tables *t, u64 first)
{
    u32 hash = SCAN_HASH((u32)first), head = t->heads[hash >> t->head_shift];
    u32 marked = head >> SCAN_MARKS >> SCAN_FIFTH(hash, (u32)(first >> 32) & 0xFF) & 1;
    u32 lengths = head & (marked ? SCAN_ALL : SCAN_FOUR);
    return t->starts ? lengths | t->starts[first & 0xFFFF] : lengths;
}

/* `tag`: the length of a key; of a prefix, scan_prefix_tag. */
FN u64 scan_element(u64 first, u64 last, u64 tag)
{
    u64 h = first * (u64)0x9E3779B97F4A7C15 + last * (u64)0xD6E8FEB86659FD93 + tag * (u64)0xA0761D6478BD642F;
    return (h ^ h >> 32) * (u64)0x9FB21C651E98DF25;
}

FN u64 scan_prefix_tag(u64 length) { return ~length; }

FN u64 scan_word_at(u64 element, u32 shift) { return element >> shift; }

FN u64 scan_bits(u64 element)
{
    return (u64)1 << (element >> 8 & 63) | (u64)1 << (element >> 14 & 63) | (u64)1 << (element >> 20 & 63);
}

FN u32 scan_holds(const scan_tables *t, u64 element)
{
    u64 bits = scan_bits(element);
    return (t->words[scan_word_at(element, t->word_shift)] & bits) == bits;
}

/* The first eight bytes of a key that has fewer: zeros behind it. 1 <= length <= 8 */
FN u64 scan_cut(u64 first, u64 length)
{
    u32 beyond = 64 - 8 * (u32)length;
    return first << beyond >> beyond;
}

/* Of `left` > 0 bytes the first eight, zeros behind them if there are fewer. */
FN u64 scan_first(GLOBAL const u8 *p, u64 left)
{
    u64 first = 0;
    if (left >= 8)
        return load64(p);
    for (u32 i = 0; i < (u32)left; i++)
        first |= (u64)p[i] << 8 * i;
    return first;
}

/* A key's element. `first`: its first eight bytes, of which those beyond it do not matter. */
FN u64 scan_key_element(GLOBAL const u8 *key, u64 first, u64 length)
{
    if (length > 8)
        return scan_element(first, load64(key + length - 8), length);
    first = scan_cut(first, length);
    return scan_element(first, first, length);
}

FN u64 scan_eight_element(u64 first) { return scan_element(first, first, scan_prefix_tag(8)); }

/* What a second look leaves of them, at all eight: for kernels; scan_anywhere.h does it for many places at a time. */
FN u32 scan_eight(const scan_tables *t, u64 first, u32 lengths)
{
    return lengths & (scan_holds(t, scan_eight_element(first)) ? SCAN_ALL : SCAN_EIGHT);
}

FN u64 scan_sixteen_element(GLOBAL const u8 *key) { return scan_element(load64(key), load64(key + 8), scan_prefix_tag(16)); }

#endif

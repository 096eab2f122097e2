/* Elias-Fano sequences (FORMAT.md §5), read in place. */
#ifndef MPHF_ELIAS_FANO_H
#define MPHF_ELIAS_FANO_H

#include "bits.h"

#define EF_LONG 8192u   /* ones per long sample */
#define EF_SHORT 256u   /* ones per short sample */
#define EF_FAR 0xFFFFu  /* a short sample that says: count from the long one */

typedef struct {
    u64 count, last;
    u32 lower_bits;
    u64 upper_words;
    GLOBAL const u64 *long_samples, *lower, *upper;
    GLOBAL const u16 *short_samples;
} elias_fano;

/* Sizes of the parts in words, in the order of the file. count >= 1. */
typedef struct {
    u32 lower_bits;
    u64 long_samples, short_samples, lower, upper, all;
} elias_fano_layout;

FN elias_fano_layout elias_fano_layout_of(u64 count, u64 last)
{
    elias_fano_layout l;
    l.lower_bits = last < count ? 0 : 63 - leading_zeros64(last / count);
    l.long_samples = (count + EF_LONG - 1) / EF_LONG;
    l.short_samples = ((count + EF_SHORT - 1) / EF_SHORT + 3) / 4;
    l.lower = (count * l.lower_bits + 63) / 64 + 1;
    l.upper = (count + (last >> l.lower_bits) + 63) / 64;
    l.all = 2 + l.long_samples + l.short_samples + l.lower + l.upper;
    return l;
}

/* Points s into `available` words; returns how many the sequence takes, 0 if it cannot be one. */
FN u64 elias_fano_open_first(elias_fano *s, GLOBAL const u64 *words, u64 available)
{
    if (available < 2 || words[0] == 0 || words[0] / 64 > available) /* a bit of `upper` for each */
        return 0;
    u64 count = words[0], last = words[1];
    elias_fano_layout l = elias_fano_layout_of(count, last);
    if ((last >> l.lower_bits) / 64 > available || l.all > available)
        return 0;
    s->count = count;
    s->last = last;
    s->lower_bits = l.lower_bits;
    s->upper_words = l.upper;
    s->long_samples = words + 2;
    s->short_samples = (GLOBAL const u16 *)(s->long_samples + l.long_samples);
    s->lower = s->long_samples + l.long_samples + l.short_samples;
    s->upper = s->lower + l.lower;
    return l.all;
}

/* A whole section, 8-byte aligned: false if it is not what it should be, or has other totals. */
FN bool elias_fano_open(elias_fano *s, GLOBAL const u8 *section, u64 length, u64 count, u64 last)
{
    return length % 8 == 0 && elias_fano_open_first(s, (GLOBAL const u64 *)section, length / 8) == length / 8 && s->count == count &&
           s->last == last;
}

/* Position in `upper` of one number i < count; NOWHERE in a corrupt sequence. */
FN u64 elias_fano_select(const elias_fano *s, u64 i)
{
    u64 at = s->long_samples[i / EF_LONG], rank = i % EF_LONG;
    u32 near = s->short_samples[i / EF_SHORT];
    if (near != EF_FAR) {
        at += near;
        rank = i % EF_SHORT;
    }
    return select_from(s->upper, s->upper_words, at, rank);
}

/* The word of `upper` from which one number i < count is looked for; any number in a corrupt sequence. */
FN u64 elias_fano_near(const elias_fano *s, u64 i)
{
    u64 at = s->long_samples[i / EF_LONG];
    u32 near = s->short_samples[i / EF_SHORT];
    return (near == EF_FAR ? at : at + near) >> 6;
}

/* Value i, given the position of its one. */
FN u64 elias_fano_value(const elias_fano *s, u64 i, u64 one)
{
    return (one - i) << s->lower_bits | bits_at(s->lower, i * s->lower_bits, s->lower_bits);
}

/* Values i and i + 1 < count. 0 if they cannot be had: the sequence is corrupt. */
FN u32 elias_fano_pair(const elias_fano *s, u64 i, u64 *value, u64 *next)
{
    u64 one = elias_fano_select(s, i);
    if (one == NOWHERE)
        return 0;
    u64 two = select_from(s->upper, s->upper_words, one, 1);
    if (two == NOWHERE)
        return 0;
    *value = elias_fano_value(s, i, one);
    *next = elias_fano_value(s, i + 1, two);
    return 1;
}

/* The same as the begin and end of a piece of `length` bytes in all; 0, too, if they are none. */
FN u32 elias_fano_span(const elias_fano *s, u64 i, u64 length, u64 *begin, u64 *end)
{
    return elias_fano_pair(s, i, begin, end) && *begin <= *end && *end <= length;
}

#endif

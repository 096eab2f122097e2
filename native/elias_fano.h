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

/* Code points of UTF-8, as Unicode allows them: none in more bytes than it needs, no surrogates. */
#ifndef MPHF_UTF8_H
#define MPHF_UTF8_H

#ifndef FN
#include "words.h"
#endif

#define UTF8_BAD 0     /* what stands here is no UTF-8 */
#define UTF8_CUT (-1)  /* the bytes end within what may be a character */

/* Bytes of the character at p, of which `left` > 0 are there. */
FN int utf8_decode(GLOBAL const u8 *p, u64 left, u32 *code)
{
    u32 lead = p[0], size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    *code = lead;
    if (size < 2)
        return (int)size;
    u32 point = lead & (0x7F >> size);
    for (u32 i = 1; i < size; i++) {
        if (i == left)
            return UTF8_CUT;
        if (p[i] >> 6 != 2)
            return UTF8_BAD;
        point = point << 6 | (p[i] & 0x3F);
        if (i == 1 && size > 2) { /* what the second byte alone shows to be out of bounds */
            u32 high = size == 3 ? point >> 5 : point >> 4;
            if (high == 0 || (size == 3 && high == 0x1B) || (size == 4 && high > 0x10))
                return UTF8_BAD;
        }
    }
    *code = point;
    return (int)size;
}

#endif

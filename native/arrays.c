/* Strings as other libraries' arrays hold them, as flat memory. */
#include <string.h>

#include "native.h"

/* At most four bytes are written per code point, whatever becomes of `codes` meanwhile. 0: no code point of UTF-8. */
static inline u32 utf8(u32 code, u8 *out)
{
    if (code < 0x80) {
        out[0] = (u8)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (u8)(0xC0 | code >> 6);
        out[1] = (u8)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (u8)(0xE0 | code >> 12);
        out[1] = (u8)(0x80 | (code >> 6 & 63));
        out[2] = (u8)(0x80 | (code & 63));
        return code >> 11 == 0x1B ? 0 : 3; /* a surrogate */
    }
    out[0] = (u8)(0xF0 | code >> 18);
    out[1] = (u8)(0x80 | (code >> 12 & 63));
    out[2] = (u8)(0x80 | (code >> 6 & 63));
    out[3] = (u8)(0x80 | (code & 63));
    return code < 0x110000 ? 4 : 0;
}

uint64_t mphf_utf8(const uint32_t *codes, uint64_t width, uint64_t count, uint64_t *offsets, uint8_t *out)
{
    u8 *begin = out;
    for (u64 i = 0; i < count; i++, codes += width) {
        u64 length = width;
        while (length && !codes[length - 1])
            length--;
        offsets[i] = (u64)(out - begin);
        for (u64 j = 0; j < length; j++) {
            u32 size = utf8(codes[j], out);
            if (!size)
                return i;
            out += size;
        }
    }
    offsets[count] = (u64)(out - begin);
    return count;
}

void mphf_join_views(const arrow_view *views, const uint8_t *const *buffers, const uint64_t *offsets, uint64_t count, uint8_t *out)
{
    for (u64 i = 0; i < count; i++) {
        u64 length = offsets[i + 1] - offsets[i];
        const u8 *from = length <= sizeof views->is.inside ? views[i].is.inside
                                                           : buffers[views[i].is.outside.buffer] + views[i].is.outside.offset;
        memcpy(out + offsets[i], from, length);
    }
}

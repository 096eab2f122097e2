/* Byte lanes where no instruction gathers their bits: sixteen, by multiplication. */
#define BYTES 16
typedef u8 byte_vec __attribute__((vector_size(16)));

/* One bit of each lane, all of whose bits are alike. */
static inline u64 bytes_set(byte_vec v)
{
    u64 halves[2];
    memcpy(halves, &v, sizeof halves);
    u64 low = (halves[0] & 0x0101010101010101ull) * 0x0102040810204080ull >> 56;
    return low | ((halves[1] & 0x0101010101010101ull) * 0x0102040810204080ull >> 56) << 8;
}

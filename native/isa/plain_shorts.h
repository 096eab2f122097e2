/* Shims that an instruction set may write lane by lane; SHORTS, SHORT_STEP and short_vec are defined. See avx2.c. */
#define line_sum plain_line_sum

static inline u32 close_up(u16 *to, short_vec v, u64 lanes, const u8 *closing)
{
    (void)closing;
    u32 count = 0;
    for (int i = 0; i < SHORTS; i++) {
        to[count] = v[i];
        count += lanes >> i * SHORT_STEP & 1;
    }
    return count;
}

/* Lane i is from[i >> by]. */
static inline short_vec spread(const u16 *from, u32 by)
{
    short_vec v;
    for (u32 i = 0; i < SHORTS; i++)
        v[i] = from[i >> by];
    return v;
}

/* x86-64 with AVX-512 F, DQ, VL and BW: sixteen lanes. */
#include <immintrin.h>

#include "../native.h"

#define SET_NAME avx512
#define LANES 16
typedef u32 vec __attribute__((vector_size(64)));
typedef int32_t signed_vec __attribute__((vector_size(64)));

static inline vec shift_left(vec v, vec by) { return (vec)_mm512_sllv_epi32((__m512i)v, (__m512i)by); }
static inline u32 lanes_set(vec v) { return (u32)_mm512_movepi32_mask((__m512i)v); }

#include "instruction_set.h"

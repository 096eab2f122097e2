/* x86-64 with AVX2 and BMI2: eight lanes. */
#include <immintrin.h>

#include "../native.h"

#define SET_NAME avx2
#define LANES 8
typedef u32 vec __attribute__((vector_size(32)));
typedef int32_t signed_vec __attribute__((vector_size(32)));

static inline vec shift_left(vec v, vec by) { return (vec)_mm256_sllv_epi32((__m256i)v, (__m256i)by); }
static inline u32 lanes_set(vec v) { return (u32)_mm256_movemask_ps((__m256)v); }

#include "instruction_set.h"

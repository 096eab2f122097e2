/* Method 1, `brute`: RecSplit as published (Esposito, Graf, Vigna 2020), with the 32-bit hash of Bez 2022 §5.3. */
#ifndef MPHF_BRUTE_H
#define MPHF_BRUTE_H

#include "../rice.h"

FN u32 brute_locate(const trees *t, u64 lo, u32 m, u64 at) { return rice_locate(t, lo, m, at, 0); }

#ifdef LANES
#include "../rice_build.h"

static int brute_build_bucket(builder *b, u64 *lo, u32 *id, u32 m) { return rice_build_bucket(b, lo, id, m, false); }
#endif

#endif

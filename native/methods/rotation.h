/* Method 2, `rotation`: in full leaves the keys with odd lo may be rotated against the others (Bez 2022 §5.5). */
#ifndef MPHF_ROTATION_H
#define MPHF_ROTATION_H

#include "../rice.h"

FN u32 rotation_locate(const trees *t, u64 lo, u32 m, u64 at) { return rice_locate(t, lo, m, at, 1); }

#ifdef LANES
#include "../rice_build.h"

static int rotation_build_bucket(builder *b, u64 *lo, u32 *id, u32 m) { return rice_build_bucket(b, lo, id, m, true); }
#endif

#endif

/* What the C files share with each other; native.cdef.h is what they show to Python. */
#ifndef MPHF_NATIVE_H
#define MPHF_NATIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "chain.h"
#include "native.cdef.h"

/* tables.c: one per parameter set, immutable once made, shared by threads. */
struct mphf_tables {
    mphf_parameters parameters;
    u32 largest;  /* nodes[0 ... largest] */
    node *nodes;
    u64 *budget;  /* numbers to try at a node, of chained seeds nodes to visit in a bucket, before looking for equal keys */
    chain_link *links; /* links, fields, multiplier: chained seeds only */
    u16 *fields;
    u16 *multiplier;
};

/* chain_tables.c; false: no memory, or a number of more than CHAIN_WIDEST bits */
bool chain_tables_fill(mphf_tables *t);
bool chain_link_fill(mphf_tables *t, u32 m, u64 l); /* l: log2 of 1/p in 32.32; children are filled already */

/* dispatch.c */
struct builder;
typedef int build_bucket(struct builder *b, u64 *lo, u32 *id, u32 m);
typedef struct {
    const char *name;
    build_bucket *methods[METHODS + 1]; /* indexed by the method's number in the file */
    int64_t (*index)(const mphf_reader *, const u8 *key, u64 length);
    int64_t (*find)(const mphf_reader *, const u8 *key, u64 length);
    int (*batch)(const mphf_reader *, const key_batch *, bool filter, int64_t *out);
    u64 (*bench_single)(const mphf_reader *, const u64 *hi, const u64 *lo, u64 count, bool dependent);
    int (*bench_batch)(const mphf_reader *, const u64 *hi, const u64 *lo, u64 count, int64_t *out);
    int (*scan_anywhere)(const mphf_reader *, const mphf_scan_filter *, const scan_stretch *, scan_hits *out);
    int (*scan_windows)(const mphf_reader *, const mphf_scan_filter *, const scan_stretch *, const u64 *widths, u32 count, scan_hits *out);
    int (*scan_words)(const mphf_reader *, const scan_stretch *, const u8 *letters, const u32 *grams, u32 count, bool last, scan_hits *out);
    int (*scan_one)(const u8 *pattern, u64 size, const scan_stretch *, scan_hits *out);
} instruction_set;
const instruction_set *instruction_set_named(const char *name); /* NULL: the best the processor runs; not known: NULL */

#endif

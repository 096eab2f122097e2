/* A file's reader: opened with every size checked, asked for indices and for where values lie. */
#include <stdlib.h>

#include "reader.h"

mphf_reader *mphf_reader_new(const char *isa, const mphf_parameters *p, uint64_t keys, uint64_t seed, uint64_t buckets, uint32_t largest,
                             const uint8_t *trees, uint64_t trees_length, const uint8_t *directory,
                             uint64_t directory_length, const uint8_t *fingerprints, uint64_t fingerprints_length,
                             uint32_t fingerprint_bits, int *status)
{
    *status = STATUS_CORRUPT;
    const instruction_set *set = instruction_set_named(isa);
    if (!set || !mphf_parameters_valid(p) || largest > LARGEST_BUCKET || largest > keys)
        return NULL;
    *status = STATUS_NO_MEMORY;
    mphf_reader *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->set = set;
    r->tables = mphf_tables_new(p, largest);
    if (r->tables) {
        const mphf_tables *tables = r->tables;
        r->function = (function){
            .keys = keys,
            .seed = seed,
            .buckets = buckets,
            .method = p->method,
            .root_bits = p->root_bits,
            .leaf = p->leaf,
            .largest = largest,
            .nodes = tables->nodes,
            .chains = {trees, tables->links, tables->fields, tables->multiplier},
            .fingerprint_bits = fingerprint_bits,
            .fingerprints = fingerprints,
        };
        bool sound = fingerprint_bits <= 32 && keys <= UINT64_MAX / 64 &&
                     (!fingerprint_bits || fingerprints_length == (keys * fingerprint_bits + 7) / 8 + 8) &&
                     function_open(&r->function, p->method == METHOD_CHAINED, trees, trees_length, directory, directory_length);
        *status = sound ? STATUS_OK : STATUS_CORRUPT;
    }
    if (*status == STATUS_OK)
        return r;
    mphf_reader_free(r);
    return NULL;
}

int mphf_reader_ordinals(mphf_reader *r, const uint8_t *ordinals, uint64_t length, uint64_t distinct)
{
    u32 bits = distinct > 1 ? 64u - leading_zeros64(distinct - 1) : 0;
    if (!distinct || distinct > r->function.keys || bits > 57 || length != (r->function.keys * bits + 7) / 8 + 8)
        return STATUS_CORRUPT;
    r->distinct = distinct;
    r->ordinal_bits = bits;
    r->ordinals = ordinals;
    return STATUS_OK;
}

int mphf_reader_offsets(mphf_reader *r, const uint8_t *offsets, uint64_t length, uint64_t blob_length)
{
    u64 count = r->distinct ? r->distinct : r->function.keys;
    r->blob_length = blob_length;
    return blob_length <= INT64_MAX && elias_fano_open(&r->offsets, offsets, length, count + 1, blob_length) ? STATUS_OK
                                                                                                             : STATUS_CORRUPT;
}

int mphf_reader_blocks(mphf_reader *r, const uint8_t *starts, uint64_t length, uint64_t blocks, uint64_t packed_length)
{
    r->packed_length = packed_length;
    return blocks < UINT64_MAX && elias_fano_open(&r->blocks, starts, length, blocks + 1, packed_length) ? STATUS_OK
                                                                                                         : STATUS_CORRUPT;
}

int mphf_reader_keys(mphf_reader *r, const uint8_t *stored, uint64_t stored_length, uint64_t width, const uint8_t *offsets,
                     uint64_t offsets_length)
{
    return function_open_keys(&r->function, stored, stored_length, width, offsets != NULL, offsets, offsets_length) ? STATUS_OK
                                                                                                                    : STATUS_CORRUPT;
}

int mphf_reader_bounds(mphf_reader *r, uint32_t *bounds)
{
    if (!r->function.stored_vary || r->function.stored_length > UINT32_MAX)
        return STATUS_CORRUPT;
    for (u64 i = 0; i < r->function.keys; i++) {
        u64 begin, end;
        if (!elias_fano_span(&r->function.key_offsets, i, r->function.stored_length, &begin, &end) || (i && begin != bounds[i]))
            return STATUS_CORRUPT;
        bounds[i] = (u32)begin;
        bounds[i + 1] = (u32)end;
    }
    r->function.key_bounds = bounds;
    return STATUS_OK;
}

void mphf_reader_free(mphf_reader *r)
{
    if (!r)
        return;
    mphf_tables_free(r->tables);
    free(r);
}

int64_t mphf_index(const mphf_reader *r, const uint8_t *key, uint64_t length) { return r->set->index(r, key, length); }

int64_t mphf_find(const mphf_reader *r, const uint8_t *key, uint64_t length)
{
    return r->function.keys ? r->set->find(r, key, length) : ABSENT;
}

int mphf_index_batch(const mphf_reader *r, const key_batch *keys, int64_t *out)
{
    return r->set->batch(r, keys, false, out);
}

int mphf_find_batch(const mphf_reader *r, const key_batch *keys, int64_t *out)
{
    if (r->function.keys)
        return r->set->batch(r, keys, true, out);
    for (u64 i = 0; i < keys->count; i++)
        out[i] = ABSENT;
    return STATUS_OK;
}

uint64_t mphf_bench_single(const mphf_reader *r, const uint64_t *hi, const uint64_t *lo, uint64_t count, int dependent)
{
    return r->set->bench_single(r, hi, lo, count, dependent);
}

int mphf_bench_batch(const mphf_reader *r, const uint64_t *hi, const uint64_t *lo, uint64_t count, int64_t *out)
{
    return r->set->bench_batch(r, hi, lo, count, out);
}

static value_span span_between(const elias_fano *offsets, u64 index, u64 length)
{
    u64 begin, end;
    if (!elias_fano_span(offsets, index, length, &begin, &end))
        return (value_span){STATUS_CORRUPT, 0};
    return (value_span){(int64_t)begin, (int64_t)end};
}

value_span mphf_span(const mphf_reader *r, uint64_t index)
{
    if (r->distinct) {
        u64 at = index * r->ordinal_bits;
        index = load64(r->ordinals + at / 8) >> (at & 7) & ((1ull << r->ordinal_bits) - 1);
        if (index >= r->distinct)
            return (value_span){STATUS_CORRUPT, 0};
    }
    return span_between(&r->offsets, index, r->blob_length);
}

value_span mphf_block_span(const mphf_reader *r, uint64_t block)
{
    return span_between(&r->blocks, block, r->packed_length);
}

value_span mphf_key_span(const mphf_reader *r, uint64_t index)
{
    if (r->function.stored_vary)
        return span_between(&r->function.key_offsets, index, r->function.stored_length);
    return (value_span){(int64_t)(index * r->function.stored_width), (int64_t)((index + 1) * r->function.stored_width)};
}

int mphf_key_span_batch(const mphf_reader *r, uint64_t first, uint64_t count, int64_t *begin, int64_t *end)
{
    for (u64 i = 0; i < count; i++) {
        value_span span = mphf_key_span(r, first + i);
        if (span.begin < 0)
            return STATUS_CORRUPT;
        begin[i] = span.begin;
        end[i] = span.end;
    }
    return STATUS_OK;
}

int mphf_span_batch(const mphf_reader *r, uint64_t count, const int64_t *indices, int64_t *begin, int64_t *end)
{
    for (u64 i = 0; i < count; i++) {
        value_span span = indices[i] < 0 ? (value_span){0, 0} : mphf_span(r, (u64)indices[i]);
        if (span.begin < 0)
            return STATUS_CORRUPT;
        begin[i] = span.begin;
        end[i] = span.end;
    }
    return STATUS_OK;
}

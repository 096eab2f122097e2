/* Builds one partition: counting sort by bucket, then bucket after bucket through the method. */
#include <stdlib.h>

#include "builder.h"

/* One stream of whole records per partition: three of hi, lo and id each would be more pages than the processor keeps at hand. */
void mphf_scatter(const uint64_t *hi, const uint64_t *lo, uint64_t count, uint32_t partitions_log2, uint64_t *starts,
                  hashed_record *out)
{
    u64 partitions = 1ull << partitions_log2;
    memset(starts, 0, (partitions + 1) * sizeof *starts);
    for (u64 i = 0; i < count; i++)
        starts[mulhi64(hi[i], partitions)]++;
    for (u64 p = 0, at = 0; p <= partitions; p++) {
        u64 size = starts[p];
        starts[p] = at;
        at += size;
    }
    for (u64 i = 0; i < count; i++) /* starts[p] runs ahead to where partition p + 1 starts */
        out[starts[mulhi64(hi[i], partitions)]++] = (hashed_record){hi[i], lo[i], i};
    memmove(starts + 1, starts, partitions * sizeof *starts);
    starts[0] = 0;
}

int builder_reserve(builder *b, u64 bits)
{
    if (b->bit_count + bits <= b->capacity)
        return STATUS_OK;
    u64 words = (b->bit_count + bits + b->capacity / 2 + 63) / 64;
    u64 *grown = realloc(b->bits, (words + 1) * sizeof *grown); /* a word beyond, for builder_append */
    if (!grown)
        return STATUS_NO_MEMORY;
    u64 had = b->bits ? b->capacity / 64 + 1 : 0;
    memset(grown + had, 0, (words + 1 - had) * sizeof *grown);
    b->bits = grown;
    b->capacity = words * 64;
    return STATUS_OK;
}

static bool allocate_scratch(builder *b, u32 largest)
{
    if (b->tables->parameters.method == METHOD_CHAINED)
        return (b->chain = chain_scratch_new(b->tables, largest)) && builder_reserve(b, 1) == STATUS_OK;
    u64 keys = largest + 1u, nodes = b->tables->nodes[largest].nodes + 1u;
    b->low = malloc(keys * sizeof *b->low);
    b->high = malloc(keys * sizeof *b->high);
    b->lo_parted = malloc(keys * sizeof *b->lo_parted);
    b->id_parted = malloc(keys * sizeof *b->id_parted);
    b->numbers = malloc(nodes * sizeof *b->numbers);
    b->taus = malloc(nodes * sizeof *b->taus);
    return b->low && b->high && b->lo_parted && b->id_parted && b->numbers && b->taus &&
           builder_reserve(b, 1) == STATUS_OK;
}

static void free_scratch(builder *b)
{
    free(b->low);
    free(b->high);
    free(b->lo_parted);
    free(b->id_parted);
    free(b->numbers);
    free(b->taus);
    chain_scratch_free(b->chain);
}

/* Sorts lo by bucket (order[i]: the record that comes i-th) and sets sizes and the largest one. */
static void sort_by_bucket(mphf_partition *p, u64 first, u64 buckets, u64 all, const hashed_record *records, u32 count,
                           u64 *lo, u32 *order)
{
    for (u32 i = 0; i < count; i++)
        p->sizes[mulhi64(records[i].hi, all) - first]++;
    for (u64 i = 0, at = 0; i < buckets; i++) {
        p->starts[i] = at; /* in keys, for the moment */
        at += p->sizes[i];
        p->largest = p->sizes[i] > p->largest ? p->sizes[i] : p->largest;
    }
    for (u32 i = 0; i < count; i++) {
        u64 to = p->starts[mulhi64(records[i].hi, all) - first]++;
        lo[to] = records[i].lo;
        order[to] = i;
    }
}

static int build_buckets(builder *b, mphf_partition *p, build_bucket *method, u64 buckets, u64 *lo, u32 *order)
{
    for (u64 i = 0; i < buckets; i++) {
        p->starts[i] = b->bit_count;
        b->bucket = i;
        int status = *b->cancel ? STATUS_CANCELLED : p->sizes[i] < 2 ? STATUS_OK : method(b, lo, order, p->sizes[i]);
        if (status != STATUS_OK)
            return status;
        lo += p->sizes[i];
        order += p->sizes[i];
    }
    return STATUS_OK;
}

mphf_partition *mphf_build_partition(const mphf_tables *t, const char *isa, uint64_t first, uint64_t buckets, uint64_t all,
                                     const hashed_record *records, uint32_t count, uint64_t *hi, uint64_t *id,
                                     const volatile int *cancel)
{
    mphf_partition *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    u64 *lo = malloc((count + 1u) * sizeof *lo);
    u32 *order = malloc((count + 1u) * sizeof *order);
    mphf_tables *own = NULL; /* for a bucket larger than the shared tables expect */
    p->sizes = calloc(buckets + 1, sizeof *p->sizes);
    p->starts = calloc(buckets + 1, sizeof *p->starts);
    p->status = STATUS_NO_MEMORY;
    if (lo && order && p->sizes && p->starts) {
        builder b = {.tables = t, .cancel = cancel};
        sort_by_bucket(p, first, buckets, all, records, count, lo, order);
        if (p->largest > LARGEST_BUCKET) {
            p->status = STATUS_TOO_LARGE;
        } else {
            if (p->largest > t->largest)
                b.tables = own = mphf_tables_new(&t->parameters, p->largest);
            if (b.tables && allocate_scratch(&b, p->largest))
                p->status = build_buckets(&b, p, instruction_set_named(isa)->methods[t->parameters.method], buckets, lo, order);
        }
        p->bits = b.bits;
        p->bit_count = b.bit_count;
        p->salts = b.salts;
        p->salt_count = b.salt_count;
        free_scratch(&b);
        for (u32 i = 0; p->status == STATUS_OK && i < count; i++) {
            hi[i] = records[order[i]].hi;
            id[i] = records[order[i]].id;
        }
    }
    mphf_tables_free(own);
    free(lo);
    free(order);
    return p;
}

void mphf_partition_free(mphf_partition *p)
{
    if (!p)
        return;
    free(p->bits);
    free(p->salts);
    free(p->sizes);
    free(p->starts);
    free(p);
}

bool builder_note_salt(builder *b, u64 salt)
{
    root_salt *grown = realloc(b->salts, (b->salt_count + 1) * sizeof *grown); /* one bucket in thousands: no need to double */
    if (!grown)
        return false;
    b->salts = grown;
    b->salts[b->salt_count++] = (root_salt){b->bucket, salt};
    return true;
}

void mphf_copy_bits(uint64_t *target, uint64_t to, const uint64_t *source, uint64_t from, uint64_t count)
{
    while (count) {
        u64 step = 64 - (to & 63);
        step = step < count ? step : count;
        u64 value = source[from >> 6] >> (from & 63);
        if ((from & 63) + step > 64)
            value |= source[(from >> 6) + 1] << (64 - (from & 63));
        if (step < 64)
            value &= (1ull << step) - 1;
        target[to >> 6] |= value << (to & 63);
        to += step;
        from += step;
        count -= step;
    }
}

void mphf_pack(const uint64_t *words, uint64_t count, uint32_t width, uint8_t *out)
{
    u64 mask = (1ull << width) - 1;
    for (u64 i = 0; i < count; i++) {
        u64 at = i * width, window;
        memcpy(&window, out + at / 8, sizeof window);
        window |= (words[i] & mask) << (at & 7);
        memcpy(out + at / 8, &window, sizeof window);
    }
}

void mphf_gather(const uint8_t *rows, const uint64_t *offsets, uint64_t width, const uint64_t *ids, uint64_t count,
                 uint8_t *out)
{
    for (u64 i = 0; i < count; i++) {
        u64 begin = offsets ? offsets[ids[i]] : ids[i] * width, length = offsets ? offsets[ids[i] + 1] - begin : width;
        memcpy(out, rows + begin, length);
        out += length;
    }
}

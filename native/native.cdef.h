/* The C functions Python calls, as cffi reads them: declarations only, no preprocessor. */

enum {
    METHOD_BRUTE = 1,
    METHOD_ROTATION = 2,
    METHOD_CHAINED = 3,
    METHODS = 3,
    MPHF_LARGEST_BUCKET = 65536,
    MPHF_LONGEST_LEAF = 24,
    MPHF_WIDEST_FANOUT = 9,
    CHAIN_LONGEST_LEAF = 16
};

/* Status of a call; negative is a failure. */
enum {
    STATUS_OK = 0,
    ABSENT = -1,             /* in place of an index */
    STATUS_EQUAL_KEYS = -2,  /* no solution within the budget, or equal words seen: look for equal keys */
    STATUS_TOO_LARGE = -3,   /* a bucket of more than MPHF_LARGEST_BUCKET keys */
    STATUS_NO_MEMORY = -4,
    STATUS_CANCELLED = -5,
    STATUS_CORRUPT = -6      /* the file contradicts itself */
};

typedef struct {
    uint8_t method, leaf, fanout1, fanout2;
    uint8_t fanout3, root_bits;      /* from here on: zero but for chained seeds */
    uint16_t leaf_room, split_room;  /* epsilon, in 1/256 bit */
} mphf_parameters;

/* Keys of a batch: key i is data[offsets[i] ... offsets[i+1]), or without offsets the i-th stretch of `width` bytes, less
 * its trailing NULs if `strip`. */
typedef struct {
    const uint8_t *data;
    const uint64_t *offsets;
    uint64_t width, count;
    int strip;
} key_batch;

/* --- hash --- */
void mphf_hash(const uint8_t *key, uint64_t length, uint64_t seed, uint64_t *hi, uint64_t *lo);
void mphf_hash_batch(const key_batch *keys, uint64_t seed, uint64_t *hi, uint64_t *lo);

/* --- trees --- */
typedef struct mphf_tables mphf_tables;
void mphf_default_fanouts(mphf_parameters *p);
int mphf_parameters_valid(const mphf_parameters *p);
mphf_tables *mphf_tables_new(const mphf_parameters *p, uint32_t largest); /* NULL: no memory or not valid */
void mphf_tables_free(mphf_tables *t);
/* The tables as bytes, for kernels; they live as long as t. Only nodes[] unless the method is `chained`. */
typedef struct {
    const uint8_t *nodes, *links, *fields, *multiplier;
    uint64_t nodes_length, links_length, fields_length, multiplier_length;
} table_bytes;
void mphf_tables_bytes(const mphf_tables *t, table_bytes *out);
/* The most that any bucket of up to m keys has with `chained`: nodes, sub-seeds of a class, in leaves and in splittings, and bits of a
 * splitting's lower half. out[m] for m < count <= largest + 1. */
typedef struct {
    uint32_t nodes, leaf_seeds, split_seeds, low_bits;
} chain_demand;
void mphf_chain_demands(const mphf_tables *t, uint32_t count, chain_demand *out);
/* What a node of m keys is with `brute` and `rotation`. `nodes`, `fixed`: of the whole subtree. out[m] for m < count <= largest + 1. */
typedef struct {
    uint64_t budget;
    uint32_t unit, fixed, nodes;
    uint8_t fanout, tau;
} rice_shape;
void mphf_rice_shapes(const mphf_tables *t, uint32_t count, rice_shape *out);

/* --- build --- */
/* Of a bucket of chained seeds whose root salt does not fit its field. */
typedef struct {
    uint64_t bucket, salt;
} root_salt;

typedef struct {
    int status;
    uint64_t bit_count;
    uint64_t *bits;      /* the partition's bit strings, one after the other, from bit 0 */
    uint32_t *sizes;     /* keys per bucket */
    uint64_t *starts;    /* first bit per bucket */
    uint32_t largest;    /* keys in the largest bucket */
    root_salt *salts;    /* in the order of their buckets, which are counted from the partition's first */
    uint32_t salt_count;
} mphf_partition;

const char *mphf_isa_best(void);
int mphf_isa_available(const char *name);

/* A key's hash and where in the input it stood. */
typedef struct {
    uint64_t hi, lo, id;
} hashed_record;

/* Sorts records by partition = top bits of hi; starts[partitions + 1] receives each one's first record. */
void mphf_scatter(const uint64_t *hi, const uint64_t *lo, uint64_t count, uint32_t partitions_log2, uint64_t *starts,
                  hashed_record *out);

/* Builds the `buckets` buckets from `first` on of `all`, whose records are given; hi and id receive the records' in the order of the
 * keys' indices. Polls *cancel. Free the result. */
mphf_partition *mphf_build_partition(const mphf_tables *t, const char *isa, uint64_t first, uint64_t buckets, uint64_t all,
                                     const hashed_record *records, uint32_t count, uint64_t *hi, uint64_t *id,
                                     const volatile int *cancel);
void mphf_partition_free(mphf_partition *p);

/* Copies `count` bits from bit `from` to bit `to`, where zeros are. */
void mphf_copy_bits(uint64_t *target, uint64_t to, const uint64_t *source, uint64_t from, uint64_t count);

/* Packs the low `width` bits of each word one after the other from bit 0 of zeroed memory with 8 bytes to spare. */
void mphf_pack(const uint64_t *words, uint64_t count, uint32_t width, uint8_t *out);
/* out[i] = the row of `width` bytes at row ids[i]; with `offsets`, the bytes from offsets[id] to offsets[id + 1], closed up. */
void mphf_gather(const uint8_t *rows, const uint64_t *offsets, uint64_t width, const uint64_t *ids, uint64_t count,
                 uint8_t *out);

/* --- arrays of other libraries --- */
/* UTF-8 of `count` strings of `width` code points each, less their trailing NULs: string i is out[offsets[i] ... offsets[i + 1]).
 * `out` has room for 4 * width * count bytes. The first string that UTF-8 does not have, or `count`. */
uint64_t mphf_utf8(const uint32_t *codes, uint64_t width, uint64_t count, uint64_t *offsets, uint8_t *out);

/* A string of an Arrow array of views: up to 12 bytes lie inside. */
typedef struct {
    int32_t length;
    union {
        uint8_t inside[12];
        struct {
            uint8_t prefix[4];
            int32_t buffer, offset;
        } outside;
    } is;
} arrow_view;
/* The strings behind one another; string i has offsets[i + 1] - offsets[i] bytes, which is its length or 0. */
void mphf_join_views(const arrow_view *views, const uint8_t *const *buffers, const uint64_t *offsets, uint64_t count,
                     uint8_t *out);

/* --- Elias-Fano and directory --- */
enum {
    ELIAS_FANO_LONG = 8192,  /* ones per long sample */
    ELIAS_FANO_SHORT = 256,  /* ones per short sample */
    ELIAS_FANO_FAR = 65535   /* a short sample that says: count from the long one */
};
uint64_t elias_fano_words(uint64_t count, uint64_t last);
void elias_fano_build(const uint64_t *values, uint64_t count, uint64_t *words);
/* keys[i] and starts[i]: keys and bits before bucket i; the totals as elements `buckets`. */
typedef struct {
    uint64_t kmin, slope, pmin; /* FORMAT.md 5 */
} directory_line;
int mphf_directory_line(const uint64_t *keys, const uint64_t *starts, uint64_t buckets, directory_line *line);
uint64_t mphf_directory_words(const uint64_t *keys, const uint64_t *starts, uint64_t buckets, const directory_line *line);
int mphf_directory_build(const uint64_t *keys, const uint64_t *starts, uint64_t buckets, const directory_line *line,
                         uint64_t *words);

/* --- directory of chained seeds: FORMAT.md 5 --- */
typedef struct {
    uint64_t slope;       /* bits per key, times 2^16 */
    int64_t offset;       /* bits per bucket, times 2^16 */
    uint64_t smallest;    /* keys in the smallest bucket */
    uint32_t entry_bytes; /* 1, 2 or 4 */
} chain_line;
/* The cheapest line above the bits of all buckets. `t` reaches to the largest of the sizes. STATUS_OK or STATUS_NO_MEMORY. */
int mphf_chain_line(const mphf_tables *t, const uint32_t *sizes, uint64_t buckets, chain_line *line);
uint64_t mphf_chain_start(const chain_line *line, uint64_t keys_before, uint64_t bucket);
/* Copies a partition's bit strings to where they start; `words` are zero there. */
void mphf_chain_lay_out(const chain_line *line, const mphf_partition *p, uint64_t first, uint64_t buckets,
                        uint64_t keys_before, uint64_t *words);
uint64_t mphf_chain_directory_words(const chain_line *line, uint64_t buckets, uint64_t salt_count);
void mphf_chain_directory_build(const chain_line *line, const uint32_t *sizes, uint64_t buckets, const root_salt *salts,
                                uint64_t salt_count, uint64_t *words);

/* --- look-up --- */
typedef struct mphf_reader mphf_reader;

/* Points into the caller's memory, which must outlive the reader. Lengths in bytes. NULL: no memory; *status says corrupt. */
mphf_reader *mphf_reader_new(const char *isa, const mphf_parameters *p, uint64_t keys, uint64_t seed, uint64_t buckets,
                             uint32_t largest, const uint8_t *trees, uint64_t trees_length, const uint8_t *directory,
                             uint64_t directory_length, const uint8_t *fingerprints, uint64_t fingerprints_length,
                             uint32_t fingerprint_bits, int *status);
/* The rest a file may have. Every call returns STATUS_OK or STATUS_CORRUPT.
 * Ordinals: value i is the one of number ordinal i among `distinct` >= 1 that are stored; before the offsets. */
int mphf_reader_ordinals(mphf_reader *r, const uint8_t *ordinals, uint64_t length, uint64_t distinct);
/* Offsets of variable values. */
int mphf_reader_offsets(mphf_reader *r, const uint8_t *offsets, uint64_t length, uint64_t blob_length);
/* Where the blocks of compressed values begin and the last ends. */
int mphf_reader_blocks(mphf_reader *r, const uint8_t *starts, uint64_t length, uint64_t blocks, uint64_t packed_length);
/* The keys themselves: rows of `width` bytes or, with offsets, a blob. From here on mphf_find is never wrong. */
int mphf_reader_keys(mphf_reader *r, const uint8_t *stored, uint64_t stored_length, uint64_t width, const uint8_t *offsets,
                     uint64_t offsets_length);
/* Spells out where keys that vary in length begin, for whoever looks up so many that four bytes a key are worth it: `bounds` has
 * keys + 1 elements and must outlive the reader. STATUS_CORRUPT too for a blob of 4 GiB. No other thread knows the reader yet. */
int mphf_reader_bounds(mphf_reader *r, uint32_t *bounds);
void mphf_reader_free(mphf_reader *r);

/* Index of a key: that of some key of the set if it is absent; STATUS_CORRUPT. keys > 0. */
int64_t mphf_index(const mphf_reader *r, const uint8_t *key, uint64_t length);
/* The same, or ABSENT if its fingerprint, or the key that is stored, shows that it is absent. Works for keys = 0. */
int64_t mphf_find(const mphf_reader *r, const uint8_t *key, uint64_t length);
int mphf_index_batch(const mphf_reader *r, const key_batch *keys, int64_t *out);
int mphf_find_batch(const mphf_reader *r, const key_batch *keys, int64_t *out);
/* The bytes of value `index` are blob[begin ... end); begin is STATUS_CORRUPT if the file does not say. */
typedef struct {
    int64_t begin, end;
} value_span;
value_span mphf_span(const mphf_reader *r, uint64_t index);
/* The same for a batch; an index below 0 has the empty span at 0. */
int mphf_span_batch(const mphf_reader *r, uint64_t count, const int64_t *indices, int64_t *begin, int64_t *end);
/* The same for key `index` < keys, if they are stored, and for the bytes of a compressed block. */
value_span mphf_key_span(const mphf_reader *r, uint64_t index);
value_span mphf_block_span(const mphf_reader *r, uint64_t block);
/* Of `count` keys from `first` on, all below `keys`. */
int mphf_key_span_batch(const mphf_reader *r, uint64_t first, uint64_t count, int64_t *begin, int64_t *end);
/* --- scan: the occurrences of keys in a text --- */
/* The prefilter of a dictionary; points into the section, which starts on a multiple of 8 and must outlive it. NULL: no memory;
 * *status says corrupt. */
typedef struct mphf_scan_filter mphf_scan_filter;
mphf_scan_filter *mphf_scan_filter_new(const uint8_t *section, uint64_t length, int *status);
void mphf_scan_filter_free(mphf_scan_filter *filter);
/* No key is longer; how many lengths a key can have at most. */
uint64_t mphf_scan_longest(const mphf_scan_filter *filter);
uint64_t mphf_scan_lengths(const mphf_scan_filter *filter);
/* Enters keys in a section whose sizes and lengths are there. STATUS_CORRUPT if they do not suit the keys. */
int mphf_scan_filter_fill(uint8_t *section, uint64_t length, const key_batch *keys);

/* A text, and the part of it where occurrences begin; they may end behind it. */
typedef struct {
    const uint8_t *text;
    uint64_t length, begin, end;
} scan_stretch;

/* Occurrences by start, then length. `count` of `capacity` are there already; the call adds more and sets `next`: where the next call
 * has to begin, `end` if all were found. */
typedef struct {
    int64_t *start, *length, *index;
    const int64_t *numbers; /* what to give in place of every index; NULL: the indices themselves */
    uint64_t capacity, count, next;
} scan_hits;

enum {
    SCAN_FULL = 1,        /* in place of STATUS_OK: the hits have no more room; those at `next`, if there are any, are left out */
    SCAN_ROOM = 64,       /* hits that must have room at least */
    SCAN_MOST_WIDTHS = 64 /* of n-grams */
};

/* All of these: STATUS_OK, SCAN_FULL, STATUS_CORRUPT, STATUS_NO_MEMORY. Keys of no bytes do not occur. */
int mphf_scan_anywhere(const mphf_reader *r, const mphf_scan_filter *filter, const scan_stretch *s, scan_hits *out);
/* Every stretch of one of the widths, which ascend from 1 on. filter: may be NULL. */
int mphf_scan_windows(const mphf_reader *r, const mphf_scan_filter *filter, const scan_stretch *s, const uint64_t *widths, uint32_t count,
                      scan_hits *out);
/* Every word, and n-gram of words; `grams` ascend from 1 on, at most SCAN_MOST_WIDTHS. Bit c of `letters`, 0x110000 bits: code point c
 * is of a word. No word begins before `begin` and ends behind it. `last`: nothing follows the text; else what may go on there is
 * left, and end = length. */
int mphf_scan_words(const mphf_reader *r, const scan_stretch *s, const uint8_t *letters, const uint32_t *grams, uint32_t count, int last,
                    scan_hits *out);
/* One pattern of at least one byte; its index is 0. */
int mphf_scan_one(const char *isa, const uint8_t *pattern, uint64_t size, const scan_stretch *s, scan_hits *out);
/* The first place from `at` on that no word goes across, `length` if there is none. */
uint64_t mphf_scan_gap(const uint8_t *text, uint64_t length, uint64_t at);

/* Writes hits as lines: prefix, with `offsets` the start and a colon, the text, `end`; as many as there is room for. Returns how many.
 * Starts count from `base` before the text. *used: bytes written. */
uint64_t mphf_scan_lines(const uint8_t *text, uint64_t base, const int64_t *start, const int64_t *length, uint64_t count,
                         const uint8_t *prefix, uint64_t prefix_length, int offsets, uint8_t end, uint8_t *out, uint64_t room,
                         uint64_t *used);

/* --- for tools/bench.py: look-ups of ready hashes, keys > 0 --- */
uint64_t mphf_bench_single(const mphf_reader *r, const uint64_t *hi, const uint64_t *lo, uint64_t count, int dependent);
int mphf_bench_batch(const mphf_reader *r, const uint64_t *hi, const uint64_t *lo, uint64_t count, int64_t *out);

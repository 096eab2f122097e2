/* Memory for the search of chained seeds. */
#include <stdlib.h>

#include "chain_scratch.h"

chain_scratch *chain_scratch_new(const mphf_tables *t, u32 largest)
{
    u32 levels = 2; /* of the root, and of its lone keys */
    for (u32 m = largest; m > t->parameters.leaf; m = t->nodes[m].unit)
        levels++;
    u64 stride = largest + CHAIN_LANES, keys = levels * stride;
    chain_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    for (u32 set = 0; set < 256; set++)
        for (u32 lane = 0, to = set * 16; lane < 8; lane++)
            if (set >> lane & 1) {
                s->closing[to++] = (u8)(2 * lane);
                s->closing[to++] = (u8)(2 * lane + 1);
            }
    s->stride = (u32)stride;
    s->keys = malloc(keys * sizeof *s->keys);
    s->ids = malloc(keys * sizeof *s->ids);
    s->bits = malloc(keys * sizeof *s->bits);
    s->rest = malloc(keys * sizeof *s->rest);
    s->nodes = malloc((t->nodes[largest].nodes + 1u) * sizeof *s->nodes);
    s->runs = malloc(4 * stride * sizeof *s->runs);
    s->parts = malloc(stride * sizeof *s->parts);
    s->order = malloc(stride * sizeof *s->order);
    if (s->keys && s->ids && s->bits && s->rest && s->nodes && s->runs && s->parts && s->order)
        return s;
    chain_scratch_free(s);
    return NULL;
}

void chain_scratch_free(chain_scratch *s)
{
    if (!s)
        return;
    free(s->keys);
    free(s->ids);
    free(s->bits);
    free(s->rest);
    free(s->nodes);
    free(s->runs);
    free(s->parts);
    free(s->order);
    free(s);
}

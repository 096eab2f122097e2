/* Closes an instruction set's file: methods and look-ups compiled for it, and the table dispatch.c chooses from. */
#include "../lookup_body.h"
#include "../methods/brute.h"
#include "../methods/chained.h"
#include "../methods/rotation.h"
#include "../scan_anywhere.h"
#include "../scan_one.h"
#include "../scan_words.h"

#define SET_TABLE_(name) instruction_set_##name
#define SET_TABLE(name) SET_TABLE_(name)
#define SET_STRING_(name) #name
#define SET_STRING(name) SET_STRING_(name)

const instruction_set SET_TABLE(SET_NAME) = {
    SET_STRING(SET_NAME),
    {[METHOD_BRUTE] = brute_build_bucket, [METHOD_ROTATION] = rotation_build_bucket, [METHOD_CHAINED] = chained_build_bucket},
    look_up_index,
    look_up_find,
    look_up_batch,
    bench_single,
    bench_batch,
    scan_anywhere,
    scan_windows,
    scan_words,
    scan_one,
};

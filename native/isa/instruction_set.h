/* Closes an instruction set's file: the methods compiled for it, and the table dispatch.c chooses from. */
#include "../methods/brute.h"
#include "../methods/rotation.h"

#define SET_TABLE_(name) instruction_set_##name
#define SET_TABLE(name) SET_TABLE_(name)
#define SET_STRING_(name) #name
#define SET_STRING(name) SET_STRING_(name)

const instruction_set SET_TABLE(SET_NAME) = {
    SET_STRING(SET_NAME),
    {[METHOD_BRUTE] = brute_build_bucket, [METHOD_ROTATION] = rotation_build_bucket},
};

/* Chooses the instruction set to build with, at run time. */
#include "native.h"

extern const instruction_set instruction_set_baseline;
#if defined(__x86_64__)
extern const instruction_set instruction_set_avx2, instruction_set_avx512;
/* __builtin_cpu_supports asks CPUID and whether the operating system keeps the registers. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#elif defined(__aarch64__)
extern const instruction_set instruction_set_neon;
#endif

const instruction_set *instruction_set_named(const char *name)
{
#if defined(__x86_64__)
    const instruction_set *sets[] = {has_avx512() ? &instruction_set_avx512 : NULL,
                                     has_avx2() ? &instruction_set_avx2 : NULL, &instruction_set_baseline};
#elif defined(__aarch64__)
    const instruction_set *sets[] = {&instruction_set_neon, &instruction_set_baseline};
#else
    const instruction_set *sets[] = {&instruction_set_baseline};
#endif
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (sets[i] && (!name || !strcmp(sets[i]->name, name)))
            return sets[i];
    return NULL;
}

const char *mphf_isa_best(void) { return instruction_set_named(NULL)->name; }
int mphf_isa_available(const char *name) { return instruction_set_named(name) != NULL; }

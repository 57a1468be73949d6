/* See variables.h and variables.def. */
#include "compilers/variables.h"

#include <stdatomic.h>
#include <string.h>

#include "sys/env.h"

typedef enum variable_use { KEYED, BYPASS, OPTIONS, SWITCH, ONCE } variable_use;

static const char nvrtc_loaded[] = "NVRTC: a variable that it reads when it is loaded is set";
static const char nvjitlink_set[] = "nvJitLink: a variable that it reads is set";
static const char comgr_talks[] = "a variable of libamd_comgr's asks for files or logs of its own";
static const char llvm_set[] = "a variable is set that LLVM or LLD in hipRTC reads";

#define KN_VARIABLE(compiler, name, use, reason) {KN_COMPILER_##compiler, name, use, reason},
static const struct {
    kn_compiler compiler;
    const char *name;
    variable_use use;
    const char *reason;
} rows[] = {
#include "compilers/variables.def"
};
#undef KN_VARIABLE

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* The reason of a variable that is read ONCE and has been seen set. */
static const char *_Atomic seen[KN_COMPILERS];

static bool is_in_force(size_t row)
{
    const char *value = kn_env_get(rows[row].name);
    switch (rows[row].use) {
    case KEYED:
        return false;
    case OPTIONS:
        return value != NULL && value[0] != '\0';
    case SWITCH:
        return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
    default:
        return value != NULL;
    }
}

const char *kn_variables_reason(kn_compiler compiler)
{
    const char *reason = NULL;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].compiler == compiler && is_in_force(i)) {
            if (rows[i].use == ONCE) {
                atomic_store(&seen[compiler], rows[i].reason);
            }
            reason = reason != NULL ? reason : rows[i].reason;
        }
    }
    return reason != NULL ? reason : atomic_load(&seen[compiler]);
}

bool kn_variables_hold_option(kn_compiler compiler, const char *option)
{
    bool held = false;
    for (size_t i = 0; i < ROWS && !held; i++) {
        const char *value = rows[i].compiler == compiler && rows[i].use == OPTIONS
                                ? kn_env_get(rows[i].name)
                                : NULL;
        held = value != NULL && strstr(value, option) != NULL;
    }
    return held;
}

const char *kn_variables_keyed(kn_compiler compiler, size_t index)
{
    size_t found = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].compiler == compiler && rows[i].use == KEYED && found++ == index) {
            return rows[i].name;
        }
    }
    return NULL;
}

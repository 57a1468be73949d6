/* A runtime on the fake backend for the tests of core: a cache of its own, and scripted variables.
 * Each test starts with a clean environment. */
#ifndef KILN_TESTS_CORE_RIG_H
#define KILN_TESTS_CORE_RIG_H

#include <kiln/kiln.h>

#include "apis/fake/backend/fake.h"
#include "core/build/program.h"
#include "core/runtime/runtime.h"
#include "support/cmocka.h"
#include "support/counters.h"
#include "support/tmpdir.h"

typedef struct rig {
    char *dir;
    kiln_cache *cache;
    kiln_runtime *runtime;
    kiln_device *device;
    kn_fake_instance *fake;
} rig;

/* Setup and teardown for cmocka: *state is a rig with a directory and no runtime; KILN_* are
 * unset. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* Opens cache (at <directory>/cache) and runtime; `backend` NULL means "fake". Close, then open
 * again: a second process. */
void rig_open(rig *r, const char *backend);
void rig_close(rig *r);
/* rig_open with flags for the cache. */
void rig_open_cache(rig *r, const char *backend, uint32_t flags);
/* Closes, and opens with these options and the rig's own cache; `fake` is not set. */
kiln_status rig_create(rig *r, uint32_t cache_flags, const kiln_runtime_options *options,
                       kiln_diag *why);

extern const char rig_saxpy[];
kiln_source rig_source(const char *text);
/* Builds, and fails the test with the diag's words if that fails. */
kiln_program *rig_build(rig *r, const kiln_source *source);
kiln_status rig_try(rig *r, const kiln_source *source, kiln_diag *diag);
/* Builds `source`, releases it, and tells the key of its last stage and how many stages it
 * compiled. */
kiln_key rig_key(rig *r, const kiln_source *source, uint32_t *out_compiles);
/* Builds `source` and releases it; how many stages that compiled. */
uint32_t rig_compiles(rig *r, const kiln_source *source);
/* Launches saxpy over `global` items in groups of `local`. */
void rig_launch(rig *r, kiln_program *program, uint64_t global, uint64_t local);
/* Runs one item of a kernel that fills its one buffer, and reads that. */
void rig_read_one(rig *r, kiln_program *program, const char *entry, void *out, size_t size);
kt_counters rig_stats(const rig *r);
uint64_t rig_calls(const rig *r, kn_fake_op op);

#define RIG_OK(call)                                                                               \
    do {                                                                                           \
        kiln_diag diag = KILN_DIAG_INIT;                                                           \
        kiln_status got_ = (call);                                                                 \
        rig_expect(got_, KILN_OK, &diag, #call, __FILE__, __LINE__);                               \
        kiln_diag_clear(&diag);                                                                    \
    } while (0)
void rig_expect(kiln_status got, kiln_status expected, const kiln_diag *diag, const char *call,
                const char *file, int line);

/* Lines that were logged since rig_log_start; borrowed until the next start. */
void rig_log_start(void);
const char *rig_log_stop(void);

#endif

/* What the tests of the drop-ins share: one request, made by the compiler and found in memory, on
 * disk and in a pack, and what can be asked about the results compared line by line. */
#ifndef KILN_TESTS_CONFORMANCE_DROPIN_RIG_H
#define KILN_TESTS_CONFORMANCE_DROPIN_RIG_H

#include <stdio.h>

#include <kiln/cache.h>

#include "support/cmocka.h"

/* Makes the request through `cache` and returns a line for each query and each result, to be freed.
 * NULL where the compiler refuses it, which is allowed the `first` time only. */
typedef char *dropin_describe_fn(void *user, kiln_cache *cache, bool first);

typedef struct dropin_case {
    const char *dir;
    const char *name; /* of the caches' directories: unique in the directory */
    const char *what; /* the options, for messages */
    dropin_describe_fn *describe;
    bool (*may_lose)(void *user, const char *line); /* NULL: nothing may differ after a hit */
    void *user;
} dropin_case;

/* Fails the test where a hit differs from the compile. False where the compiler refuses the
 * request; else *out_compiled (may be NULL) is what the compile answered, to be freed. */
bool dropin_compare(const dropin_case *one, char **out_compiled);

/* A request of NVRTC or hipRTC. */
typedef struct dropin_request {
    const char *text;
    const char *options[2];
    size_t option_count;
} dropin_request;
extern const char *const dropin_expressions[2]; /* of templates in the text */

/* Compares kernels/sense.cu and a template for the backend's options, `most` of them, each with
 * `arch`. At least `least` of them must be taken. `check_effect` (may be NULL) gets what a real
 * compiler gave without an option and with it. False with a fake compiler, which knows no option:
 * a few of them do. */
bool dropin_compare_options(const char *dir, const char *backend, const char *arch, size_t most,
                            size_t least, dropin_describe_fn *describe,
                            void (*check_effect)(const char *option, const char *plain,
                                                 const char *with));

/* "label: 00ff..." in lines of 32 bytes. */
void dropin_note_bytes(FILE *out, const char *label, const void *data, size_t size);

#endif

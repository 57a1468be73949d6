/* One suite for every backend: what the public API promises must hold on each. Only <kiln/...> and
 * tests/support may be used here.
 *
 * A test is `void name(suite *s)`, listed in SUITE_TESTS. What a backend is known not to do is a
 * line of expect/<backend>.txt with its reason; the test is then left out, and said. */
#ifndef KILN_TESTS_CONFORMANCE_SUITE_H
#define KILN_TESTS_CONFORMANCE_SUITE_H

#include <kiln/kiln.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"

#define SUITE_SOURCES_MAX 8

typedef struct suite {
    const char *backend;
    char *dir; /* of this run; holds the caches and the headers that tests write */
    kiln_cache *cache;
    kiln_runtime *runtime; /* shared by the tests that want nothing special */
    kiln_device *device;
    kiln_queue *queue;
    kiln_program *basics; /* kernels/basics.* */
    /* Where a text has one entry, main: basics built for its other kernels. NULL elsewhere. */
    kiln_program *shape, *reverse;
} suite;

/* A kernel of basics, for kiln_queue_launch: the program it is in, and its entry there. */
#define KERNEL(s, name) suite_program((s), (name)), suite_entry((s)->device, (name))
kiln_program *suite_program(const suite *s, const char *kernel);
const char *suite_entry(kiln_device *device, const char *kernel);
/* True for backends that take GLSL, whose only entry is main. */
bool suite_has_main(kiln_device *device);

#define SUITE_TESTS(X)                                                                             \
    X(devices_are_described)                                                                       \
    X(probing_here_and_in_a_child_agree)                                                           \
    X(a_second_process_compiles_nothing)                                                           \
    X(equal_builds_share_a_program)                                                                \
    X(a_released_program_comes_back_from_memory)                                                   \
    X(devices_share_no_program)                                                                    \
    X(defines_change_the_program)                                                                  \
    X(headers_change_the_program)                                                                  \
    X(a_broken_kernel_leaves_a_log_and_nothing_else)                                               \
    X(cache_only_never_compiles)                                                                   \
    X(without_a_cache_all_works)                                                                   \
    X(compiling_by_name_fills_the_same_cache)                                                      \
    X(compiles_are_announced)                                                                      \
    X(the_program_tells_its_entries)                                                               \
    X(a_hit_is_what_the_compile_was)                                                               \
    X(kernels_of_a_text_share_one_compile)                                                         \
    X(kernels_that_are_not_there_are_refused)                                                      \
    X(sources_in_no_language_are_refused)                                                          \
    X(buffers_keep_bytes_at_offsets)                                                               \
    X(ranges_outside_a_buffer_are_refused)                                                         \
    X(fills_repeat_their_pattern)                                                                  \
    X(copies_go_between_buffers)                                                                   \
    X(saxpy_is_right)                                                                              \
    X(launches_have_one_to_three_dimensions)                                                       \
    X(work_groups_share_memory)                                                                    \
    X(buffer_arguments_have_offsets)                                                               \
    X(wrong_arguments_are_refused)                                                                 \
    X(wrong_shapes_are_refused)                                                                    \
    X(things_of_another_device_are_refused)                                                        \
    X(events_tell_time)                                                                            \
    X(a_queue_keeps_its_order)                                                                     \
    X(two_queues_do_not_disturb_each_other)                                                        \
    X(a_queue_waits_for_another)                                                                   \
    X(a_stream_of_submissions_is_right)                                                            \
    X(a_program_behind_a_fallback_switches)                                                        \
    X(a_program_being_warmed_is_compiled_once)                                                     \
    X(a_refused_binary_is_made_again)                                                              \
    X(memory_is_shared_by_its_address)                                                             \
    X(a_queue_runs_in_the_stream_of_another)                                                       \
    X(queues_follow_each_other)

#define SUITE_DECLARE(name) void name(suite *s);
SUITE_TESTS(SUITE_DECLARE)
#undef SUITE_DECLARE

/* Fails the test with the diag's words unless `call`, which is given &diag, gives `expected`. */
#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        kiln_diag diag = KILN_DIAG_INIT;                                                           \
        kiln_status got_ = (call);                                                                 \
        suite_expect(got_, (expected), &diag, #call, __FILE__, __LINE__);                          \
        kiln_diag_clear(&diag);                                                                    \
    } while (0)
#define OK(call) EXPECT(KILN_OK, call)
/* A refusal must say why. */
#define REFUSED(call) EXPECT(KILN_E_INVALID, call)
void suite_expect(kiln_status got, kiln_status expected, const kiln_diag *diag, const char *call,
                  const char *file, int line);

/* The variants of kernels/NAME.* in every language there is, owned by the list. */
typedef struct suite_sources {
    kiln_source sources[SUITE_SOURCES_MAX];
    char *names[SUITE_SOURCES_MAX];
    char *texts[SUITE_SOURCES_MAX];
    size_t count;
} suite_sources;
void suite_load(const char *name, suite_sources *out);
void suite_unload(suite_sources *sources);
/* Gives every variant these defines and this include dir (NULL: none). */
void suite_adorn(suite_sources *sources, const kiln_define *defines, size_t count,
                 const char *const *dir);

/* A runtime of the backend under test on a cache at <directory>/<name>; both end with suite_close.
 */
typedef struct suite_fresh {
    kiln_cache *cache;
    kiln_runtime *runtime;
    kiln_device *device;
} suite_fresh;
void suite_open(suite *s, const char *name, uint32_t cache_flags, suite_fresh *out);
void suite_close(suite_fresh *fresh);
/* Another runtime on the same cache. What the first one has launched is stored then. */
void suite_restart(suite *s, suite_fresh *fresh);

/* Builds kernels/NAME.* on a device. */
kiln_program *suite_build(kiln_device *device, const char *name, const kiln_define *defines,
                          size_t count, const char *const *dir);
/* Launches a kernel of kernels/basics.*: a driver that compiles for its binary (PoCL) has one of
 * launched programs only. */
void suite_launch(kiln_device *device, kiln_program *program);
/* Runs kernels/value.* and gives the one number it writes. */
int suite_value(kiln_device *device, kiln_program *program);
/* Waits until the entries of the device's target are written and no more come. */
size_t suite_entries(kiln_cache *cache, const char *target);

#endif

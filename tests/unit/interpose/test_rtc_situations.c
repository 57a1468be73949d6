/* The situations of tests/unit/engine/test_situations.c, for the frontend of NVRTC and hipRTC: a
 * library that is not there, the same counters. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stages.h"
#include "base/text.h"
#include "interpose/rtc_compile.h"
#include "interpose/rtc_key.h"
#include "interpose/session.h"
#include "support/faultfs.h"
#include "unit/engine/counts.h"
#include "unit/store/support.h"

/* --- the process and its compiler ------------------------------------------------------------- */

static kiln_cache *cache_now;
static kn_header_memo *headers_now;
static pthread_mutex_t origin_lock = PTHREAD_MUTEX_INITIALIZER;
static char origin_now[16];

static struct {
    _Atomic int compiles;
    int code;
    bool replaced, secret;
    void (*during)(void);
} real;

kiln_cache *kn_session_cache(void)
{
    return cache_now;
}

kn_header_memo *kn_session_headers(void)
{
    return headers_now;
}

void kn_session_report(const kn_session_event *event)
{
    assert_int_equal(pthread_mutex_lock(&origin_lock), 0);
    kn_text_put(origin_now, sizeof(origin_now), event->origin);
    assert_int_equal(pthread_mutex_unlock(&origin_lock), 0);
}

static int create_real(void **program, const char *source, const char *name, int header_count,
                       const char *const *headers, const char *const *header_names)
{
    (void)source, (void)name, (void)header_count, (void)headers, (void)header_names;
    *program = malloc(1);
    return *program != NULL ? 0 : KN_RTC_OUT_OF_MEMORY;
}

static int destroy_real(void **program)
{
    free(*program);
    return 0;
}

static int compile_real(void *program, int option_count, const char *const *options)
{
    (void)program, (void)option_count, (void)options;
    void (*during)(void) = real.during;
    real.compiles++;
    real.during = NULL;
    if (during != NULL) {
        during();
    }
    return real.code;
}

static int get_size(void *program, size_t *size)
{
    (void)program;
    *size = 5;
    return 0;
}

static int get_bytes(void *program, char *bytes)
{
    (void)program;
    memcpy(bytes, "text", 5);
    return 0;
}

static const kn_rtc_calls calls = {
    .create = create_real,
    .destroy = destroy_real,
    .compile = compile_real,
    .outputs = {[KN_RTC_LOG] = {get_size, get_bytes}, [KN_RTC_PTX] = {get_size, get_bytes}}};

static const kn_rtc_calls *open_real(void)
{
    return &calls;
}

static kiln_status find_identity(const kn_rtc_library *library, kn_rtc_identity *out,
                                 kiln_diag *diag)
{
    (void)library, (void)diag;
    *out = (kn_rtc_identity){{{.field = "library", .text = "none"}}};
    return KILN_OK;
}

static bool identity_holds(const kn_rtc_library *library, const kn_rtc_identity *identity)
{
    (void)library, (void)identity;
    return !real.replaced;
}

static void read_options(const char *const *options, size_t count, kn_rtc_options *out)
{
    kn_text_put(out->target, sizeof(out->target), "test-target");
    out->beside = true;
    for (size_t i = 0; i < count; i++) {
        out->rest[out->rest_count++] = options[i];
        out->bypass = strcmp(options[i], "-odd") == 0 ? "-odd" : out->bypass;
    }
}

static const char *refuse(const kn_rtc_options *options, const kn_rtc_answer *answer)
{
    (void)options, (void)answer;
    return real.secret ? "it is a secret" : NULL;
}

static const kiln_include_rules include_rules = {.complete = true};

static const kn_rtc_kind kind = {.what = "nvrtc",
                                 .name = "NVRTC",
                                 .unnamed = "default_program",
                                 .stage = "test",
                                 .revision = 1,
                                 .language = KILN_LANG_CUDA,
                                 .frontend = KN_FRONTEND_NVRTC,
                                 .record_prefix = "cuda",
                                 .include_rules = &include_rules,
                                 .recompiles = true,
                                 .find_identity = find_identity,
                                 .identity_holds = identity_holds,
                                 .read_options = read_options,
                                 .refuse = refuse,
                                 .rename_log = kn_rtc_rename_in_nvrtc_log};

static kn_rtc_library library = {.kind = &kind, .path = "none", .open = open_real};

/* --- a program -------------------------------------------------------------------------------- */

static char *root, *header;

static void open_cache(uint32_t flags, bool records)
{
    kiln_cache_options options;
    char *recording = kt_path(root, "recording");
    kiln_cache_destroy(cache_now);
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    options.flags = flags;
    options.no_fsync = true;
    options.record = records ? recording : NULL;
    assert_int_equal(kiln_cache_create(&options, &cache_now, NULL), KILN_OK);
    free(recording);
}

static kn_rtc_program *make_program(const char *text, const char *option)
{
    char *name = kt_path(root, "a.cu");
    kn_rtc_program *program = kn_rtc_program_create(&library, text, name, 0, NULL, NULL);
    assert_non_null(program);
    assert_true(kn_rtc_program_set_options(program, option != NULL ? 1 : 0, &option));
    free(name);
    return program;
}

static const char source[] = "__global__ void f() {}\n"; /* no header: no list of them is stored */

/* Compiles as another program would, and checks that the program has what its caller asked for. */
static void compile_text(const char *text, const char *option)
{
    kn_rtc_program *program = make_program(text, option);
    assert_int_equal(kn_rtc_program_compile(program), real.code);
    assert_true(program->plain ? program->real != NULL : program->blob != NULL);
    assert_true(kn_rtc_program_destroy(program));
}

static void compile_source(void)
{
    compile_text(source, NULL);
}

static void seed(uint32_t flags)
{
    compile_source();
    open_cache(flags, false);
    real.compiles = 0;
}

static void put_junk(void)
{
    kn_rtc_program *program = make_program(source, NULL);
    kn_rtc_identity identity;
    kn_rtc_key key;
    assert_int_equal(find_identity(&library, &identity, NULL), KILN_OK);
    assert_int_equal(kn_rtc_key_init(&key, cache_now, program, &identity, NULL), KILN_OK);
    kiln_blob *blob = ks_blob("junk");
    assert_int_equal(kiln_cache_put(cache_now, key.recipe, blob, 1, NULL), KILN_OK);
    kiln_blob_release(blob);
    kn_rtc_key_deinit(&key);
    assert_true(kn_rtc_program_destroy(program));
}

/* --- situations ------------------------------------------------------------------------------- */

static void act_hit(void)
{
    seed(0);
    compile_source();
    assert_int_equal(real.compiles, 0);
}

static void act_unsound(void)
{
    put_junk();
    open_cache(0, false);
    compile_source();
}

static void act_fails(void)
{
    real.code = 6;
    compile_source();
}

static void change_header(void)
{
    kt_file_write(header, "#define VALUE 200\n", 18);
}

static void act_header(void)
{
    real.during = change_header;
    compile_text("#include \"value.h\"\n", NULL);
}

static void act_compiler(void)
{
    real.replaced = true;
    compile_source();
}

static void act_private(void)
{
    real.secret = true;
    compile_source();
}

static void act_bypass(void)
{
    compile_text(source, "-odd");
}

static void act_full_disk(void)
{
    if (kt_faultfs_available()) {
        kt_faultfs_set(root, "write:*:ENOSPC");
    }
    compile_source();
    if (kt_faultfs_available()) {
        kt_faultfs_set(NULL, NULL);
    }
}

static void act_read_only(void)
{
    open_cache(KILN_CACHE_READONLY, false);
    compile_source();
}

static void act_recording(void)
{
    open_cache(0, true);
    compile_source();
}

static void compile_another(void)
{
    compile_text("another", NULL);
}

static void act_nested(void)
{
    real.during = compile_another;
    compile_source();
}

static void act_nested_same(void)
{
    real.during = compile_source;
    compile_source();
}

static void await_child(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

static void end_process(void)
{
    _exit(3);
}

static void act_crashed(void)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        real.during = end_process;
        compile_source();
        _exit(4);
    }
    await_child(pid);
    compile_source();
}

static pid_t forked = -1;

static void fork_process(void)
{
    forked = fork();
    assert_true(forked >= 0);
    if (forked > 0) {
        await_child(forked);
    }
}

static void act_fork(void)
{
    real.during = fork_process;
    compile_source();
    if (forked == 0) {
        _exit(3);
    }
}

static void *compile_on_thread(void *user)
{
    (void)user;
    compile_source();
    return NULL;
}

static pthread_t follower;

static void start_follower(void)
{
    assert_int_equal(pthread_create(&follower, NULL, compile_on_thread, NULL), 0);
}

static void act_two_threads(void)
{
    real.during = start_follower;
    compile_source();
    assert_int_equal(pthread_join(follower, NULL), 0);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*act)(void);
    const char *origin; /* in the last report; NULL: either thread's */
    kt_counts expected;
} rows[] = {
    {"miss", compile_source, "compiled", {MISS, .puts = 1}},
    {"hit", act_hit, "disk", {HIT}},
    {"unsound", act_unsound, "compiled", {HIT, MISS, .puts = 1}},
    {"failed compile", act_fails, "failed", {MISS, .failures = 1}},
    {"header changed", act_header, "bypassed", {MISS, .bypassed = 1}},
    {"compiler changed", act_compiler, "bypassed", {MISS, .bypassed = 1}},
    {"private", act_private, "bypassed", {MISS, .bypassed = 1}},
    {"bypass", act_bypass, "bypassed", {.bypassed = 1}},
    {"full disk", act_full_disk, "compiled", {MISS, .put_failures = 1}},
    {"read-only", act_read_only, "compiled", {MISS}},
    {"recording", act_recording, "compiled", {MISS, .puts = 1, .recorded = 1}},
    {"nested", act_nested, "compiled", {TWICE, .puts = 2}},
    {"nested in itself", act_nested_same, "compiled", {TWICE, .puts = 2}},
    {"crashed predecessor", act_crashed, "compiled", {MISS, .puts = 1}},
    {"fork in between", act_fork, "compiled", {MISS, .puts = 1}},
    {"two threads", act_two_threads, NULL, {HIT, MISS, .puts = 1}},
};

static void check_row(size_t i)
{
    root = kt_tmpdir_create();
    header = kt_path(root, "value.h");
    kt_file_write(header, "#define VALUE 1\n", 16);
    memset(&real, 0, sizeof(real));
    headers_now = kn_header_memo_create();
    open_cache(0, false);
    rows[i].act();
    kt_check_counts(rows[i].name, kt_count(cache_now), rows[i].expected);
    if (rows[i].origin != NULL) {
        assert_string_equal(origin_now, rows[i].origin);
    }
    kiln_cache_destroy(cache_now);
    cache_now = NULL;
    kn_header_memo_destroy(headers_now);
    kt_tmpdir_remove(root);
    free(header);
}

static void nvrtc_passes_every_situation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].act != act_full_disk || kt_faultfs_available()) {
            check_row(i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nvrtc_passes_every_situation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The situations of tests/unit/engine/situations.c, for the frontend of NVRTC and hipRTC: libraries
 * that are not there, with the options of those that are. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/shim/nvrtc_kind.h"
#include "apis/hip/shim/hiprtc_kind.h"
#include "base/text.h"
#include "interpose/rtc_compile.h"
#include "interpose/rtc_key.h"
#include "interpose/session.h"
#include "support/tmpdir.h"
#include "unit/engine/situations.h"

/* --- the process and its compiler ------------------------------------------------------------- */

static kiln_cache *cache_now;
static kn_header_memo *headers_now;
static pthread_mutex_t origin_lock = PTHREAD_MUTEX_INITIALIZER;
static char origin_now[16];

/* What the next compile does; it is taken back then. */
static struct {
    _Atomic unsigned compiles;
    _Atomic int code;
    atomic_bool replaced, secret, includes, odd; /* two threads may compile */
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

static int find_version(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
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
    .version = find_version,
    .create = create_real,
    .destroy = destroy_real,
    .compile = compile_real,
    .outputs = {[KN_RTC_LOG] = {get_size, get_bytes}, [KN_RTC_CODE] = {get_size, get_bytes}}};

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
    return !atomic_exchange(&real.replaced, false);
}

static const char *refuse(const kn_rtc_options *options, const kn_rtc_answer *answer)
{
    (void)options, (void)answer;
    return atomic_exchange(&real.secret, false) ? "it is a secret" : NULL;
}

static kn_rtc_kind kind;
static kn_rtc_library library = {.kind = &kind, .path = "none", .open = open_real};

/* --- a program -------------------------------------------------------------------------------- */

static const char *architecture;
static char *header, *name, *directory;

static void begin(const char *dir)
{
    memset(&real, 0, sizeof(real));
    header = kt_path(dir, "value.h");
    name = kt_path(dir, "a.cu");
    directory = kt_path("-I", dir);
    kt_file_write(header, "#define VALUE 1\n", 16);
    headers_now = kn_header_memo_create();
}

static void end(void)
{
    kn_header_memo_destroy(headers_now);
    free(header);
    free(name);
    free(directory);
}

static void use_cache(kiln_cache *cache)
{
    cache_now = cache;
}

/* Without an include no list of headers is stored, which would count. */
static void compile_program(bool other)
{
    const char *text = other           ? "another"
                       : real.includes ? "#include \"value.h\"\n"
                                       : "__global__ void f() {}\n";
    const char *options[] = {architecture, directory, "-odd"};
    const int code = real.code;
    kn_rtc_program *program = kn_rtc_program_create(&library, text, name, 0, NULL, NULL);
    assert_non_null(program);
    assert_true(kn_rtc_program_set_options(program, real.odd ? 3 : 2, options));
    real.odd = false;
    assert_int_equal(kn_rtc_program_compile(program), code);
    assert_true(program->plain ? program->real != NULL : program->blob != NULL);
    assert_true(kn_rtc_program_destroy(program));
    real.code = 0;
}

static unsigned count_compiles(void)
{
    return real.compiles;
}

static void call_during(void (*call)(void))
{
    real.during = call;
}

static const char *find_origin(void)
{
    return origin_now;
}

/* --- events ----------------------------------------------------------------------------------- */

static void fail_compile(void)
{
    real.code = 6;
}

static void write_header(void)
{
    kt_file_write(header, "#define VALUE 200\n", 18);
}

static void change_header(void)
{
    real.includes = true;
    real.during = write_header;
}

#define BYTES "the program gets bytes, which no driver has loaded"

static void check_kind(const kn_rtc_kind *real_kind, const char *option, const char *target)
{
    const kt_frontend frontend = {
        .name = real_kind->name,
        .target = target,
        .begin = begin,
        .end = end,
        .use = use_cache,
        .compile = compile_program,
        .compiles = count_compiles,
        .during = call_during,
        .origin = find_origin,
        .events = {[KT_FAILS] = fail_compile, [KT_HEADER] = change_header},
        .flags = {[KT_COMPILER] = &real.replaced,
                  [KT_PRIVATE] = &real.secret,
                  [KT_BYPASSES] = &real.odd},
        .impossible = {[KT_REFUSES] = BYTES,
                       [KT_LOAD_FAILS] = BYTES,
                       [KT_QUARANTINED] = BYTES,
                       [KT_DEFERS] = "the library has the bytes when it returns"}};
    kind = *real_kind;
    kind.find_identity = find_identity;
    kind.identity_holds = identity_holds;
    kind.refuse = refuse;
    architecture = option;
    kt_check_situations(&frontend);
}

static void nvrtc_passes_every_situation(void **state)
{
    (void)state;
    check_kind(&kn_nvrtc_kind, "-arch=sm_90", "cuda-sm_90");
}

static void hiprtc_passes_every_situation(void **state)
{
    (void)state;
    check_kind(&kn_hiprtc_kind, "--offload-arch=gfx1030", "hip-gfx1030");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvrtc_passes_every_situation),
        cmocka_unit_test(hiprtc_passes_every_situation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

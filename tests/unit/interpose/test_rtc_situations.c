/* The situations of tests/unit/engine/situations.c, for the frontend of NVRTC and hipRTC: a library
 * that is not there. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/stages.h"
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
    int code;
    bool replaced, secret, includes, odd;
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
    const bool holds = !real.replaced;
    real.replaced = false;
    return holds;
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
    const bool secret = real.secret;
    real.secret = false;
    return secret ? "it is a secret" : NULL;
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

static char *header, *name;

static void begin(const char *dir)
{
    memset(&real, 0, sizeof(real));
    header = kt_path(dir, "value.h");
    name = kt_path(dir, "a.cu");
    kt_file_write(header, "#define VALUE 1\n", 16);
    headers_now = kn_header_memo_create();
}

static void end(void)
{
    kn_header_memo_destroy(headers_now);
    free(header);
    free(name);
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
    const char *option = "-odd";
    const int code = real.code;
    kn_rtc_program *program = kn_rtc_program_create(&library, text, name, 0, NULL, NULL);
    assert_non_null(program);
    assert_true(kn_rtc_program_set_options(program, real.odd ? 1 : 0, &option));
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

static void replace_library(void)
{
    real.replaced = true;
}

static void make_secret(void)
{
    real.secret = true;
}

static void pass_odd_option(void)
{
    real.odd = true;
}

#define BYTES "the program gets bytes, which no driver has loaded"

static const kt_frontend nvrtc = {
    .name = "nvrtc",
    .target = "test-target",
    .begin = begin,
    .end = end,
    .use = use_cache,
    .compile = compile_program,
    .compiles = count_compiles,
    .during = call_during,
    .origin = find_origin,
    .events = {[KT_FAILS] = fail_compile,
               [KT_HEADER] = change_header,
               [KT_COMPILER] = replace_library,
               [KT_PRIVATE] = make_secret,
               [KT_BYPASSES] = pass_odd_option},
    .impossible = {[KT_REFUSES] = BYTES,
                   [KT_LOAD_FAILS] = BYTES,
                   [KT_QUARANTINED] = BYTES,
                   [KT_DEFERS] = "the library has the bytes when it returns"}};

static void nvrtc_passes_every_situation(void **state)
{
    (void)state;
    kt_check_situations(&nvrtc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nvrtc_passes_every_situation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

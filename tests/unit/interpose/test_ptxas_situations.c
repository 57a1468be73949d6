/* The situations of tests/unit/engine/situations.c, for the frontend of ptxas: a tool that is not
 * there, whose files are in memory. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apis/cuda/shim/ptxas.h"
#include "base/text.h"
#include "interpose/session.h"
#include "interpose/tool.h"
#include "support/tmpdir.h"
#include "unit/engine/situations.h"

/* --- the process and its tool ----------------------------------------------------------------- */

static kiln_cache *cache_now;
static char origin_now[16];

/* What the next compile does; it is taken back then. */
static struct {
    unsigned compiles, became;
    int code;
    _Atomic bool replaced, names_input, odd, lines;
    void (*during)(void);
} real;

kiln_cache *kn_session_cache(void)
{
    return cache_now;
}

/* What ptxas.c calls in place of kiln_cache_destroy: a process has one call and one cache. */
void kt_keep_cache(kiln_cache *cache);
void kt_keep_cache(kiln_cache *cache)
{
    assert_ptr_equal(cache, cache_now);
}

void kn_session_report(const kn_session_event *event)
{
    kn_text_put(origin_now, sizeof(origin_now), event->origin);
}

static unsigned version; /* of the tool */

bool kn_tool_identify(kiln_cache *cache, const char *path, char *out, size_t size)
{
    (void)cache, (void)path;
    kn_text_putf(out, size, "build-id:%u", version);
    return true;
}

int kn_tool_memory_file(kn_span content)
{
    const int file = memfd_create("kiln", 0);
    assert_true(file >= 0);
    /* past the fault injector, which knows the number of a descriptor from before */
    assert_int_equal(syscall(SYS_write, file, content.data, content.length), content.length);
    return file;
}

void kn_tool_memory_name(int file, char out[32])
{
    kn_text_putf(out, 32, "/proc/self/fd/%d", file);
}

char *kn_tool_memory_read(int file, size_t *out_length)
{
    char *bytes = calloc(1, 4096);
    assert_non_null(bytes);
    const ssize_t length = pread(file, bytes, 4095, 0);
    assert_true(length >= 0);
    *out_length = (size_t)length;
    return bytes;
}

bool kn_tool_run(const char *path, char *const *argv, int out_file, int error_file, int *out_code)
{
    (void)path, (void)out_file, (void)error_file;
    void (*during)(void) = real.during;
    real.compiles++;
    real.during = NULL;
    if (during != NULL) {
        during();
    }
    version += real.replaced;
    *out_code = real.code;
    if (real.code == 0) {
        char *const *last = argv;
        while (last[1] != NULL) {
            last++;
        }
        const char *code = real.names_input ? "code of /proc/self/fd/3" : "code";
        const int to = open(*last, O_WRONLY | O_CLOEXEC);
        assert_true(to >= 0);
        assert_int_equal(syscall(SYS_write, to, code, strlen(code)), strlen(code));
        assert_int_equal(close(to), 0);
    }
    return true;
}

/* The real one would take the process's place. */
void kn_tool_become(const char *path, char *const *argv)
{
    (void)path, (void)argv;
    real.became++;
}

kn_interpose_ptxas_fn kn_interpose_ptxas;

/* --- a program -------------------------------------------------------------------------------- */

static char *input, *output, *header;

static void begin(const char *dir)
{
    memset(&real, 0, sizeof(real));
    input = kt_path(dir, "a.ptx");
    output = kt_path(dir, "a.cubin");
    header = kt_path(dir, "a.cu");
    kt_file_write(header, "void f() {}\n", 12);
}

static void end(void)
{
    free(input);
    free(output);
    free(header);
}

static void use_cache(kiln_cache *cache)
{
    cache_now = cache;
}

static void compile_program(bool other)
{
    char text[1024], tool[] = "ptxas", arch[] = "-arch=sm_90", to[] = "-o", odd[] = "--odd";
    char *argv[] = {tool, arch, input, to, output, real.odd ? odd : NULL, NULL};
    const unsigned became = real.became;
    const bool passes = real.odd || real.names_input || real.replaced || real.lines;
    const int code = real.code;
    kn_text_putf(text, sizeof(text), ".version 8.0\n.target sm_90\n%s%s%s// %d\n",
                 real.lines ? ".file 1 \"" : "", real.lines ? header : "", real.lines ? "\"\n" : "",
                 other);
    kt_file_write(input, text, strlen(text));
    const int given = kn_interpose_ptxas("/ptxas", real.odd ? 6 : 5, argv);
    real.code = 0;
    real.odd = real.names_input = real.replaced = real.lines = false;
    if (given == 0) {
        size_t size = 0;
        char *bytes = kt_file_read(output, &size);
        assert_int_equal(size, 4);
        assert_memory_equal(bytes, "code", 4);
        free(bytes);
    } else {
        assert_true(given == code || (given == -1 && passes && real.became == became + 1));
    }
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
    real.code = 255;
}

static void write_source(void)
{
    kt_file_write(header, "void f() { /* longer */ }\n", 26);
}

static void change_source(void)
{
    real.lines = true;
    real.during = write_source;
}

#define BYTES "the program gets a file, which no driver has loaded"
#define ALONE "a process has one compile"

static const kt_frontend ptxas = {
    .name = "ptxas",
    .target = "cuda-sm_90",
    .begin = begin,
    .end = end,
    .use = use_cache,
    .compile = compile_program,
    .compiles = count_compiles,
    .during = call_during,
    .origin = find_origin,
    .events = {[KT_FAILS] = fail_compile, [KT_HEADER] = change_source},
    .flags = {[KT_COMPILER] = &real.replaced,
              [KT_PRIVATE] = &real.names_input,
              [KT_BYPASSES] = &real.odd},
    .impossible = {[KT_REFUSES] = BYTES,
                   [KT_LOAD_FAILS] = BYTES,
                   [KT_QUARANTINED] = BYTES,
                   [KT_DEFERS] = "the tool has written its file when it ends",
                   [KT_RECORDS] = "PTX comes from a program that is recorded itself",
                   [KT_FORKS] = ALONE,
                   [KT_NESTS] = ALONE,
                   [KT_THREADS] = ALONE}};

static void ptxas_passes_every_situation(void **state)
{
    (void)state;
    kt_check_situations(&ptxas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ptxas_passes_every_situation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

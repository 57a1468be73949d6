/* The situations of tests/unit/engine/situations.c, for the frontend of nvJitLink: a library that
 * is not there. A link is several steps, each looked up and counted: the table's cache has the last
 * one, the link itself, and a cache of its own those before. What a whole link counts follows. */
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/shim/jitlink_api.h"
#include "base/text.h"
#include "interpose/session.h"
#include "interpose/tool.h"
#include "support/tmpdir.h"
#include "unit/engine/situations.h"

#define RELEASE KN_JITLINK_12_4

/* --- the process and its library -------------------------------------------------------------- */

typedef enum step { CREATE, ADD, COMPLETE } step;

static kiln_cache *cache_now, *cache_before;
static _Thread_local bool is_last; /* the step of this thread has the table's cache */
static bool is_whole;              /* so has every step */
static _Thread_local char origin_now[16];
static _Thread_local unsigned reports;

/* What the next link does; it is taken back then. */
static struct {
    _Atomic unsigned compiles, links;
    _Atomic unsigned version;
    nvJitLinkResult code;
    step fails, replaced_in; /* where there is a code, and where it is replaced */
    bool replaced, names_error, odd;
    void (*during)(void);
} real;

kiln_cache *kn_session_cache(void)
{
    return is_last || is_whole ? cache_now : cache_before;
}

void kn_session_report(const kn_session_event *event)
{
    kn_text_put(origin_now, sizeof(origin_now), event->origin);
    reports++;
}

bool kn_tool_identify(kiln_cache *cache, const char *path, char *out, size_t size)
{
    (void)cache, (void)path;
    kn_text_putf(out, size, "build-id:%u", real.version);
    return true;
}

struct nvJitLink {
    unsigned inputs;
    bool completed;
};

static nvJitLinkResult take_real_step(step now)
{
    if (real.replaced && real.replaced_in == now) {
        real.version = 1;
    }
    return real.code != 0 && real.fails == now ? real.code : 0;
}

static nvJitLinkResult create_real(nvJitLinkHandle *handle, uint32_t count,
                                   const char *const *options)
{
    const nvJitLinkResult code = take_real_step(CREATE);
    assert_int_equal(count, real.odd ? 2 : 1);
    assert_string_equal(options[0], "-arch=sm_90");
    *handle = code == 0 ? calloc(1, sizeof(**handle)) : NULL;
    assert_true(code != 0 || *handle != NULL);
    real.links += code == 0;
    return code;
}

static nvJitLinkResult destroy_real(nvJitLinkHandle *handle)
{
    assert_non_null(*handle);
    free(*handle);
    *handle = NULL;
    real.links--;
    return 0;
}

static nvJitLinkResult add_to_real(nvJitLinkHandle handle, int type, const void *data, size_t size,
                                   const char *name)
{
    (void)type, (void)data;
    assert_false(handle->completed);
    assert_true(size > 0);
    assert_string_equal(name, "a.o");
    handle->inputs++;
    return take_real_step(ADD);
}

static nvJitLinkResult complete_real(nvJitLinkHandle handle)
{
    void (*during)(void) = real.during;
    assert_int_equal(handle->inputs, 1);
    assert_false(handle->completed);
    handle->completed = true;
    real.compiles++;
    if (during != NULL) {
        real.during = NULL;
        during();
    }
    return take_real_step(COMPLETE);
}

static nvJitLinkResult size_code(nvJitLinkHandle handle, size_t *size)
{
    assert_true(handle->completed);
    *size = 4;
    return 0;
}

static nvJitLinkResult get_code(nvJitLinkHandle handle, void *bytes)
{
    assert_true(handle->completed);
    memcpy(bytes, "code", 4);
    return 0;
}

static nvJitLinkResult size_error(nvJitLinkHandle handle, size_t *size)
{
    assert_true(handle->completed);
    *size = real.names_error ? 6 : 0;
    return 0;
}

static nvJitLinkResult get_error(nvJitLinkHandle handle, void *bytes)
{
    assert_true(handle->completed);
    memcpy(bytes, "error", 6);
    return 0;
}

static const kn_jitlink_calls *open_real(unsigned release)
{
    static const kn_jitlink_calls calls = {
        .create = create_real,
        .destroy = destroy_real,
        .add_data = add_to_real,
        .complete = complete_real,
        .size = {[KN_JITLINK_LinkedCubin] = size_code, [KN_JITLINK_ErrorLog] = size_error},
        .bytes = {[KN_JITLINK_LinkedCubin] = get_code, [KN_JITLINK_ErrorLog] = get_error}};
    assert_int_equal(release, RELEASE);
    return &calls;
}

kn_interpose_jitlink_fn kn_interpose_jitlink;

static const kn_jitlink_real library = {.path = "none", .major = 12, .open = open_real};
static const kn_jitlink_table *table;

/* --- a program -------------------------------------------------------------------------------- */

static char *before; /* the cache's */

static void begin(const char *dir)
{
    memset(&real, 0, sizeof(real));
    real.fails = real.replaced_in = COMPLETE;
    before = kt_path(dir, "before");
    table = kn_interpose_jitlink(&library);
}

static void end(void)
{
    assert_int_equal(real.links, 0);
    free(before);
}

/* Another process, whose library is as it was. */
static void use_cache(kiln_cache *cache)
{
    kiln_cache_options options;
    kiln_cache_destroy(cache_before);
    cache_before = NULL;
    cache_now = cache;
    real.version = 0;
    if (cache != NULL) {
        assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
        options.root = before;
        options.no_fsync = true;
        assert_int_equal(kiln_cache_create(&options, &cache_before, NULL), KILN_OK);
    }
}

static nvJitLinkResult link_program(nvJitLinkHandle *link, bool other)
{
    const char *options[] = {"-arch=sm_90", "-odd"};
    const char *input = other ? "another" : "one";
    nvJitLinkResult code = table->create(RELEASE, link, real.odd ? 2 : 1, options);
    if (code == 0) {
        code = table->add_data(RELEASE, *link, 2, input, strlen(input), "a.o");
    }
    is_last = true;
    return code == 0 ? table->complete(RELEASE, *link) : code;
}

static void check_output(nvJitLinkHandle link)
{
    char bytes[8] = "";
    size_t size = 0;
    assert_int_equal(table->size(RELEASE, KN_JITLINK_LinkedCubin, link, &size), 0);
    assert_int_equal(size, 4);
    assert_int_equal(table->bytes(RELEASE, KN_JITLINK_LinkedCubin, link, bytes), 0);
    assert_string_equal(bytes, "code");
    assert_int_equal(table->size(RELEASE, KN_JITLINK_ErrorLog, link, &size), 0);
    assert_int_equal(size, real.names_error ? 6 : 0);
}

/* In caches that are told apart. */
static void compile_program(bool other)
{
    nvJitLinkHandle link = NULL;
    const nvJitLinkResult code = real.code;
    const bool outer = is_last;
    is_last = real.odd;
    assert_int_equal(link_program(&link, other), code);
    if (code == 0) {
        check_output(link);
    }
    if (link != NULL) {
        assert_int_equal(table->destroy(RELEASE, &link), 0);
    }
    assert_null(link);
    is_last = outer;
    if (code != 0 || real.replaced || real.names_error || real.odd) {
        real.code = 0;
        real.replaced = real.names_error = real.odd = false;
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

static void fail_link(void)
{
    real.code = 4;
}

static void replace_library(void)
{
    real.replaced = true;
}

static void name_error(void)
{
    real.names_error = true;
}

static void pass_odd_option(void)
{
    real.odd = true;
}

#define BYTES "the program gets bytes, which no driver has loaded"

static const kt_frontend jitlink = {
    .name = "nvJitLink",
    .target = "cuda-sm_90",
    .begin = begin,
    .end = end,
    .use = use_cache,
    .compile = compile_program,
    .compiles = count_compiles,
    .during = call_during,
    .origin = find_origin,
    .events = {[KT_FAILS] = fail_link,
               [KT_COMPILER] = replace_library,
               [KT_PRIVATE] = name_error,
               [KT_BYPASSES] = pass_odd_option},
    .impossible = {[KT_REFUSES] = BYTES,
                   [KT_LOAD_FAILS] = BYTES,
                   [KT_QUARANTINED] = BYTES,
                   [KT_HEADER] = "a link of files bypasses the cache, and no other reads any",
                   [KT_DEFERS] = "the library has the bytes when it returns",
                   [KT_RECORDS] = "what is linked comes from programs that are recorded"}};

static void nvjitlink_passes_every_situation(void **state)
{
    (void)state;
    kt_check_situations(&jitlink);
}

/* --- whole links ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*event)(void);
    step at;
    bool stored; /* by an earlier process */
    const char *origin;
    kt_counts expected;
} rows[] = {
    {"miss", NULL, COMPLETE, false, "compiled", {.misses = 3, .compiles = 3, .puts = 3}},
    {"hit", NULL, COMPLETE, true, "disk", {.hits = 3}},
    {"replaced at first", replace_library, CREATE, false, "bypassed", {MISS, .bypassed = 1}},
    {"replaced at an input",
     replace_library,
     ADD,
     false,
     "bypassed",
     {TWICE, .puts = 1, .bypassed = 1}},
    {"replaced at last",
     replace_library,
     COMPLETE,
     false,
     "bypassed",
     {.misses = 3, .compiles = 3, .puts = 2, .bypassed = 1}},
    {"failed at first", fail_link, CREATE, false, "failed", {MISS, .failures = 1}},
    {"failed at an input", fail_link, ADD, false, "failed", {TWICE, .puts = 1, .failures = 1}},
    {"failed at last",
     fail_link,
     COMPLETE,
     false,
     "failed",
     {.misses = 3, .compiles = 3, .puts = 2, .failures = 1}},
};

static kiln_cache *open_whole(const char *root)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    options.no_fsync = true;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    use_cache(cache);
    return cache;
}

static void check_whole(size_t i)
{
    char *root = kt_tmpdir_create(), *files = kt_tmpdir_create();
    begin(files);
    kiln_cache *cache = open_whole(root);
    if (rows[i].stored) {
        compile_program(false);
        kiln_cache_destroy(cache);
        cache = open_whole(root);
    }
    if (rows[i].event != NULL) {
        rows[i].event();
    }
    real.fails = real.replaced_in = rows[i].at;
    reports = 0;
    compile_program(false);
    kt_check_counts(rows[i].name, kt_count(cache), rows[i].expected);
    assert_int_equal(reports, 1);
    assert_string_equal(origin_now, rows[i].origin);
    use_cache(NULL);
    kiln_cache_destroy(cache);
    end();
    kt_tmpdir_remove(root);
    kt_tmpdir_remove(files);
}

static void every_step_of_a_link_counts_and_one_report_tells(void **state)
{
    (void)state;
    is_whole = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_whole(i);
    }
    is_whole = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvjitlink_passes_every_situation),
        cmocka_unit_test(every_step_of_a_link_counts_and_one_report_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

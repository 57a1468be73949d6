/* #version, found as glslang finds it; and what a library must never do: write on the standard
 * output of its host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "kiln/kiln.h"
#include "kiln/unstable/compile.h"

#include "apis/vulkan/backend/instance.h"
#include "support/tmpdir.h"

typedef struct sample {
    const char *text;
    int version;
} sample;

static const sample samples[] = {
    {"#version 450\nvoid main(){}", 450},
    {"#version 310 es\n", 310},
    {" \t\r\n # \t version \t 460 core\n", 460},
    {"/* #version 110 */ #version 430\n", 430},
    {"// #version 110\n#version 430\n", 430},
    {"// goes on \\\n#version 110\n#version 430", 430},
    {"#/**/version/* */450\n", 450},
    {"#ver\\\nsion 450\n", 0}, /* glslang joins it later: refused, with advice */
    {"#\\\nversion 450\n", 0},
    {"\xEF\xBB\xBF#version 450\n", 450},
    {"#extension GL_A : enable\n#version 450\n", 450},
    {"void f() {} #version 450\n", 0},
    {"#define A \"/*\"\n", 0},
    {"#version\n450", 0},
    {"#version x\n", 0},
    {"#version 99999999999999999999\n", 100000},
    {"#", 0},
    {"#version", 0},
    {"/*", 0},
    {"//", 0},
    {"\\", 0},
    {"", 0},
};

static void versions_are_found(void **state)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const size_t length = strlen(samples[i].text);
        char *exact = malloc(length + 1); /* its end is seen by a sanitizer */
        assert_non_null(exact);
        memcpy(exact, samples[i].text, length);
        char *text = realloc(exact, length > 0 ? length : 1);
        assert_non_null(text);
        const int found = kn_glsl_version(text, length);
        if (found != samples[i].version &&
            !(samples[i].version == 100000 && found >= samples[i].version)) {
            fail_msg("%s: %d", samples[i].text, found);
        }
        free(text);
    }
}

typedef struct bed {
    kiln_cache *cache;
    kiln_runtime *runtime;
} bed;

static void bed_open(bed *b, const char *root)
{
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    assert_int_equal(kiln_cache_options_init(&cache_options, NULL), KILN_OK);
    cache_options.root = root;
    assert_int_equal(kiln_cache_create(&cache_options, &b->cache, NULL), KILN_OK);
    assert_int_equal(kiln_runtime_options_init(&options, NULL), KILN_OK);
    options.backend = "vulkan";
    options.compile_only = true;
    options.cache = b->cache;
    if (kiln_runtime_create(&options, &b->runtime, NULL) != KILN_OK) {
        kiln_cache_destroy(b->cache);
        skip();
    }
}

static void bed_close(bed *b)
{
    kiln_runtime_destroy(b->runtime);
    kiln_cache_destroy(b->cache);
}

static kiln_status compile(bed *b, const char *text, const char *option, kiln_diag *diag)
{
    const char *options[] = {option};
    kiln_blob *blob = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_GLSL;
    source.text = text;
    source.length = strlen(text);
    source.name = "v.comp";
    source.options = options;
    source.option_count = option != NULL;
    kiln_status status = kiln_compile(b->runtime, "vulkan:spirv", &source, &blob, NULL, diag);
    kiln_blob_release(blob);
    return status;
}

static void nothing_reaches_standard_output(void **state)
{
    static const char *const versions[] = {
        "",
        "#version",
        "#version x",
        "#version 100",
        "#version 110",
        "#version 120",
        "#version 130",
        "#version 140",
        "#version 150",
        "#version 330",
        "#version 410",
        "#version 420",
        "#version 450",
        "#version 999",
        "#version 300 es",
        "#version 310 es",
        "#version 450 compatibility",
        "// #version 450",
        "#\\\nversion 450",
        "#ver\\\nsion 450",
        "#ver\\\nsion 110",
    };
    char text[256];
    size_t size = 0;
    int compiled = 0;
    char *path = kt_at(*state, "printed");
    bed b;
    bed_open(&b, *state);
    (void)fflush(stdout);
    const int kept = dup(1);
    FILE *file = fopen(path, "w");
    assert_true(kept >= 0 && file != NULL && dup2(fileno(file), 1) == 1);
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        (void)snprintf(text, sizeof(text), "%s\nlayout(local_size_x = 1) in;\nvoid main() {}\n",
                       versions[i]);
        compiled += compile(&b, text, NULL, NULL) == KILN_OK;
        compiled += compile(&b, text, "-std=110", NULL) == KILN_OK;
    }
    (void)fflush(stdout);
    assert_int_equal(dup2(kept, 1), 1);
    (void)close(kept);
    (void)fclose(file);
    char *printed = kt_file_read(path, &size);
    assert_int_equal(size, 0);
    print_message("%d of %zu compile\n", compiled, 2 * sizeof(versions) / sizeof(versions[0]));
    free(printed);
    bed_close(&b);
}

static void an_error_says_what_to_write(void **state)
{
    static const struct {
        const char *text, *why, *fix;
        bool graphics;
    } rows[] = {
        {"void main() {}\n", "no #version", "#version 450", false},
        {"#version 120\nvoid main() {}\n", "version 120 of GLSL has no compute shaders", "", false},
        {"#version 450\nvoid main() { gl_Position = vec4(0); }\n", "", "", true},
        {"#version 450\nvoid main() { no_such_thing(); }\n", "", "", false},
    };
    bed b;
    bed_open(&b, *state);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_status status = compile(&b, rows[i].text, NULL, &diag);
        if (status == KILN_E_UNAVAILABLE) { /* no driver that can be opened here */
            kiln_diag_clear(&diag);
            bed_close(&b);
            skip();
        }
        assert_int_equal(status, KILN_E_COMPILE);
        assert_string_equal(diag.what, "v.comp");
        assert_non_null(strstr(diag.why, rows[i].why));
        assert_non_null(strstr(diag.fix, rows[i].fix));
        assert_int_equal(strstr(diag.fix, "give a compute shader") != NULL, rows[i].graphics);
        kiln_diag_clear(&diag);
    }
    bed_close(&b);
}

#define IN_DIR(name) kt_dir_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_found),
        IN_DIR(nothing_reaches_standard_output),
        IN_DIR(an_error_says_what_to_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

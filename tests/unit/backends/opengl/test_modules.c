/* Which libraries of the process count as the driver of a context. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/api.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

enum { MESA, NVIDIA, OTHER };

static char *modules_of(const char *version)
{
    kn_gl_facts facts = {.format_count = 0};
    char *modules = NULL;
    (void)strncpy(facts.version, version, sizeof(facts.version) - 1);
    assert_int_equal(kn_gl_modules_find(&facts, &modules, NULL), KILN_OK);
    return modules;
}

/* A library of that name, mapped from now on. */
static void map(const char *dir, const char *name)
{
    size_t size = 0;
    char *path = kt_at(dir, name);
    char *data = kt_file_read(KT_LIBRARY, &size);
    assert_non_null(data);
    kt_file_write(path, data, size);
    assert_non_null(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    free(data);
}

/* Vulkan and GLX map NVIDIA's libraries whatever an EGL context is; so does a first compile. */
static void row_89_the_key_holds_the_libraries_of_the_contexts_own_driver(void **state)
{
    static const char *const versions[] = {"4.5 (Core Profile) Mesa 22.3.6",
                                           "4.6.0 NVIDIA 580.159.04", "OpenGL ES 3.2 v1.r38p1"};
    static const char *const names[] = {"toy_dri.so", "libnvidia-glcore.so.580.159.04",
                                        "libmali.so.1"};
    for (size_t i = 0; i < 3; i++) {
        char *before[3];
        for (size_t k = 0; k < 3; k++) {
            before[k] = modules_of(versions[k]);
        }
        map(*state, names[i]);
        for (size_t k = 0; k < 3; k++) {
            char *after = modules_of(versions[k]);
            if ((k == MESA && i == MESA) || (k == OTHER && i != NVIDIA)) {
                assert_non_null(strstr(after, names[i]));
                assert_string_not_equal(before[k], after);
            } else {
                assert_string_equal(before[k], after);
            }
            free(after);
            free(before[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            row_89_the_key_holds_the_libraries_of_the_contexts_own_driver, kt_tmpdir_setup,
            kt_tmpdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

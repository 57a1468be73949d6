/* A driver that gives no program binaries, as Mesa does when its own cache is off: that is said
 * when it is probed, and programs run all the same. */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/probe.h>

#include "support/cmocka.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "unit/backends/glsl_rig.h"

static void it_is_said_and_programs_run(void **state)
{
    const char *dir = (const char *)*state;
    glsl_rig rig;
    glsl_open(&rig, "opengl", dir);
    const kiln_probe_report *report = NULL;
    for (size_t i = 0; i < kiln_runtime_report_count(rig.runtime) && report == NULL; i++) {
        const kiln_probe_report *row = kiln_runtime_get_report(rig.runtime, i);
        report = strcmp(row->backend, "opengl") == 0 ? row : NULL;
    }
    assert_non_null(report);
    if (strstr(report->why, "GL_NUM_PROGRAM_BINARY_FORMATS is 0") == NULL) {
        kn_test_skip("mesa", "this driver gives program binaries whatever Mesa's variables say");
    }
    assert_int_equal(report->outcome, KILN_PROBE_READY);
    assert_non_null(strstr(report->fix, "MESA_SHADER_CACHE_DISABLE"));
    for (int round = 0; round < 2; round++) {
        kiln_program *program = glsl_build(&rig, glsl_increment);
        assert_int_equal(kiln_program_get_info(program)->origin, KILN_ORIGIN_NONE);
        glsl_run(&rig, program, 16);
        glsl_run(&rig, program, 0);
        kiln_program_release(program);
    }
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_source broken = glsl_source("#version 430\nvoid main() { no_such(); }\n");
    assert_int_equal(kiln_program_build(rig.device, &broken, 1, NULL, &program, &diag),
                     KILN_E_COMPILE);
    assert_non_null(strstr(diag.log, "no_such"));
    kiln_diag_clear(&diag);
    glsl_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        kt_dir_test(it_is_said_and_programs_run),
    };
    (void)setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    (void)setenv("MESA_GLSL_CACHE_DISABLE", "true", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The kernels that a caller names: checked, and no reason to compile a text again. */
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/compile.h>

#include "conformance/suite.h"

/* Where every artifact holds all kernels of its text. NVRTC and hipRTC make what is named
 * (templates), and the fake backend stands for those that do. */
static bool names_are_in_the_key(const suite *s)
{
    return strcmp(s->backend, "cuda") == 0 || strcmp(s->backend, "hip") == 0 ||
           strncmp(s->backend, "fake", 4) == 0 || strcmp(s->backend, "toy") == 0;
}

/* Builds basics with one name asked for; says how many stages were compiled. */
static kiln_status build_for(suite_fresh *on, const char *entry, uint32_t *out_compiles,
                             kiln_diag *diag)
{
    suite_sources sources;
    kiln_program *program = NULL;
    suite_load("basics", &sources);
    for (size_t i = 0; i < sources.count; i++) {
        sources.sources[i].entries = &entry;
        sources.sources[i].entry_count = entry != NULL ? 1 : 0;
    }
    kiln_status status =
        kiln_program_build(on->device, sources.sources, sources.count, NULL, &program, diag);
    *out_compiles = program != NULL ? kiln_program_get_info(program)->compiles : 0;
    if (program != NULL && entry == NULL) {
        suite_launch(on->device, program);
    }
    kiln_program_release(program);
    suite_unload(&sources);
    return status;
}

void kernels_of_a_text_share_one_compile(suite *s)
{
    suite_fresh fresh;
    uint32_t compiles = 0;
    suite_open(s, "entries", 0, &fresh);
    const char *const names[] = {NULL, suite_entry(fresh.device, "saxpy"),
                                 suite_entry(fresh.device, "reverse")};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        OK(build_for(&fresh, names[i], &compiles, &diag));
        assert_true(i == 0 ? compiles > 0 : compiles == 0 || names_are_in_the_key(s));
        suite_close(&fresh);
        suite_open(s, "entries", 0, &fresh);
    }
    suite_close(&fresh);
}

/* After a compile as after a hit, loaded or not, and with the names that there are. */
void kernels_that_are_not_there_are_refused(suite *s)
{
    suite_fresh fresh;
    uint32_t compiles = 0;
    kiln_diag why = KILN_DIAG_INIT;
    char target[64];
    (void)snprintf(target, sizeof(target), "%s:0", s->backend);
    for (int i = 0; i < 2; i++) {
        suite_open(s, "wrong-entries", 0, &fresh);
        kiln_status status = build_for(&fresh, "nope", &compiles, &why);
        assert_true(status == KILN_E_INVALID || status == KILN_E_COMPILE);
        assert_non_null(strstr(why.log != NULL ? why.log : why.why, "nope"));
        suite_sources sources;
        suite_load("basics", &sources);
        for (size_t k = 0; k < sources.count; k++) {
            static const char *const wrong[] = {"nope"};
            kiln_blob *blob = NULL;
            sources.sources[k].entries = wrong;
            sources.sources[k].entry_count = 1;
            status = kiln_compile(fresh.runtime, target, &sources.sources[k], &blob, NULL, &why);
            assert_null(blob);
            assert_int_not_equal(status, KILN_OK);
            if (status == KILN_E_INVALID) {
                assert_non_null(
                    strstr(why.why, suite_has_main(fresh.device) ? "it has main" : "saxpy"));
            }
        }
        suite_unload(&sources);
        suite_close(&fresh);
    }
    kiln_diag_clear(&why);
}

/* The files that a source includes, for who writes them down. */
#include <kiln/unstable/explain.h>

#include "core/build/plan.h"

typedef struct header_visit {
    kiln_header_fn *visit;
    void *user;
} header_visit;

/* A place where nothing is found is looked at too, and is not a header. */
static kiln_status visit_header(void *user, const char *path, const kn_stamp *stamp)
{
    const header_visit *visit = user;
    return stamp != NULL ? visit->visit(visit->user, path) : KILN_OK;
}

kiln_status kiln_compile_headers(kiln_runtime *runtime, const char *target,
                                 const kiln_source *source, kiln_header_fn *visit, void *user,
                                 kiln_diag *diag)
{
    const kiln_build_options options = {.struct_size = sizeof(options), .cache_only = true};
    header_visit headers = {visit, user};
    kn_plan plan;
    kiln_status status = kn_plan_open(runtime, target, source, &options, &plan, diag);
    if (status == KILN_OK) {
        status = kn_stage_key(&plan.build, 0, diag);
    }
    const kn_stage_run *first = &plan.build.runs[0];
    if (status == KILN_OK && first->bypass[0] != '\0') {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, "use the compiler's own list",
                               source->name != NULL ? source->name : "source",
                               "its headers cannot be known: %s", first->bypass);
    } else if (status == KILN_OK && first->closure != NULL) {
        status = kn_closure_watch(first->closure, visit_header, &headers);
    }
    kn_plan_close(&plan);
    return status;
}

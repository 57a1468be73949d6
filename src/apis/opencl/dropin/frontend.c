/* See frontend.h. */
#include "apis/opencl/dropin/frontend.h"

#include "apis/opencl/dropin/make.h"
#include "base/text.h"
#include "record/recorder.h"

static kn_change find_change(void *user)
{
    const kn_opencl_call *call = (const kn_opencl_call *)user;
    return kn_opencl_request_still_true(call->request) ? KN_UNCHANGED : KN_CHANGED_HEADER;
}

static void save_headers(void *user)
{
    kn_opencl_request_save(((kn_opencl_call *)user)->request);
}

static void record_program(void *user, kn_draft *draft, char *target, size_t size)
{
    const kn_opencl_call *call = (const kn_opencl_call *)user;
    const kn_opencl_request *request = call->request;
    const kn_opencl_wish *wish = request->wish;
    draft->program.frontend = KN_FRONTEND_OPENCL;
    draft->program.flags = call->recorded | (wish->link ? KN_RECORDED_LINK : 0);
    draft->program.language = KILN_LANG_OPENCL_C;
    draft->program.link_options = wish->link_options;
    for (size_t i = 0; i < wish->text_count; i++) {
        const kn_opencl_text *text = &wish->texts[i];
        kn_draft_add_text(draft, text->text, text->length, text->options, text->headers,
                          text->header_count);
        for (size_t k = 0; k < KN_OPENCL_CLOSURES; k++) {
            kn_draft_add_closure(draft, request->parts[i].closures[k]);
        }
    }
    kn_text_putf(target, size, "opencl:%s", request->unit.info.target);
}

kn_loaded kn_opencl_load_call(void *user, kiln_blob *blob, kiln_diag *diag)
{
    kn_opencl_call *call = (kn_opencl_call *)user;
    if (!kn_opencl_make_is_sound(call->request, blob)) {
        return KN_LOAD_UNSOUND;
    }
    const kiln_status status = kn_opencl_make_loaded(call->request, blob, &call->loaded, diag);
    return status == KILN_OK           ? KN_LOADED
           : status == KILN_E_REJECTED ? KN_LOAD_REFUSED
                                       : KN_LOAD_FAILED;
}

kn_outcome kn_opencl_run(kn_job *job, const kn_frontend *own, kn_opencl_call *call,
                         const char *name)
{
    const kn_opencl_request *request = call->request;
    const kn_request asked = {.cache = request->cache,
                              .recipe = request->recipe,
                              .what = "opencl",
                              .name = name,
                              .bypass = request->bypass[0] != '\0' ? request->bypass : NULL};
    kn_frontend frontend = *own;
    frontend.still_true = find_change;
    frontend.keep = save_headers;
    frontend.record = request->wish->device_count == 1 ? record_program : NULL;
    const kn_outcome outcome = kn_job_run(job, &frontend, &asked, call);
    job->frontend = own; /* the job may outlast this call */
    return outcome;
}

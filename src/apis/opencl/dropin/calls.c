/* Level 2: OpenCL programs through the engine, for a program that has its own context and keeps the
 * cl_program. */
#include "kiln/opencl.h"
#include "kiln/unstable/admin.h"
#include "kiln/unstable/pocl.h"

#include <string.h>

#include "apis/opencl/backend/program.h"
#include "apis/opencl/backend/status.h"
#include "apis/opencl/dropin/frontend.h"
#include "apis/opencl/dropin/kept.h"
#include "apis/opencl/dropin/make.h"
#include "apis/opencl/dropin/request.h"
#include "base/diag.h"
#include "sized/sized.h"
#include "sys/fpstate.h"

static const char what[] = "an OpenCL program";

typedef struct build_call {
    kn_opencl_call base; /* first; `loaded` is what was built or loaded, and the caller gets it */
    kn_job job;
    bool adopted; /* built once more, and another one's is to be read: kept.c */
} build_call;

/* Drivers that defer the work until a kernel is made do it here, before the binary is read. */
static void make_kernels(const kn_opencl_site *site, cl_program program)
{
    kn_opencl_kernels kernels;
    if (kn_opencl_kernels_init(site, program, NULL, 0, &kernels, NULL) == KILN_OK) {
        kn_opencl_kernels_deinit(site->api, &kernels);
    }
}

static kiln_status read_bytes(const kn_opencl_request *request, cl_program program,
                              kiln_blob **out_blob, kiln_diag *diag)
{
    make_kernels(&request->site, program);
    return kn_opencl_make_bytes(&request->site, request->wish, request->unit.is_pocl, program,
                                out_blob, diag);
}

/* --- the frontend ----------------------------------------------------------------------------- */

static void compile_program(void *user, kn_output *output, kiln_diag *diag)
{
    build_call *call = (build_call *)user;
    const kn_opencl_request *request = call->base.request;
    if (kn_opencl_make(request, &call->base.loaded, diag) != KILN_OK) {
        output->outcome = KN_OUTCOME_FAILED;
    } else if (request->bypass[0] != '\0') {
        output->outcome = KN_OUTCOME_PRIVATE;
    } else if (kn_opencl_reads_later(request)) {
        output->outcome = KN_OUTCOME_DEFERRED;
    } else {
        output->outcome =
            read_bytes(request, call->base.loaded, &output->blob, diag) == KILN_OK
                ? KN_OUTCOME_STORED
                : KN_OUTCOME_PRIVATE; /* the caller has its program, whatever is short now */
        output->reason = "the driver returns no binary of it";
    }
}

static void keep_unread(void *user)
{
    build_call *call = (build_call *)user;
    kn_opencl_kept_add(call->base.request, call->base.loaded, true, call->job.compile_ns);
}

static bool is_kept(void *user)
{
    const build_call *call = (const build_call *)user;
    return kn_opencl_kept_waits(call->base.request->cache, &call->job.key);
}

/* What another build of this process has made and nobody has stored yet. PoCL has compiled it, and
 * finds it by its text. */
static bool build_again(void *user)
{
    build_call *call = (build_call *)user;
    call->adopted =
        is_kept(call) && kn_opencl_make(call->base.request, &call->base.loaded, NULL) == KILN_OK;
    return call->adopted;
}

static const kn_frontend programs = {.compile = compile_program,
                                     .load = kn_opencl_load_call,
                                     .defer = keep_unread,
                                     .is_made = is_kept,
                                     .adopt = build_again,
                                     .driver_loads = true,
                                     .retries = 1};

/* --- building --------------------------------------------------------------------------------- */

/* What a later capture needs, and what is made of PTX. */
static void keep_program(build_call *call)
{
    const kn_job *job = &call->job;
    kn_opencl_request *request = call->base.request;
    if (kn_opencl_reads_later(request) && request->recipe != NULL &&
        (!call->adopted || kn_opencl_request_still_true(request))) {
        kn_opencl_kept_add(request, call->base.loaded, call->adopted, job->compile_ns);
    }
    if (job->blob != NULL && job->outcome != KN_OUTCOME_PRIVATE) {
        (void)kn_opencl_kept_assemble(request, job->blob, !job->ran);
    }
}

static kiln_status take_result(build_call *call, cl_program *out_program, kiln_diag *diag)
{
    kn_job *job = &call->job;
    if (job->status != KILN_OK) {
        if (call->base.loaded != NULL) {
            (void)call->base.request->api.clReleaseProgram(call->base.loaded);
        }
        kn_diag_move(diag, &job->why);
        return job->status;
    }
    if (job->request.bypass == NULL) {
        keep_program(call);
    }
    *out_program = call->base.loaded;
    return KILN_OK;
}

kiln_status kn_opencl_build_wish(kiln_cache *cache, kn_opencl_wish *wish,
                                 struct _cl_program **out_program, kiln_diag *diag)
{
    kn_opencl_request request;
    build_call call = {.base.request = &request};
    kn_fp_state fp;
    kiln_status status = kn_opencl_request_init(&request, cache, wish, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_fp_enter(&fp);
    (void)kn_opencl_run(&call.job, &programs, &call.base, what);
    status = take_result(&call, out_program, diag);
    kn_fp_leave(&fp);
    kn_job_deinit(&call.job);
    kn_opencl_request_deinit(&request);
    return status;
}

kiln_status kiln_opencl_build_program(kiln_cache *cache, struct _cl_context *context,
                                      struct _cl_device_id *device, const char *text,
                                      const char *options, struct _cl_program **out_program,
                                      kiln_diag *diag)
{
    kn_opencl_wish *wish = NULL;
    *out_program = NULL;
    kiln_status status = kn_opencl_wish_create_plain(context, device, text, options, &wish, diag);
    if (status == KILN_OK) {
        status = kn_opencl_build_wish(cache, wish, out_program, diag);
    }
    kn_opencl_wish_release(wish);
    return status;
}

kiln_status kiln_opencl_build(kiln_cache *cache, const kiln_opencl_request *request,
                              struct _cl_program **out_program, kiln_diag *diag)
{
    kiln_opencl_request room;
    kn_opencl_wish *wish = NULL;
    *out_program = NULL;
    request = kn_sized_view(KN_SIZED(kiln_opencl_request), request, &room, diag);
    if (request == NULL) {
        return KILN_E_INVALID;
    }
    kiln_status status = kn_opencl_wish_create(request, &wish, diag);
    if (status == KILN_OK && request->notify != NULL) {
        status = kn_opencl_kept_start(cache, wish, request->notify, request->user, diag);
    } else if (status == KILN_OK) {
        status = kn_opencl_build_wish(cache, wish, out_program, diag);
    }
    kn_opencl_wish_release(wish);
    return status;
}

/* --- capture ---------------------------------------------------------------------------------- */

static bool is_same_program(const kiln_blob *a, const kiln_blob *b)
{
    return kiln_blob_size(a) >= KN_POCL_HEADER && kiln_blob_size(b) >= KN_POCL_HEADER &&
           memcmp(kiln_blob_data(a), kiln_blob_data(b), KN_POCL_HEADER) == 0;
}

/* PoCL's answer to the same request, if it still means the program that `stored` (may be NULL) is
 * of. */
static kiln_status read_again(kn_opencl_request *request, const kiln_blob *stored,
                              kiln_blob **out_blob, kiln_diag *diag)
{
    cl_program program = NULL;
    const char *unkept = NULL;
    kiln_status status = kn_opencl_make(request, &program, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_pocl_check_linker(request->unit.takes_linker, diag);
    status = status == KILN_OK ? read_bytes(request, program, out_blob, diag) : status;
    (void)request->api.clReleaseProgram(program);
    if (status == KILN_E_UNAVAILABLE || status == KILN_E_NOMEM) {
        return status;
    }
    if (status != KILN_OK) {
        unkept = "PoCL gives no binary of it";
    } else if (!kn_opencl_request_still_true(request)) {
        unkept = "a header changed during the compile";
    } else if (stored != NULL && !is_same_program(stored, *out_blob)) {
        unkept = "PoCL does not find the program again: perhaps POCL_KERNEL_CACHE is 0";
    }
    if (unkept != NULL) {
        kiln_blob_release(*out_blob);
        *out_blob = NULL;
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "capturing an OpenCL program", "%s",
                               unkept);
    }
    return status;
}

static kiln_status capture_request(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_blob *stored = NULL, *fresh = NULL;
    kiln_key key = kiln_recipe_key(request->recipe);
    kiln_status status = kiln_cache_get(request->cache, &key, &stored, NULL, diag);
    if (status != KILN_OK && status != KILN_MISS) {
        return status;
    }
    status = read_again(request, stored, &fresh, diag);
    if (status == KILN_OK && (stored == NULL || kiln_blob_size(fresh) > kiln_blob_size(stored))) {
        const uint64_t took = stored != NULL ? kiln_blob_compile_ns(stored) : 0;
        status = kiln_cache_put(request->cache, request->recipe, fresh, took, diag);
    }
    if (status == KILN_OK) {
        kn_opencl_kept_stored(request->cache, &key);
    }
    kiln_blob_release(fresh);
    kiln_blob_release(stored);
    return status;
}

kiln_status kn_opencl_capture_wish(kiln_cache *cache, kn_opencl_wish *wish, kiln_diag *diag)
{
    kn_opencl_request request;
    kiln_status status = kn_opencl_request_init(&request, cache, wish, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (request.unit.is_pocl) {
        status = request.bypass[0] != '\0' ? KILN_MISS : capture_request(&request, diag);
    }
    kn_opencl_request_deinit(&request);
    return status;
}

kiln_status kiln_opencl_capture(kiln_cache *cache, struct _cl_context *context,
                                struct _cl_device_id *device, const char *text, const char *options,
                                kiln_diag *diag)
{
    kn_opencl_wish *wish = NULL;
    kiln_status status = kn_opencl_wish_create_plain(context, device, text, options, &wish, diag);
    if (status == KILN_OK) {
        status = kn_opencl_capture_wish(cache, wish, diag);
    }
    kn_opencl_wish_release(wish);
    return status;
}

kiln_status kiln_opencl_capture_program(kiln_cache *cache, struct _cl_program *program,
                                        kiln_diag *diag)
{
    if (cache == NULL || program == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give the cache that it was built with",
                             "capturing an OpenCL program", "cache and program are required");
    }
    return kn_opencl_kept_capture(cache, program, diag);
}

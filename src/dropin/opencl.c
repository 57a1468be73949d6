/* Level 2: OpenCL programs through the cache. The walk of core/walk/build.c for a program that has
 * its own context and keeps the cl_program. */
#include "kiln/opencl.h"

#include <string.h>

#include "backends/opencl/program.h"
#include "backends/opencl/status.h"
#include "base/checked.h"
#include "base/log.h"
#include "dropin/opencl_kept.h"
#include "dropin/opencl_make.h"
#include "dropin/opencl_record.h"
#include "dropin/opencl_request.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/fpstate.h"

/* What a compile callback works on. */
typedef struct compile_call {
    kn_opencl_request *request;
    cl_program program; /* what was built; the caller gets it */
    const char *reason; /* why it is not stored, if it is not */
    bool read_now;      /* by a capture: what PoCL has of it is wanted at once */
    bool barred;        /* what the cache has must not be loaded */
    bool later;         /* nothing is stored yet: opencl_kept.c */
    uint64_t took;
} compile_call;

static kiln_status build_and_keep(compile_call *call, kiln_diag *diag)
{
    return kn_opencl_make(call->request, &call->program, diag);
}

/* Drivers that defer the work until a kernel is made do it here, before the binary is read. */
static void make_kernels(const kn_opencl_site *site, cl_program program)
{
    kn_opencl_kernels kernels;
    if (kn_opencl_kernels_init(site, program, NULL, 0, &kernels, NULL) == KILN_OK) {
        kn_opencl_kernels_deinit(site->api, &kernels);
    }
}

/* What is built, where its binary is not to be read now. */
static kiln_status keep_for_later(compile_call *call, kiln_diag *diag)
{
    /* Before those who wait for this compile go on: they find it there. */
    call->later = true;
    kn_opencl_kept_add(call->request, call->program, true, call->took);
    return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, "an OpenCL program",
                         "its binary is read later");
}

static kiln_status compile_request(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    compile_call *call = (compile_call *)user;
    const kn_opencl_request *request = call->request;
    const uint64_t start = kn_clock_now();
    kiln_status status = build_and_keep(call, diag);
    call->took = kn_clock_now() - start;
    if (status != KILN_OK) {
        return status;
    }
    if (!call->read_now && kn_opencl_reads_later(request) &&
        kn_opencl_request_still_true(call->request)) {
        return keep_for_later(call, diag);
    }
    if (kn_pocl_check_linker(request->unit.takes_linker, diag) != KILN_OK) {
        call->reason = "PoCL finds no ld to link it with";
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, "an OpenCL program", "%s", call->reason);
    }
    make_kernels(&request->site, call->program);
    status = kn_opencl_make_bytes(&request->site, request->wish, request->unit.is_pocl,
                                  call->program, out_blob, diag);
    if (status != KILN_OK && status != KILN_E_NOMEM) {
        call->reason = "the driver returns no binary of it";
    } else if (status == KILN_OK && !kn_opencl_request_still_true(call->request)) {
        call->reason = "a header changed during the compile";
    }
    if (call->reason != NULL) {
        kiln_blob_release(*out_blob);
        *out_blob = NULL;
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, "an OpenCL program", "%s", call->reason);
    }
    return status;
}

static kiln_status build_past_cache(kn_opencl_request *request, const char *reason,
                                    cl_program *out_program, kiln_diag *diag)
{
    compile_call call = {.request = request};
    const uint64_t start = kn_clock_now();
    kiln_status status = build_and_keep(&call, diag);
    kn_cache_count_bypass(request->cache, "an OpenCL program", reason, kn_clock_now() - start);
    *out_program = call.program;
    return status;
}

/* What was built and is not stored by this compile: now it is counted, or kept for later. */
static kiln_status take_unstored(compile_call *call, kiln_diag *diag)
{
    kiln_diag_clear(diag);
    if (!call->later) {
        kn_cache_count_bypass(call->request->cache, "an OpenCL program", call->reason, call->took);
    }
    return KILN_OK;
}

/* What another build of this process has made and nobody has stored yet. PoCL has compiled it, and
 * finds it by its text. */
static kiln_status build_again(compile_call *call, kiln_diag *diag)
{
    call->later = true;
    return build_and_keep(call, diag);
}

static bool is_kept(const kn_opencl_request *request)
{
    const kiln_key key = kiln_recipe_key(request->recipe);
    return kn_opencl_kept_waits(request->cache, &key);
}

/* Asked by the one that is to compile: another thread's compile may have finished since this one
 * looked, and have left a kept program and nothing in the cache. */
static bool is_made(void *user)
{
    const compile_call *call = (const compile_call *)user;
    return is_kept(call->request);
}

/* Another thread compiled it, or was found to have done so, and gave the cache nothing then. */
static kiln_status get_from_another(compile_call *call, kiln_blob **out_blob, kiln_diag *diag)
{
    kn_opencl_request *request = call->request;
    const kiln_key key = kiln_recipe_key(request->recipe);
    kiln_diag_clear(diag);
    if (is_kept(request)) {
        return build_again(call, diag);
    }
    /* What is kept no longer has been stored. */
    bool stored = false;
    kiln_cache_contains(request->cache, &key, 1, &stored);
    if (stored && kiln_cache_get(request->cache, &key, out_blob, NULL, diag) == KILN_OK) {
        return KILN_OK;
    }
    return build_past_cache(request, "it could not be shared", &call->program, diag);
}

/* The cache's bytes, or (in call->program) what this call built itself. */
static kiln_status get_opencl(compile_call *call, kiln_blob **out_blob, kiln_diag *diag)
{
    kn_opencl_request *request = call->request;
    const kn_cache_maker maker = {.compile = compile_request, .made = is_made, .user = call};
    if (is_kept(request)) {
        return build_again(call, diag);
    }
    kiln_status status =
        kn_cache_get_or_make(request->cache, request->recipe, &maker, out_blob, NULL, diag);
    if (status == KILN_E_CANCELLED) {
        status = call->program != NULL ? take_unstored(call, diag)
                                       : get_from_another(call, out_blob, diag);
    }
    if (status != KILN_OK && call->program != NULL) {
        (void)request->api.clReleaseProgram(call->program);
        call->program = NULL;
    }
    return status;
}

/* The driver refused what the cache had: drop it, build again, let the new one replace it. */
static kiln_status redo_opencl(compile_call *call, kiln_diag *diag)
{
    kn_opencl_request *request = call->request;
    kiln_key key = kiln_recipe_key(request->recipe);
    kiln_blob *blob = NULL;
    kiln_diag_clear(diag);
    if (!call->barred) {
        kn_cache_count_rejected(request->cache);
        kn_log(KILN_LOG_WARN, "OpenCL: the driver refused a cached binary; it is compiled again");
        kn_ignore(kiln_cache_remove(request->cache, &key, NULL)); /* the new one replaces it */
    }
    kiln_status status = compile_request(call, &blob, diag);
    if (status == KILN_OK) {
        /* The store logs its own errors. */
        kn_ignore(kiln_cache_put(request->cache, request->recipe, blob, call->took, NULL));
    } else if (status == KILN_E_CANCELLED) {
        status = take_unstored(call, diag);
    }
    kiln_blob_release(blob);
    if (status != KILN_OK && call->program != NULL) {
        (void)request->api.clReleaseProgram(call->program);
        call->program = NULL;
    }
    return status;
}

static kiln_status load_kept(compile_call *call, const kiln_blob *blob, kiln_diag *diag)
{
    kn_opencl_request *request = call->request;
    const kiln_key key = kiln_recipe_key(request->recipe);
    kn_load watch;
    if (!kn_cache_load_begin(request->cache, &key, "an OpenCL program", &watch)) {
        call->barred = true;
        return KILN_E_REJECTED;
    }
    const kiln_status status = kn_opencl_make_loaded(request, blob, &call->program, diag);
    kn_cache_load_end(request->cache, &key, &watch);
    return status;
}

/* A program that the cache has, or will have. */
static kiln_status build_through_cache(compile_call *call, kiln_diag *diag)
{
    kn_opencl_request *request = call->request;
    const kiln_key key = kiln_recipe_key(request->recipe); /* what is kept takes the recipe */
    kiln_blob *blob = NULL;
    kiln_status status = get_opencl(call, &blob, diag);
    if (status == KILN_OK && call->program == NULL) {
        status = load_kept(call, blob, diag);
    }
    if (status == KILN_E_REJECTED) {
        status = redo_opencl(call, diag);
    }
    if (status == KILN_OK) {
        kn_opencl_request_save(request);
        kn_opencl_record(request, &key, 0, blob != NULL ? kiln_blob_compile_ns(blob) : call->took);
    }
    if (status == KILN_OK && kn_opencl_reads_later(request) && request->recipe != NULL &&
        (!call->later || kn_opencl_request_still_true(request))) {
        kn_opencl_kept_add(request, call->program, call->later, call->took);
    }
    if (status == KILN_OK && blob != NULL) {
        (void)kn_opencl_kept_assemble(request, blob, call->took == 0);
    }
    kiln_blob_release(blob);
    return status;
}

kiln_status kn_opencl_build_wish(kiln_cache *cache, kn_opencl_wish *wish,
                                 struct _cl_program **out_program, kiln_diag *diag)
{
    kn_opencl_request request;
    compile_call call = {.request = &request};
    kn_fp_state fp;
    kiln_status status = kn_opencl_request_init(&request, cache, wish, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_fp_enter(&fp);
    status = request.bypass[0] != '\0'
                 ? build_past_cache(&request, request.bypass, &call.program, diag)
                 : build_through_cache(&call, diag);
    kn_fp_leave(&fp);
    if (status == KILN_OK) {
        *out_program = call.program;
    }
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

/* PoCL's answer to the same request, if it still means the program that `stored` (may be NULL) is
 * of. */
static kiln_status read_again(kn_opencl_request *request, const kiln_blob *stored,
                              kiln_blob **out_blob, kiln_diag *diag)
{
    compile_call call = {.request = request, .read_now = true};
    kiln_status status = compile_request(&call, out_blob, diag);
    if (call.program != NULL) {
        (void)request->api.clReleaseProgram(call.program);
    }
    if (status == KILN_E_CANCELLED) {
        status = KILN_E_UNSUPPORTED;
    }
    if (status == KILN_OK && stored != NULL &&
        (kiln_blob_size(*out_blob) < KN_POCL_HEADER || kiln_blob_size(stored) < KN_POCL_HEADER ||
         memcmp(kiln_blob_data(*out_blob), kiln_blob_data(stored), KN_POCL_HEADER) != 0)) {
        kiln_blob_release(*out_blob);
        *out_blob = NULL;
        status =
            kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "capturing an OpenCL program",
                          "PoCL does not find the program again: perhaps POCL_KERNEL_CACHE is 0");
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

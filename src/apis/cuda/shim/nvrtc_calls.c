/* The functions that stand in for NVRTC's: what NVRTC has alone, and the table. */
#include <string.h>

#include "apis/cuda/options/nvrtc_process.h"
#include "apis/cuda/shim/nvrtc_facts.h"
#include "apis/cuda/shim/nvrtc_kind.h"
#include "interpose/rtc_stubs.h"
#include "interpose/session.h"
#include "kiln/export.h"

static const kn_rtc_calls *open_nvrtc(void);

/* Set once, before the table is given out. */
static const kn_nvrtc_real *library;
static kn_rtc_library nvrtc = {
    .kind = &kn_nvrtc_kind, .open = open_nvrtc, .lock = {PTHREAD_MUTEX_INITIALIZER}};

/* --- the real library ------------------------------------------------------------------------- */

static kn_rtc_calls real_calls;
static pthread_once_t real_once = PTHREAD_ONCE_INIT;

static nvrtcResult compile_real(void *program, int option_count, const char *const *options)
{
    kn_nvrtc_process_compiling(options,
                               option_count > 0 && options != NULL ? (size_t)option_count : 0);
    return library->open()->nvrtcCompileProgram(program, option_count, options);
}

static void take_real_calls(void)
{
    const kn_nvrtc_table *real = library->open();
    if (real == NULL) {
        return;
    }
    real_calls =
        (kn_rtc_calls){.version = real->nvrtcVersion,
                       .create = real->nvrtcCreateProgram,
                       .destroy = real->nvrtcDestroyProgram,
                       .compile = compile_real,
                       .add_expression = real->nvrtcAddNameExpression,
                       .get_lowered = real->nvrtcGetLoweredName,
                       .set_callback = real->nvrtcSetFlowCallback,
                       .pch_status = real->nvrtcGetPCHCreateStatus,
                       .outputs = {
                           [KN_RTC_LOG] = {real->nvrtcGetProgramLogSize, real->nvrtcGetProgramLog},
                           [KN_RTC_PTX] = {real->nvrtcGetPTXSize, real->nvrtcGetPTX},
                           [KN_RTC_CUBIN] = {real->nvrtcGetCUBINSize, real->nvrtcGetCUBIN},
                           [KN_RTC_LTOIR] = {real->nvrtcGetLTOIRSize, real->nvrtcGetLTOIR},
                           [KN_RTC_OPTIXIR] = {real->nvrtcGetOptiXIRSize, real->nvrtcGetOptiXIR},
                           [KN_RTC_NVVM] = {real->nvrtcGetNVVMSize, real->nvrtcGetNVVM},
                           [KN_RTC_TILEIR] = {real->nvrtcGetTileIRSize, real->nvrtcGetTileIR},
                       }};
}

/* A library that cannot be opened is tried but once here, as the dynamic linker would. */
static const kn_rtc_calls *open_nvrtc(void)
{
    (void)pthread_once(&real_once, take_real_calls);
    return real_calls.create != NULL ? &real_calls : NULL;
}

/* --- calls that are NVRTC's alone ------------------------------------------------------------- */

static int call_nvrtcVersion(int *major, int *minor)
{
    kn_nvrtc_facts facts;
    if (major == NULL || minor == NULL || kn_nvrtc_facts_get(&nvrtc, library, &facts) != 0) {
        return KN_RTC_ASK(library, nvrtcVersion, (major, minor));
    }
    *major = facts.major;
    *minor = facts.minor;
    return 0;
}

static int call_nvrtcGetNumSupportedArchs(int *count)
{
    kn_nvrtc_facts facts;
    if (count == NULL) {
        return KN_RTC_ASK(library, nvrtcGetNumSupportedArchs, (count));
    }
    const int code = kn_nvrtc_facts_get(&nvrtc, library, &facts);
    if (code == 0) {
        *count = facts.count;
    }
    return code;
}

static int call_nvrtcGetSupportedArchs(int *archs)
{
    kn_nvrtc_facts facts;
    if (archs == NULL) {
        return KN_RTC_ASK(library, nvrtcGetSupportedArchs, (archs));
    }
    const int code = kn_nvrtc_facts_get(&nvrtc, library, &facts);
    if (code == 0) {
        memcpy(archs, facts.archs, (size_t)facts.count * sizeof(*archs));
    }
    return code;
}

static int call_nvrtcSetFlowCallback(nvrtcProgram handle, int (*callback)(void *, void *),
                                     void *payload)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    if (program == NULL || program->plain || program->real != NULL || callback == NULL) {
        KN_RTC_HAND_ON(&nvrtc, program, handle, set_callback, real_, callback, payload);
    }
    /* It may stop a compile; on a hit there is none. */
    program->callback = callback;
    program->callback_payload = payload;
    kn_mutex_unlock(&program->lock);
    return 0;
}

static int call_nvrtcGetPCHCreateStatus(nvrtcProgram handle)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    const kn_rtc_output *output = kn_rtc_find_output(program, KN_RTC_PCH);
    if (output == NULL) {
        KN_RTC_HAND_ON(&nvrtc, program, handle, pch_status, real_);
    }
    const int code = output->code;
    kn_mutex_unlock(&program->lock);
    return code;
}

static int call_nvrtcGetPCHHeapSizeRequired(nvrtcProgram handle, size_t *size)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    int code = 0;
    void *const real = kn_rtc_real_of(&nvrtc, program, handle, &code);
    if (code == 0) {
        code = KN_RTC_ASK(library, nvrtcGetPCHHeapSizeRequired, (real, size));
    }
    kn_rtc_unlock_program(program);
    return code;
}

/* --- the table -------------------------------------------------------------------------------- */

KN_RTC_STUBS(nvrtc, &nvrtc)
KN_RTC_OUTPUT(nvrtc, PTX, &nvrtc, KN_RTC_PTX)
KN_RTC_OUTPUT(nvrtc, CUBIN, &nvrtc, KN_RTC_CUBIN)
KN_RTC_OUTPUT(nvrtc, LTOIR, &nvrtc, KN_RTC_LTOIR)
KN_RTC_OUTPUT(nvrtc, OptiXIR, &nvrtc, KN_RTC_OPTIXIR)
KN_RTC_OUTPUT(nvrtc, NVVM, &nvrtc, KN_RTC_NVVM)
KN_RTC_OUTPUT(nvrtc, TileIR, &nvrtc, KN_RTC_TILEIR)
KN_RTC_OWN(library, nvrtcGetPCHHeapSize, (size_t * size), (size))
KN_RTC_OWN(library, nvrtcSetPCHHeapSize, (size_t size), (size))
KN_RTC_OWN(library, nvrtcInstallBundledHeaders,
           (const char *path, unsigned int flags, const char **error_log), (path, flags, error_log))
KN_RTC_OWN(library, nvrtcGetBundledHeadersInfo, (void *info, const char **error_log),
           (info, error_log))
KN_RTC_OWN(library, nvrtcRemoveBundledHeaders, (const char *path, const char **error_log),
           (path, error_log))
KN_RTC_ERROR_STRING(nvrtc, "NVRTC", library)

static const kn_nvrtc_table table = {
#define X(name, parameters, arguments) .name = call_##name,
#include "apis/cuda/shim/nvrtc_calls.def"
#undef X
    .nvrtcGetErrorString = call_nvrtcGetErrorString,
    .note_loading = kn_nvrtc_process_loading,
};

KILN_API const kn_nvrtc_table *kn_interpose_nvrtc(const kn_nvrtc_real *real);
const kn_nvrtc_table *kn_interpose_nvrtc(const kn_nvrtc_real *real)
{
    if (library != NULL) {
        return NULL; /* two major versions in one process: the second one goes without the cache */
    }
    library = real;
    nvrtc.path = real->path;
    return kn_session_cache() != NULL ? &table : NULL;
}

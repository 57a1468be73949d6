/* The functions that stand in for NVRTC's: what NVRTC has alone, and the table. */
#include <string.h>

#include "apis/cuda/options/nvrtc_process.h"
#include "apis/cuda/shim/nvrtc_facts.h"
#include "apis/cuda/shim/nvrtc_kind.h"
#include "interpose/rtc_calls.h"
#include "interpose/rtc_compile.h"
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

static nvrtcResult call_version(int *major, int *minor)
{
    kn_nvrtc_facts facts;
    if (major == NULL || minor == NULL) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcVersion(major, minor) : KN_RTC_INTERNAL_ERROR;
    }
    if (kn_nvrtc_facts_get(&nvrtc, library, &facts) != 0) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcVersion(major, minor) : KN_RTC_INTERNAL_ERROR;
    }
    *major = facts.major;
    *minor = facts.minor;
    return 0;
}

static nvrtcResult call_num_archs(int *count)
{
    kn_nvrtc_facts facts;
    if (count == NULL) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcGetNumSupportedArchs(count) : KN_RTC_INTERNAL_ERROR;
    }
    const nvrtcResult code = kn_nvrtc_facts_get(&nvrtc, library, &facts);
    if (code == 0) {
        *count = facts.count;
    }
    return code;
}

static nvrtcResult call_archs(int *archs)
{
    kn_nvrtc_facts facts;
    if (archs == NULL) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcGetSupportedArchs(archs) : KN_RTC_INTERNAL_ERROR;
    }
    const nvrtcResult code = kn_nvrtc_facts_get(&nvrtc, library, &facts);
    if (code == 0) {
        memcpy(archs, facts.archs, (size_t)facts.count * sizeof(*archs));
    }
    return code;
}

/* NVRTC's texts for the codes that every version since 12.0 has; the rest are its own to give. */
static const char *call_error_string(nvrtcResult result)
{
    static const char *const texts[] = {"NVRTC_SUCCESS",
                                        "NVRTC_ERROR_OUT_OF_MEMORY",
                                        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "NVRTC_ERROR_INVALID_INPUT",
                                        "NVRTC_ERROR_INVALID_PROGRAM",
                                        "NVRTC_ERROR_INVALID_OPTION",
                                        "NVRTC_ERROR_COMPILATION"};
    if (result >= 0 && result < (int)(sizeof(texts) / sizeof(texts[0]))) {
        return texts[result];
    }
    const kn_nvrtc_table *real = library->open();
    return real != NULL ? real->nvrtcGetErrorString(result) : "NVRTC_ERROR_INTERNAL_ERROR";
}

/* --- programs --------------------------------------------------------------------------------- */

static nvrtcResult call_create(nvrtcProgram *program, const char *source, const char *name,
                               int header_count, const char *const *headers,
                               const char *const *header_names)
{
    return kn_rtc_call_create(&nvrtc, program, source, name, header_count, headers, header_names);
}

static nvrtcResult call_destroy(nvrtcProgram *program)
{
    return kn_rtc_call_destroy(&nvrtc, program);
}

static nvrtcResult call_add_expression(nvrtcProgram handle, const char *expression)
{
    return kn_rtc_call_add_expression(&nvrtc, handle, expression);
}

static nvrtcResult call_compile(nvrtcProgram handle, int option_count, const char *const *options)
{
    return kn_rtc_call_compile(&nvrtc, handle, option_count, options);
}

static nvrtcResult call_lowered_name(nvrtcProgram handle, const char *expression,
                                     const char **lowered)
{
    return kn_rtc_call_lowered(&nvrtc, handle, expression, lowered);
}

#define OUTPUT_CALLS(name, part)                                                                   \
    static nvrtcResult call_size_##name(nvrtcProgram handle, size_t *size)                         \
    {                                                                                              \
        return kn_rtc_call_size(&nvrtc, handle, part, size);                                       \
    }                                                                                              \
    static nvrtcResult call_bytes_##name(nvrtcProgram handle, char *bytes)                         \
    {                                                                                              \
        return kn_rtc_call_bytes(&nvrtc, handle, part, bytes);                                     \
    }
OUTPUT_CALLS(ProgramLog, KN_RTC_LOG)
OUTPUT_CALLS(PTX, KN_RTC_PTX)
OUTPUT_CALLS(CUBIN, KN_RTC_CUBIN)
OUTPUT_CALLS(LTOIR, KN_RTC_LTOIR)
OUTPUT_CALLS(OptiXIR, KN_RTC_OPTIXIR)
OUTPUT_CALLS(NVVM, KN_RTC_NVVM)
OUTPUT_CALLS(TileIR, KN_RTC_TILEIR)
#undef OUTPUT_CALLS

static nvrtcResult call_flow_callback(nvrtcProgram handle, int (*callback)(void *, void *),
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

/* --- precompiled headers, bundled headers: the real library's business ------------------------ */

static nvrtcResult call_pch_status(nvrtcProgram handle)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    const kn_rtc_output *output = kn_rtc_find_output(program, KN_RTC_PCH);
    if (output == NULL) {
        KN_RTC_HAND_ON(&nvrtc, program, handle, pch_status, real_);
    }
    const nvrtcResult code = output->code;
    kn_mutex_unlock(&program->lock);
    return code;
}

static nvrtcResult call_pch_required(nvrtcProgram handle, size_t *size)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    nvrtcResult code = 0;
    void *const real = kn_rtc_real_of(&nvrtc, program, handle, &code);
    if (code == 0) {
        const kn_nvrtc_table *calls = library->open();
        code = calls->nvrtcGetPCHHeapSizeRequired != NULL
                   ? calls->nvrtcGetPCHHeapSizeRequired(real, size)
                   : KN_RTC_INTERNAL_ERROR;
    }
    kn_rtc_unlock_program(program);
    return code;
}

#define LIBRARY_CALL(call, name, parameters, arguments)                                            \
    static nvrtcResult call parameters                                                             \
    {                                                                                              \
        const kn_nvrtc_table *real = library->open();                                              \
        return real != NULL && real->name != NULL ? real->name arguments : KN_RTC_INTERNAL_ERROR;  \
    }
LIBRARY_CALL(call_pch_size, nvrtcGetPCHHeapSize, (size_t * size), (size))
LIBRARY_CALL(call_set_pch_size, nvrtcSetPCHHeapSize, (size_t size), (size))
LIBRARY_CALL(call_install_headers, nvrtcInstallBundledHeaders,
             (const char *path, unsigned int flags, const char **error_log),
             (path, flags, error_log))
LIBRARY_CALL(call_headers_info, nvrtcGetBundledHeadersInfo, (void *info, const char **error_log),
             (info, error_log))
LIBRARY_CALL(call_remove_headers, nvrtcRemoveBundledHeaders,
             (const char *path, const char **error_log), (path, error_log))
#undef LIBRARY_CALL

/* --- the table -------------------------------------------------------------------------------- */

static const kn_nvrtc_table table = {
    .nvrtcVersion = call_version,
    .nvrtcGetNumSupportedArchs = call_num_archs,
    .nvrtcGetSupportedArchs = call_archs,
    .nvrtcCreateProgram = call_create,
    .nvrtcDestroyProgram = call_destroy,
    .nvrtcCompileProgram = call_compile,
    .nvrtcAddNameExpression = call_add_expression,
    .nvrtcGetLoweredName = call_lowered_name,
    .nvrtcGetProgramLogSize = call_size_ProgramLog,
    .nvrtcGetProgramLog = call_bytes_ProgramLog,
    .nvrtcGetPTXSize = call_size_PTX,
    .nvrtcGetPTX = call_bytes_PTX,
    .nvrtcGetCUBINSize = call_size_CUBIN,
    .nvrtcGetCUBIN = call_bytes_CUBIN,
    .nvrtcGetLTOIRSize = call_size_LTOIR,
    .nvrtcGetLTOIR = call_bytes_LTOIR,
    .nvrtcGetOptiXIRSize = call_size_OptiXIR,
    .nvrtcGetOptiXIR = call_bytes_OptiXIR,
    .nvrtcGetNVVMSize = call_size_NVVM,
    .nvrtcGetNVVM = call_bytes_NVVM,
    .nvrtcGetTileIRSize = call_size_TileIR,
    .nvrtcGetTileIR = call_bytes_TileIR,
    .nvrtcGetPCHHeapSize = call_pch_size,
    .nvrtcSetPCHHeapSize = call_set_pch_size,
    .nvrtcGetPCHHeapSizeRequired = call_pch_required,
    .nvrtcGetPCHCreateStatus = call_pch_status,
    .nvrtcSetFlowCallback = call_flow_callback,
    .nvrtcInstallBundledHeaders = call_install_headers,
    .nvrtcGetBundledHeadersInfo = call_headers_info,
    .nvrtcRemoveBundledHeaders = call_remove_headers,
    .nvrtcGetErrorString = call_error_string,
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

/* The functions that stand in for NVRTC's. Each answers from what is known where the arguments are
 * ordinary; everything else is put to the real library, so that its answer is the real one. */
#include <stdlib.h>
#include <string.h>

#include "interpose/nvrtc_compile.h"
#include "interpose/nvrtc_program.h"
#include "interpose/session.h"
#include "kiln/export.h"

#define INTERNAL_ERROR 11 /* NVRTC_ERROR_INTERNAL_ERROR */
#define OUT_OF_MEMORY 1   /* NVRTC_ERROR_OUT_OF_MEMORY */

static const kn_nvrtc_real *library; /* set once, before the table is given out */

/* --- handing on ------------------------------------------------------------------------------- */

/* The program with its lock held; NULL if the handle is not of this library. */
static kn_nvrtc_program *lock_program(nvrtcProgram handle)
{
    kn_nvrtc_program *program = kn_nvrtc_program_of(handle);
    if (program != NULL) {
        kn_mutex_lock(&program->lock);
    }
    return program;
}

/* The real program behind a handle, as far as the caller has come; a handle that is not of this
 * library is handed on as it is. */
static nvrtcProgram real_of(kn_nvrtc_program *program, nvrtcProgram handle, nvrtcResult *out_code)
{
    *out_code = 0;
    if (program == NULL) {
        *out_code = library->open() != NULL ? 0 : INTERNAL_ERROR;
        return handle;
    }
    *out_code = kn_nvrtc_program_catch_up(program);
    return program->real;
}

#define HAND_ON(program, handle, function, ...)                                                    \
    do {                                                                                           \
        nvrtcResult code_ = 0;                                                                     \
        const nvrtcProgram real_ = real_of(program, handle, &code_);                               \
        if (code_ == 0) {                                                                          \
            const kn_nvrtc_table *table_ = library->open();                                        \
            code_ = table_->function != NULL ? table_->function(__VA_ARGS__) : INTERNAL_ERROR;     \
        }                                                                                          \
        if ((program) != NULL) {                                                                   \
            kn_mutex_unlock(&(program)->lock);                                                     \
        }                                                                                          \
        return code_;                                                                              \
    } while (0)

/* --- the library ------------------------------------------------------------------------------ */

static nvrtcResult call_version(int *major, int *minor)
{
    kn_nvrtc_facts facts;
    if (major == NULL || minor == NULL) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcVersion(major, minor) : INTERNAL_ERROR;
    }
    if (kn_nvrtc_facts_get(library, &facts) != 0) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcVersion(major, minor) : INTERNAL_ERROR;
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
        return real != NULL ? real->nvrtcGetNumSupportedArchs(count) : INTERNAL_ERROR;
    }
    const nvrtcResult code = kn_nvrtc_facts_get(library, &facts);
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
        return real != NULL ? real->nvrtcGetSupportedArchs(archs) : INTERNAL_ERROR;
    }
    const nvrtcResult code = kn_nvrtc_facts_get(library, &facts);
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

static bool is_ordinary(const nvrtcProgram *program, const char *source, int header_count,
                        const char *const *headers, const char *const *names)
{
    bool ordinary = program != NULL && source != NULL && header_count >= 0 &&
                    (header_count == 0 || (headers != NULL && names != NULL));
    for (int i = 0; ordinary && i < header_count; i++) {
        ordinary = headers[i] != NULL && names[i] != NULL;
    }
    return ordinary;
}

static nvrtcResult call_create(nvrtcProgram *program, const char *source, const char *name,
                               int header_count, const char *const *headers,
                               const char *const *header_names)
{
    if (!is_ordinary(program, source, header_count, headers, header_names)) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcCreateProgram(program, source, name, header_count, headers,
                                                       header_names)
                            : INTERNAL_ERROR;
    }
    kn_nvrtc_program *made =
        kn_nvrtc_program_create(library, source, name, header_count, headers, header_names);
    if (made == NULL) {
        return OUT_OF_MEMORY;
    }
    *program = (nvrtcProgram)(void *)made;
    return 0;
}

static nvrtcResult call_destroy(nvrtcProgram *program)
{
    kn_nvrtc_program *own = program != NULL ? kn_nvrtc_program_of(*program) : NULL;
    if (own == NULL) {
        const kn_nvrtc_table *real = library->open();
        return real != NULL ? real->nvrtcDestroyProgram(program) : INTERNAL_ERROR;
    }
    kn_nvrtc_program_destroy(own);
    *program = NULL;
    return 0;
}

static nvrtcResult call_add_expression(nvrtcProgram handle, const char *expression)
{
    kn_nvrtc_program *program = lock_program(handle);
    /* After a compile, and for what is not a text, the answer is an error of NVRTC's. */
    if (program == NULL || program->plain || program->blob != NULL || program->real != NULL ||
        expression == NULL) {
        HAND_ON(program, handle, nvrtcAddNameExpression, real_, expression);
    }
    const bool added = kn_nvrtc_program_add_expression(program, expression);
    kn_mutex_unlock(&program->lock);
    return added ? 0 : OUT_OF_MEMORY;
}

static nvrtcResult call_compile(nvrtcProgram handle, int option_count, const char *const *options)
{
    kn_nvrtc_program *program = lock_program(handle);
    bool ordinary = program != NULL && option_count >= 0 && (option_count == 0 || options != NULL);
    for (int i = 0; ordinary && i < option_count; i++) {
        ordinary = options[i] != NULL;
    }
    if (!ordinary || program->plain) {
        if (program != NULL) {
            program->plain = true;
            kn_nvrtc_program_forget(program);
        }
        HAND_ON(program, handle, nvrtcCompileProgram, real_, option_count, options);
    }
    const nvrtcResult code = kn_nvrtc_program_set_options(program, option_count, options)
                                 ? kn_nvrtc_compile(program)
                                 : OUT_OF_MEMORY;
    kn_mutex_unlock(&program->lock);
    return code;
}

static nvrtcResult call_lowered_name(nvrtcProgram handle, const char *expression,
                                     const char **lowered)
{
    kn_nvrtc_program *program = lock_program(handle);
    for (size_t i = 0; program != NULL && program->blob != NULL && !program->plain &&
                       expression != NULL && lowered != NULL && i < program->expression_count;
         i++) {
        if (strcmp(program->expressions[i], expression) == 0) {
            *lowered = program->result.lowered[i].data;
            kn_mutex_unlock(&program->lock);
            return 0;
        }
    }
    HAND_ON(program, handle, nvrtcGetLoweredName, real_, expression, lowered);
}

static nvrtcResult call_flow_callback(nvrtcProgram handle, int (*callback)(void *, void *),
                                      void *payload)
{
    kn_nvrtc_program *program = lock_program(handle);
    if (program == NULL || program->plain || program->real != NULL || callback == NULL) {
        HAND_ON(program, handle, nvrtcSetFlowCallback, real_, callback, payload);
    }
    /* It may stop a compile; on a hit there is none. */
    program->callback = callback;
    program->callback_payload = payload;
    kn_mutex_unlock(&program->lock);
    return 0;
}

static nvrtcResult call_private(nvrtcProgram handle, long a, long b, long c, long d, long e, long f)
{
    kn_nvrtc_program *program = lock_program(handle);
    if (program != NULL) {
        program->plain = true; /* it compiles; and what it takes is not known */
        kn_nvrtc_program_forget(program);
    }
    kn_nvrtc_count_private(program);
    HAND_ON(program, handle, __nvrtcCPEx, real_, a, b, c, d, e, f);
}

/* --- outputs ---------------------------------------------------------------------------------- */

/* The output of a program that was found in the cache or compiled for it; NULL: ask the real one.
 */
static const kn_nvrtc_output *find_output(const kn_nvrtc_program *program, unsigned part)
{
    const bool known = program != NULL && program->blob != NULL && !program->plain &&
                       program->result.parts[part].known;
    return known ? &program->result.parts[part] : NULL;
}

#define OUTPUT_CALLS(name, part)                                                                   \
    static nvrtcResult call_size_##name(nvrtcProgram handle, size_t *size)                         \
    {                                                                                              \
        kn_nvrtc_program *program = lock_program(handle);                                          \
        const kn_nvrtc_output *output = size != NULL ? find_output(program, part) : NULL;          \
        if (output == NULL || output->code != 0) {                                                 \
            HAND_ON(program, handle, nvrtcGet##name##Size, real_, size);                           \
        }                                                                                          \
        *size = output->bytes.length;                                                              \
        kn_mutex_unlock(&program->lock);                                                           \
        return 0;                                                                                  \
    }                                                                                              \
    static nvrtcResult call_bytes_##name(nvrtcProgram handle, char *bytes)                         \
    {                                                                                              \
        kn_nvrtc_program *program = lock_program(handle);                                          \
        const kn_nvrtc_output *output = bytes != NULL ? find_output(program, part) : NULL;         \
        if (output == NULL || output->code != 0 || output->bytes.length == 0) {                    \
            HAND_ON(program, handle, nvrtcGet##name, real_, bytes);                                \
        }                                                                                          \
        memcpy(bytes, output->bytes.data, output->bytes.length);                                   \
        kn_mutex_unlock(&program->lock);                                                           \
        return 0;                                                                                  \
    }
OUTPUT_CALLS(ProgramLog, KN_NVRTC_LOG)
OUTPUT_CALLS(PTX, KN_NVRTC_PTX)
OUTPUT_CALLS(CUBIN, KN_NVRTC_CUBIN)
OUTPUT_CALLS(LTOIR, KN_NVRTC_LTOIR)
OUTPUT_CALLS(OptiXIR, KN_NVRTC_OPTIXIR)
OUTPUT_CALLS(NVVM, KN_NVRTC_NVVM)
OUTPUT_CALLS(TileIR, KN_NVRTC_TILEIR)
#undef OUTPUT_CALLS

/* --- precompiled headers, bundled headers: the real library's business ------------------------ */

static nvrtcResult call_pch_status(nvrtcProgram handle)
{
    kn_nvrtc_program *program = lock_program(handle);
    const kn_nvrtc_output *output = find_output(program, KN_NVRTC_PCH);
    if (output == NULL) {
        HAND_ON(program, handle, nvrtcGetPCHCreateStatus, real_);
    }
    const nvrtcResult code = output->code;
    kn_mutex_unlock(&program->lock);
    return code;
}

static nvrtcResult call_pch_required(nvrtcProgram handle, size_t *size)
{
    kn_nvrtc_program *program = lock_program(handle);
    HAND_ON(program, handle, nvrtcGetPCHHeapSizeRequired, real_, size);
}

#define LIBRARY_CALL(call, name, parameters, arguments)                                            \
    static nvrtcResult call parameters                                                             \
    {                                                                                              \
        const kn_nvrtc_table *real = library->open();                                              \
        return real != NULL && real->name != NULL ? real->name arguments : INTERNAL_ERROR;         \
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
    .__nvrtcCPEx = call_private,
};

KILN_API const kn_nvrtc_table *kn_interpose_nvrtc(const kn_nvrtc_real *real);
const kn_nvrtc_table *kn_interpose_nvrtc(const kn_nvrtc_real *real)
{
    library = real;
    return kn_session_cache() != NULL ? &table : NULL;
}

/* What keys of hipRTC's compiles are made of: the options as the hip backend judges them, all
 * libraries that compile, and the variables that they read. */
#include "interpose/hiprtc_kind.h"

#include <stdlib.h>
#include <string.h>

#include "backends/hip/code_object.h"
#include "backends/hip/instance.h"
#include "backends/hip/options.h"
#include "base/stages.h"
#include "base/text.h"
#include "core/runtime/memo.h"
#include "sys/env.h"

static const char bitcode_option[] = "-fgpu-rdc";

/* --- identity --------------------------------------------------------------------------------- */

/* The libraries are found out about, and remembered, as the hip backend does it. */
typedef struct hiprtc_state {
    kn_hip hip;
    kiln_host host;
} hiprtc_state;

void *kn_hiprtc_state_create(const char *path, kiln_cache *cache)
{
    hiprtc_state *state = (hiprtc_state *)calloc(1, sizeof(*state));
    if (state == NULL || !kn_hip_locate_at(&state->hip, path)) {
        free(state);
        return NULL;
    }
    kn_memo_host(cache, &state->host);
    state->hip.host = &state->host;
    state->hip.compilers_only = true;
    kn_mutex_init(&state->hip.lock);
    return state;
}

static bool copy_whole(char *out, size_t size, const char *text)
{
    kn_text_put(out, size, text);
    return strlen(text) < size;
}

static kiln_status find_hiprtc_identity(const kn_rtc_library *library, kn_rtc_identity *out,
                                        kiln_diag *diag)
{
    kn_hip *hip = &((hiprtc_state *)library->state)->hip;
    memset(out, 0, sizeof(*out));
    out->fields[0].field = "libraries";
    out->fields[1].field = "hiprtc-version";
    kn_mutex_lock(&hip->lock);
    kiln_status status = kn_hip_facts_get(hip, diag);
    if (status == KILN_OK &&
        (!copy_whole(out->fields[0].text, sizeof(out->fields[0].text), hip->facts.modules) ||
         !copy_whole(out->fields[1].text, sizeof(out->fields[1].text), hip->facts.version))) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, library->path,
                               "it consists of too many libraries");
    }
    kn_mutex_unlock(&hip->lock);
    return status;
}

static bool hiprtc_identity_holds(const kn_rtc_library *library, const kn_rtc_identity *identity)
{
    kn_hip *hip = &((hiprtc_state *)library->state)->hip;
    kn_mutex_lock(&hip->lock);
    const bool holds = kn_hip_library_get(hip, NULL) == KILN_OK &&
                       strcmp(hip->facts.modules, identity->fields[0].text) == 0;
    kn_mutex_unlock(&hip->lock);
    return holds;
}

/* --- options ---------------------------------------------------------------------------------- */

/* What an option that names the target names; NULL: it is another option. hipRTC takes the first.
 */
static const char *target_of_option(const char *option)
{
    static const char *const spellings[] = {"--offload-arch=", "--gpu-architecture="};
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        if (kn_text_starts(option, spellings[i])) {
            return option + strlen(spellings[i]);
        }
    }
    return NULL;
}

/* The directory that an option names; *index moves to the last element used. Clang takes "-I=dir"
 * for one below its root. */
static const char *directory_of_hiprtc_option(const char *const *options, size_t count,
                                              size_t *index)
{
    const char *option = options[*index];
    if (strcmp(option, "-I") == 0 && *index + 1 < count) {
        ++*index;
        return options[*index];
    }
    const bool joined = kn_text_starts(option, "-I") && option[2] != '\0' && option[2] != '=';
    return joined ? option + 2 : NULL;
}

/* hipRTC 5.2 splits its options at blanks. */
static bool is_whole(const char *directory)
{
    return directory[0] != '\0' && strpbrk(directory, " \t\r\n\"'\\") == NULL;
}

static void judge_options(const char *const *options, size_t count, kn_rtc_options *out)
{
    kn_hip_option_facts facts;
    kn_hip_options_read(options, count, &facts);
    out->bypass = out->bypass != NULL ? out->bypass : facts.reason;
    out->names = out->names || facts.names;
}

/* Where an entry is kept: by the processor, without its settings. A recording has them all. */
static void name_hiprtc_target(const char *target, kn_rtc_options *out)
{
    const size_t length = strcspn(target, ":");
    const bool good = length > 0 && length < 32 &&
                      strspn(target, "abcdefghijklmnopqrstuvwxyz0123456789-") >= length;
    kn_text_putf(out->target, sizeof(out->target), "hip-%.*s", good ? (int)length : 7,
                 good ? target : "default");
    kn_text_put(out->arch, sizeof(out->arch), target);
}

/* Variables with which the compiler writes files, or other logs. */
static const char *find_talkative_variable(void)
{
    static const char *const variables[] = {"AMD_COMGR_SAVE_TEMPS", "AMD_COMGR_SAVE_LLVM_TEMPS",
                                            "AMD_COMGR_REDIRECT_LOGS",
                                            "AMD_COMGR_EMIT_VERBOSE_LOGS"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = kn_env_get(variables[i]);
        if (value != NULL && value[0] != '\0' && strcmp(value, "0") != 0) {
            return "a variable of libamd_comgr's asks for files or logs of its own";
        }
    }
    return NULL;
}

static void read_hiprtc_options(const char *const *options, size_t count, kn_rtc_options *out)
{
    const kiln_source none = KILN_SOURCE_INIT;
    const char *target = NULL;
    size_t unread = 0; /* the first option that was not judged */
    out->bypass = kn_hip_uncacheable_option(NULL, &none);
    out->bypass = out->bypass != NULL ? out->bypass : find_talkative_variable();
    out->names = (kn_hip_option_effects(NULL, &none) & KILN_OPTION_NAMES) != 0;
    for (size_t i = 0; i < count; i++) {
        const size_t first = i;
        const char *named = target_of_option(options[i]);
        const char *directory = directory_of_hiprtc_option(options, count, &i);
        const bool taken = directory != NULL && is_whole(directory);
        target = target != NULL ? target : named;
        if (taken) {
            out->directories[out->directory_count++] = directory;
        } else {
            for (size_t j = first; j <= i; j++) {
                out->rest[out->rest_count++] = options[j];
            }
        }
        if (taken || named != NULL || strcmp(options[first], bitcode_option) == 0) {
            judge_options(options + unread, first - unread, out);
            unread = i + 1;
        }
    }
    judge_options(options + unread, count - unread, out);
    if (target == NULL && out->bypass == NULL) {
        out->bypass = "no --offload-arch among the options: the device that is found decides";
    }
    name_hiprtc_target(target != NULL ? target : "", out);
}

static kiln_status add_variables(kiln_recipe *recipe, kiln_diag *diag)
{
    static const char *const variables[] = {"ROCM_PATH",
                                            "HIP_PATH",
                                            "LLVM_PATH",
                                            "HIP_DEVICE_LIB_PATH",
                                            "GPU_ENABLE_WGP_MODE",
                                            "GPU_ENABLE_WAVE32_MODE",
                                            "HIPRTC_COMPILE_OPTIONS_APPEND"};
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && status == KILN_OK; i++) {
        const char *value = kn_env_get(variables[i]);
        if (value != NULL) {
            status = kiln_recipe_add_text(recipe, variables[i], value, strlen(value), diag);
        }
    }
    return status;
}

/* --- what comes back -------------------------------------------------------------------------- */

/* What hipRTC calls a success may be for another target, or cut off. */
static const char *refuse_code(const kn_rtc_options *options, const kn_rtc_answer *answer)
{
    const kn_rtc_output *code = &answer->parts[KN_RTC_CODE];
    kn_hip_target target;
    char why[KN_CODE_OBJECT_WHY];
    const char *named = NULL;
    for (size_t i = 0; i < options->rest_count; i++) {
        if (strcmp(options->rest[i], bitcode_option) == 0) {
            return NULL; /* it made bitcode */
        }
        named = named != NULL ? named : target_of_option(options->rest[i]);
    }
    const bool good = named != NULL && kn_hip_target_read(named, &target) &&
                      kn_code_object_check(code->bytes.data, code->bytes.length, &target, why);
    return good ? NULL : "what hipRTC made is not a code object for the target";
}

static const char *find_no_option(const kn_rtc_calls *real)
{
    (void)real;
    return NULL;
}

const kn_rtc_kind kn_hiprtc_kind = {
    .what = "hiprtc",
    .name = "hipRTC",
    .unnamed = "",
    .stage = kn_stage_hiprtc_program,
    .revision = 2,
    .language = KILN_LANG_HIP,
    .door = KN_DOOR_HIPRTC,
    .record_prefix = "hip",
    .plain_outputs = true,
    .find_identity = find_hiprtc_identity,
    .identity_holds = hiprtc_identity_holds,
    .read_options = read_hiprtc_options,
    .add_surroundings = add_variables,
    .refuse = refuse_code,
    .uncached_option = find_no_option,
    .rename_log = kn_rtc_rename_in_hiprtc_log,
};

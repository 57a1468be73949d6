/* What keys of hipRTC's compiles are made of: the options as the hip backend judges them, all
 * libraries that compile, and the variables that they read. */
#include "apis/hip/shim/hiprtc_kind.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/code_object.h"
#include "apis/hip/backend/instance.h"
#include "apis/hip/options/hiprtc_options.h"
#include "base/stages.h"
#include "base/text.h"
#include "compilers/variables.h"
#include "core/runtime/memo.h"
#include "key/recipe.h"
#include "sys/env.h"

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

/* --- one call at a time ----------------------------------------------------------------------- */

static struct {
    pthread_once_t once;
    pthread_mutex_t mutex;
} turns = {.once = PTHREAD_ONCE_INIT};

/* Recursive: a compile may call hipRTC through a library in between. Made anew in the child of a
 * fork, which does not have the thread that held it. */
static void make_mutex(void)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) == 0) {
        (void)pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
        (void)pthread_mutex_init(&turns.mutex, &kind);
        (void)pthread_mutexattr_destroy(&kind);
    }
}

static void prepare_turns(void)
{
    make_mutex();
    /* Without memory for it, the child of a process that was compiling waits for ever. */
    (void)pthread_atfork(NULL, NULL, make_mutex);
}

void kn_hiprtc_turn_take(int major)
{
    if (major <= KN_HIP_LAST_IN_TURN) {
        (void)pthread_once(&turns.once, prepare_turns);
        (void)pthread_mutex_lock(&turns.mutex);
    }
}

void kn_hiprtc_turn_end(int major)
{
    if (major <= KN_HIP_LAST_IN_TURN) {
        (void)pthread_mutex_unlock(&turns.mutex);
    }
}

/* --- options ---------------------------------------------------------------------------------- */

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

static bool is_judged(const char *option, const kn_call_option *read)
{
    return read->use == KN_OPTION_OTHER && !kn_hiprtc_option_asks_bitcode(option);
}

/* Directories are followed, and targets and bitcode are this frontend's own affair: the others are
 * judged. */
static void read_hiprtc_options(const char *const *options, size_t count, kn_rtc_options *out)
{
    const kiln_source none = KILN_SOURCE_INIT;
    kn_hiprtc_option_facts facts;
    kn_call_option option;
    const char *target = NULL;
    out->bypass = kn_hip_uncacheable_option(NULL, &none);
    out->names = (kn_hip_option_effects(NULL, &none) & KILN_OPTION_NAMES) != 0;
    for (size_t i = 0; i < count; i = option.last + 1) {
        const size_t length = out->rest_count;
        kn_hiprtc_option_read(options, count, i, &option);
        if (option.use == KN_OPTION_DIRECTORY) {
            out->directories[out->directory_count++] = option.value;
            continue;
        }
        if (option.use == KN_OPTION_TARGET && target == NULL) {
            target = option.value;
        }
        for (size_t j = i; j <= option.last; j++) {
            out->rest[out->rest_count++] = options[j];
        }
        if (is_judged(options[i], &option)) {
            kn_hiprtc_options_read(out->rest + length, out->rest_count - length, &facts);
            out->bypass = out->bypass != NULL ? out->bypass : facts.reason;
            out->names = out->names || facts.names;
        }
    }
    if (target == NULL && out->bypass == NULL) {
        out->bypass = "no --offload-arch among the options: the device that is found decides";
    }
    name_hiprtc_target(target != NULL ? target : "", out);
}

static void add_variables(kiln_recipe *recipe)
{
    const char *name = NULL;
    for (size_t i = 0; (name = kn_variables_keyed(KN_COMPILER_HIPRTC, i)) != NULL; i++) {
        const char *value = kn_env_get(name);
        if (value != NULL) {
            kn_recipe_add_string(recipe, name, value);
        }
    }
}

/* --- what comes back -------------------------------------------------------------------------- */

/* What hipRTC calls a success may be for another target, or cut off. */
static const char *refuse_code(const kn_rtc_options *options, const kn_rtc_answer *answer)
{
    const kn_rtc_output *code = &answer->parts[KN_RTC_CODE];
    kn_hip_target target;
    char why[KN_CODE_OBJECT_WHY];
    const char *named = NULL;
    kn_call_option option;
    for (size_t i = 0; i < options->rest_count; i = option.last + 1) {
        kn_hiprtc_option_read(options->rest, options->rest_count, i, &option);
        if (kn_hiprtc_option_asks_bitcode(options->rest[i])) {
            return NULL; /* it made bitcode */
        }
        if (option.use == KN_OPTION_TARGET && named == NULL) {
            named = option.value;
        }
    }
    const bool good = named != NULL && kn_hip_target_read(named, &target) &&
                      kn_code_object_check(code->bytes.data, code->bytes.length, &target, why);
    return good ? NULL : "what hipRTC made is not a code object for the target";
}

const kn_rtc_kind kn_hiprtc_kind = {
    .what = "hiprtc",
    .name = "hipRTC",
    .unnamed = "",
    .stage = kn_stage_hiprtc_program,
    .revision = KN_REVISION_hiprtc_program,
    .language = KILN_LANG_HIP,
    .frontend = KN_FRONTEND_HIPRTC,
    .record_prefix = "hip",
    .include_rules = &kn_hip_include_rules,
    .plain_outputs = true,
    .find_identity = find_hiprtc_identity,
    .identity_holds = hiprtc_identity_holds,
    .read_options = read_hiprtc_options,
    .add_surroundings = add_variables,
    .refuse = refuse_code,
    .rename_log = kn_rtc_rename_in_hiprtc_log,
};

/* Calls for here: paths in the program's tree, the architecture that is asked for. */
#include "replay/call.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/options/nvrtc_options.h"
#include "apis/hip/options/hiprtc_options.h"
#include "base/diag.h"
#include "base/text.h"

static const char replaying[] = "replaying a program's calls";

/* What a compiler's calls look like. */
typedef struct call_kind {
    kn_recorded_frontend frontend;
    kn_library_id library;
    const char *language; /* in messages */
    const char *prefix;   /* of targets */
    kn_call_option_fn *read_option;
    const char *(*choose)(const char *recorded, const char *asked, char *room, size_t size);
} call_kind;

/* --- architectures ---------------------------------------------------------------------------- */

/* "sm_90a" or "compute_90f" is for that one only. */
static bool is_specific(const char *architecture)
{
    const size_t length = strlen(architecture);
    return length > 0 && isalpha((unsigned char)architecture[length - 1]) != 0;
}

/* What NVRTC's option is to say in the place of `recorded`: the same kind of code, for another
 * architecture. NULL: it is not for it. */
static const char *choose_architecture(const char *recorded, const char *asked, char *room,
                                       size_t size)
{
    const char *number = strchr(asked, '_');
    const char *own = strchr(recorded, '_');
    if (strcmp(recorded, asked) == 0) {
        return recorded;
    }
    if (number == NULL || own == NULL || is_specific(recorded)) {
        return NULL;
    }
    if (kn_text_starts(asked, "sm_")) {
        kn_text_putf(room, size, "%.*s%s", (int)(own - recorded), recorded, number);
        return room;
    }
    return kn_text_starts(asked, "compute_") ? asked : NULL;
}

/* hipRTC takes any processor, with settings or without. */
static const char *choose_processor(const char *recorded, const char *asked, char *room,
                                    size_t size)
{
    (void)room, (void)size;
    return recorded[0] != '\0' && kn_text_starts(asked, "gfx") ? asked : NULL;
}

static const call_kind call_kinds[] = {
    {.frontend = KN_FRONTEND_NVRTC,
     .library = KN_LIBRARY_nvrtc,
     .language = "CUDA",
     .prefix = "cuda:",
     .read_option = kn_nvrtc_option_read,
     .choose = choose_architecture},
    {.frontend = KN_FRONTEND_HIPRTC,
     .library = KN_LIBRARY_hiprtc,
     .language = "HIP",
     .prefix = "hip:",
     .read_option = kn_hiprtc_option_read,
     .choose = choose_processor},
};

static const call_kind *find_call_kind(kn_recorded_frontend frontend)
{
    for (size_t i = 0; i < sizeof(call_kinds) / sizeof(call_kinds[0]); i++) {
        if (call_kinds[i].frontend == frontend) {
            return &call_kinds[i];
        }
    }
    return NULL;
}

bool kn_replay_by_call(kn_recorded_frontend frontend)
{
    return find_call_kind(frontend) != NULL;
}

static kiln_status refuse_target(const char *recorded, const char *asked, kiln_diag *diag)
{
    const bool none = recorded[0] == '\0';
    return kiln_diag_set(
        diag, KILN_E_UNSUPPORTED, NULL, asked, "%s%s",
        none ? "its options name no architecture" : "it is for one alone: ", recorded);
}

/* --- options ---------------------------------------------------------------------------------- */

/* The value of an option for this machine and target; NULL: no memory. */
static char *choose_value(const kn_replay_program *program, const kn_call_option *option,
                          const char *recorded, const char *wanted)
{
    if (option->use == KN_OPTION_DIRECTORY) {
        return kn_scratch_path(program->tree, program->recorded.dir, option->value);
    }
    const bool target = option->use == KN_OPTION_TARGET && strcmp(option->value, recorded) == 0;
    return kn_text_copy(target ? wanted : option->value);
}

static char *choose_option(const kn_replay_program *program, const kn_call_option *option,
                           const char *last, const char *recorded, const char *wanted)
{
    kn_strbuf out;
    if (option->value == NULL) {
        return kn_text_copy(last);
    }
    char *value = choose_value(program, option, recorded, wanted);
    kn_strbuf_init(&out, 0);
    kn_strbuf_append(&out, last, option->before);
    kn_strbuf_append_text(&out, value != NULL ? value : "");
    char *text = value != NULL ? kn_strbuf_detach(&out, NULL) : NULL;
    kn_strbuf_deinit(&out);
    free(value);
    return text;
}

static bool choose_options(kn_replay_call *call, const call_kind *kind, const char *recorded,
                           const char *wanted)
{
    const kn_recorded *from = &call->program.recorded;
    kn_call_option option;
    bool good = true;
    call->options = (char **)calloc(from->option_count + 1, sizeof(char *));
    if (call->options == NULL) {
        return false;
    }
    for (size_t i = 0; good && i < from->option_count; i++) {
        kind->read_option(from->options, from->option_count, i, &option);
        for (; good && i < option.last; i++) {
            call->options[i] = kn_text_copy(from->options[i]);
            good = call->options[i] != NULL;
        }
        call->options[i] =
            good ? choose_option(&call->program, &option, from->options[i], recorded, wanted)
                 : NULL;
        good = call->options[i] != NULL;
    }
    return good;
}

/* --- the call --------------------------------------------------------------------------------- */

kiln_status kn_replay_call_choose(kn_replay_call *call, const char *recorded_target,
                                  const char *target, kiln_diag *diag)
{
    char room[64];
    const kn_recorded *from = &call->program.recorded;
    const call_kind *kind = find_call_kind(from->frontend);
    if (kind == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "replaying calls",
                             "calls of this kind are not replayed");
    }
    target = target != NULL ? target : recorded_target;
    if (!kn_text_starts(target, kind->prefix) || !kn_text_starts(recorded_target, kind->prefix)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, target, "%s is not for it",
                             kind->language);
    }
    const char *recorded = recorded_target + strlen(kind->prefix);
    const char *wanted = kind->choose(recorded, target + strlen(kind->prefix), room, sizeof(room));
    if (wanted == NULL) {
        return refuse_target(recorded, target, diag);
    }
    const bool inside =
        kind->library == KN_LIBRARY_hiprtc && (from->flags & KN_RECORDED_RUNTIME) != 0;
    call->library = inside ? KN_LIBRARY_hip : kind->library;
    return choose_options(call, kind, recorded, wanted) ? KILN_OK : kn_no_memory(diag, replaying);
}

void kn_replay_call_deinit(kn_replay_call *call)
{
    for (size_t i = 0; call->options != NULL && i < call->program.recorded.option_count; i++) {
        free(call->options[i]);
    }
    free(call->options);
    kn_replay_program_deinit(&call->program);
    call->options = NULL;
}

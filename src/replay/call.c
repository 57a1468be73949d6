/* Writing calls down: paths in the program's tree, the architecture that is asked for. */
#include "replay/call.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "compilers/hiprtc_options.h"
#include "compilers/libraries.h"
#include "compilers/nvrtc_options.h"

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

static void append_string(kn_strbuf *out, const char *text)
{
    kn_strbuf_append(out, text, strlen(text) + 1);
}

static void append_count(kn_strbuf *out, size_t count)
{
    kn_strbuf_printf(out, "%zu", count);
    kn_strbuf_append_char(out, '\0');
}

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

typedef struct option_walk {
    const call_kind *kind;
    const kn_replay_program *program;
    const char *recorded, *wanted; /* architectures */
    kn_strbuf *out;
} option_walk;

static bool append_placed(option_walk *walk, const char *folder)
{
    const kn_replay_program *program = walk->program;
    char *placed = kn_scratch_path(program->tree, program->recorded.folder, folder);
    if (placed != NULL) {
        append_string(walk->out, placed);
    }
    free(placed);
    return placed != NULL;
}

/* The option at *index, which moves on to the next. */
static bool append_option(option_walk *walk, const char *const *options, size_t count,
                          size_t *index)
{
    kn_call_option option;
    walk->kind->read_option(options, count, *index, &option);
    for (; *index < option.last; ++*index) {
        append_string(walk->out, options[*index]);
    }
    const char *last = options[(*index)++];
    const char *value = option.value;
    if (value == NULL) {
        append_string(walk->out, last);
        return true;
    }
    kn_strbuf_append(walk->out, last, option.before);
    if (option.use == KN_OPTION_DIRECTORY) {
        return append_placed(walk, value);
    }
    const bool target = option.use == KN_OPTION_TARGET && strcmp(value, walk->recorded) == 0;
    append_string(walk->out, target ? walk->wanted : value);
    return true;
}

/* --- the call --------------------------------------------------------------------------------- */

static bool append_call(const kn_replay_program *program, option_walk *walk)
{
    const kn_recorded *recorded = &program->recorded;
    const bool inside =
        walk->kind->library == KN_LIBRARY_hiprtc && (recorded->flags & KN_RECORDED_RUNTIME) != 0;
    kn_strbuf *out = walk->out;
    append_string(out, kn_libraries[inside ? KN_LIBRARY_hip : walk->kind->library].id);
    append_string(out, program->tree);
    append_string(out, recorded->folder);
    append_string(out, program->name != NULL ? program->name : "");
    append_string(out, program->texts[0]);
    append_count(out, recorded->texts[0].header_count);
    for (size_t i = 0; i < recorded->texts[0].header_count; i++) {
        append_string(out, program->headers[0][i].name);
        append_string(out, program->headers[0][i].text);
    }
    append_count(out, recorded->entry_count);
    for (size_t i = 0; i < recorded->entry_count; i++) {
        append_string(out, recorded->entries[i]);
    }
    append_count(out, recorded->option_count);
    bool good = true;
    for (size_t i = 0; good && i < recorded->option_count;) {
        good = append_option(walk, recorded->options, recorded->option_count, &i);
    }
    return good && kn_strbuf_ok(out);
}

kiln_status kn_replay_call(const kn_replay_program *program, const char *recorded_target,
                           const char *target, kn_strbuf *out, kiln_diag *diag)
{
    char room[64];
    const call_kind *kind = find_call_kind(program->recorded.frontend);
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
    option_walk walk = {
        .kind = kind, .program = program, .recorded = recorded, .wanted = wanted, .out = out};
    return append_call(program, &walk) ? KILN_OK : kn_no_memory(diag, replaying);
}

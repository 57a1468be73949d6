/* See replay.h. The calls go through kiln's library, which stands under the name of the real one
 * and finds it; the compile itself is the frontend's own. */
#include "interpose/replay.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/text.h"
#include "interpose/rtc_compile.h"
#include "kiln/export.h"
#include "replay/call.h"

/* NVRTC's calls, or hipRTC's, which are the same. */
typedef struct rtc_table {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*add_expression)(void *, const char *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*destroy)(void **);
} rtc_table;

/* By the library that a program called. */
typedef struct rtc_kind {
    bool tried, there;
    rtc_table table;
} rtc_kind;

typedef struct worker {
    kiln_recording *recording;
    int back;
    rtc_kind kinds[KN_LIBRARIES];
} worker;

/* --- the library ------------------------------------------------------------------------------ */

static bool bind_call(void *library, const char *prefix, const char *name, void *out)
{
    char symbol[64];
    kn_text_putf(symbol, sizeof(symbol), "%s%s", prefix, name);
    void *address = dlsym(library, symbol);
    memcpy(out, &address, sizeof(address));
    return address != NULL;
}

/* The newest, after `*back` others. What a program called in HIP's runtime is kiln's library before
 * it: the runtime itself would answer by its own handle. */
static void *open_version(const kn_library *row, int *back)
{
    char name[64];
    void *library = NULL;
    for (int major = row->last; library == NULL && major >= row->first; major--) {
        kn_text_putf(name, sizeof(name), "%s.so.%d", row->shim, major);
        library = dlopen(name, RTLD_NOW);
        if (library != NULL && (*back)-- > 0) {
            library = NULL; /* it stays open: it is preloaded */
        }
    }
    return library;
}

/* Where the place that was recorded has no compiler, another one with its calls may have. */
static bool open_table(const kn_library *recorded, int back, rtc_table *out)
{
    const char *prefix = recorded->prefix;
    void *library = open_version(recorded, &back);
    for (int i = 0; library == NULL && i < KN_LIBRARIES; i++) {
        if (&kn_libraries[i] != recorded && strcmp(kn_libraries[i].api, recorded->api) == 0) {
            library = open_version(&kn_libraries[i], &back);
        }
    }
    return library != NULL && bind_call(library, prefix, "CreateProgram", &out->create) &&
           bind_call(library, prefix, "AddNameExpression", &out->add_expression) &&
           bind_call(library, prefix, "GetProgramLogSize", &out->log_size) &&
           bind_call(library, prefix, "GetProgramLog", &out->log) &&
           bind_call(library, prefix, "DestroyProgram", &out->destroy);
}

static const char *name_of(const kn_replay_call *call)
{
    const char *name = call->program.recorded.name;
    return name != NULL && name[0] != '\0' ? name : "(no name)";
}

static kiln_status find_table(worker *one, const kn_replay_call *call, const rtc_table **out_table,
                              kiln_diag *diag)
{
    const kn_library *row = &kn_libraries[call->library];
    rtc_kind *kind = &one->kinds[call->library];
    kind->there = kind->tried ? kind->there : open_table(row, one->back, &kind->table);
    kind->tried = true;
    *out_table = &kind->table;
    return kind->there
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install it", name_of(call),
                               "there is no %s.so.%d to .%d", row->stem, row->first, row->last);
}

/* --- a program -------------------------------------------------------------------------------- */

/* What the compiler finds by a relative path lies where the program's current directory was. */
static kiln_status enter_folder(const kn_replay_call *call, kiln_diag *diag)
{
    const kn_replay_program *program = &call->program;
    char *path = kn_scratch_path(program->tree, program->recorded.folder, ".");
    const bool entered = path != NULL && (chdir(path) == 0 || chdir(program->tree) == 0);
    free(path);
    return entered ? KILN_OK
                   : kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, name_of(call),
                                   "its directory cannot be entered");
}

static int create_program(const rtc_table *rtc, const kn_replay_program *from, void **program)
{
    const size_t count = from->recorded.texts[0].header_count;
    const char **split = (const char **)calloc(2 * count + 1, sizeof(*split));
    if (split == NULL) {
        return KN_RTC_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        split[i] = from->headers[0][i].text;
        split[count + i] = from->headers[0][i].name;
    }
    int code = rtc->create(program, from->texts[0], from->name, (int)count, split, split + count);
    for (size_t i = 0; code == 0 && i < from->recorded.entry_count; i++) {
        code = rtc->add_expression(*program, from->recorded.entries[i]);
    }
    free((void *)split);
    return code;
}

static void add_log(const rtc_table *rtc, void *program, kiln_diag *diag)
{
    size_t size = 0;
    char *log = rtc->log_size(program, &size) == 0 ? (char *)calloc(1, size + 1) : NULL;
    if (log != NULL && rtc->log(program, log) == 0) {
        kiln_diag_set_log(diag, log, strlen(log));
    }
    free(log);
}

static kiln_status judge_outcome(const kn_replay_call *call, const kn_rtc_made *made,
                                 kiln_diag *diag)
{
    const char *name = name_of(call);
    switch (made->outcome) {
    case KN_OUTCOME_HIT:
    case KN_OUTCOME_STORED:
    case KN_OUTCOME_REFUSED:
        return KILN_OK;
    case KN_OUTCOME_PRIVATE:
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, name, "it bypasses the cache: %s",
                             made->reason);
    case KN_OUTCOME_NONE:
    case KN_OUTCOME_DEFERRED:
    case KN_OUTCOME_FAILED:
        break;
    }
    return kiln_diag_set(diag, made->code != 0 ? KILN_E_COMPILE : KILN_E_UNAVAILABLE, NULL, name,
                         "%s returned %d", kn_library_find(kn_libraries[call->library].api)->name,
                         made->code);
}

static kiln_status make_program(const rtc_table *rtc, kn_replay_call *call, const kiln_key *wanted,
                                kn_rtc_made *made, kiln_diag *diag)
{
    void *handle = NULL;
    made->code = create_program(rtc, &call->program, &handle);
    kn_rtc_program *program = made->code == 0 ? kn_rtc_program_of(handle) : NULL;
    kiln_status status = KILN_OK;
    if (made->code == 0 && program == NULL) {
        status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, "run kiln doctor for details", name_of(call),
                          "kiln's libraries do not stand under the worker's compiler");
    } else if (program != NULL &&
               kn_rtc_program_set_options(program, (int)call->program.recorded.option_count,
                                          (const char *const *)call->options)) {
        kn_rtc_program_make(program, wanted, made);
        status = judge_outcome(call, made, diag);
    } else if (program != NULL) {
        status = kn_no_memory(diag, "replaying a program's calls");
    } else {
        status = judge_outcome(call, made, diag);
    }
    if (status == KILN_E_COMPILE && handle != NULL) {
        add_log(rtc, handle, diag);
    }
    if (handle != NULL) {
        (void)rtc->destroy(&handle);
    }
    return status;
}

static kiln_status replay_use(worker *one, size_t index, const char *target, const kiln_key *wanted,
                              kn_rtc_made *made, kiln_diag *diag)
{
    kn_replay_call call;
    const rtc_table *rtc = NULL;
    kiln_status status = kn_replay_call_init(&call, one->recording, index, target, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = find_table(one, &call, &rtc, diag);
    if (status == KILN_OK) {
        status = enter_folder(&call, diag);
    }
    if (status == KILN_OK) {
        status = make_program(rtc, &call, wanted, made, diag);
    }
    kn_replay_call_deinit(&call);
    return status;
}

/* --- lines ------------------------------------------------------------------------------------ */

static const char *origin_of(const kn_rtc_made *made)
{
    if (made->outcome == KN_OUTCOME_REFUSED) {
        return "other";
    }
    return made->outcome == KN_OUTCOME_STORED ? "compiled" : "there";
}

static bool write_answer(FILE *out, kiln_status status, const kn_rtc_made *made,
                         const kiln_diag *diag)
{
    char key[KILN_KEY_TEXT_SIZE];
    const char *log = diag->log != NULL ? diag->log : "";
    const size_t length = strlen(diag->what) + strlen(diag->why) + strlen(diag->fix) + strlen(log);
    kiln_key_format(&made->key, key);
    return fprintf(out, "%d %s %llu %llu %s %zu\n%s%c%s%c%s%c%s%c", (int)status, origin_of(made),
                   (unsigned long long)made->took_ns, (unsigned long long)made->saved_ns, key,
                   length + 4, diag->what, '\0', diag->why, '\0', diag->fix, '\0', log, '\0') > 0 &&
           fflush(out) == 0;
}

static bool answer_line(worker *one, char *line, FILE *out)
{
    char wanted_text[KILN_KEY_TEXT_SIZE] = "";
    char target[256] = "";
    size_t index = 0;
    kiln_key wanted;
    kn_rtc_made made = {.outcome = KN_OUTCOME_NONE};
    kiln_diag diag = KILN_DIAG_INIT;
    if (sscanf(line, "%zu %64s %255[^\n]", &index, wanted_text, target) !=
        3) { // NOLINT(cert-err34-c)
        return false;
    }
    const bool any = strcmp(wanted_text, "-") == 0;
    kiln_status status = any ? KILN_OK : kiln_key_parse(wanted_text, &wanted, &diag);
    if (status == KILN_OK) {
        status = replay_use(one, index, target, any ? NULL : &wanted, &made, &diag);
    }
    const bool written = write_answer(out, status, &made, &diag);
    kiln_diag_clear(&diag);
    return written;
}

KILN_API kn_interpose_replay_fn kn_interpose_replay;
_Bool kn_interpose_replay(const char *recording, int back, FILE *in, FILE *out)
{
    char line[512];
    worker one = {.back = back};
    bool good = kiln_recording_open(recording, &one.recording, NULL) == KILN_OK;
    while (good && fgets(line, sizeof(line), in) != NULL) {
        good = answer_line(&one, line, out);
    }
    kiln_recording_close(one.recording);
    return good;
}

/* See replay.h. Calls go through kiln's library, which stands under the name of the real one and
 * finds it; the compile itself is the frontend's own. */
#include "interpose/replay.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/kiln.h>

#include "base/diag.h"
#include "base/text.h"
#include "interpose/rtc_calls.h"
#include "interpose/rtc_compile.h"
#include "interpose/session.h"
#include "kiln/export.h"
#include "replay/call.h"

/* nvrtcCreateProgram, or hipRTC's. Its program knows the rest. */
typedef int create_fn(void **, const char *, const char *, int, const char *const *,
                      const char *const *);

typedef struct worker {
    kiln_recording *recording;
    int back;
    kiln_runtime *runtime; /* for the target of the first compile that was no call */
    uint64_t put_failures; /* that answers have named */
    struct {
        bool tried, oldest;
        create_fn *create; /* NULL: there is no such library */
    } kinds[KN_LIBRARIES]; /* by what a program called */
} worker;

/* --- the library ------------------------------------------------------------------------------ */

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
static create_fn *open_library(const kn_library *recorded, int back)
{
    char symbol[64];
    create_fn *create = NULL;
    void *library = open_version(recorded, &back);
    for (int i = 0; library == NULL && i < KN_LIBRARIES; i++) {
        if (&kn_libraries[i] != recorded && strcmp(kn_libraries[i].api, recorded->api) == 0) {
            library = open_version(&kn_libraries[i], &back);
        }
    }
    kn_text_putf(symbol, sizeof(symbol), "%sCreateProgram", recorded->prefix);
    void *address = library != NULL ? dlsym(library, symbol) : NULL;
    memcpy(&create, &address, sizeof(address));
    return create;
}

static const char *name_of(const kn_replay_call *call)
{
    const char *name = call->program.recorded.name;
    return name != NULL && name[0] != '\0' ? name : "(no name)";
}

static kiln_status find_library(worker *one, const kn_replay_call *call, create_fn **out_create,
                                kiln_diag *diag)
{
    const kn_library *row = &kn_libraries[call->library];
    if (!one->kinds[call->library].tried) {
        one->kinds[call->library].create = open_library(row, one->back);
        one->kinds[call->library].oldest = open_library(row, one->back + 1) == NULL;
        one->kinds[call->library].tried = true;
    }
    *out_create = one->kinds[call->library].create;
    return *out_create != NULL
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install it", name_of(call),
                               "there is no %s.so.%d to .%d", row->stem, row->first, row->last);
}

/* --- a program -------------------------------------------------------------------------------- */

/* What the compiler finds by a relative path lies where the program's current directory was. */
static kiln_status enter_dir(const kn_replay_call *call, kiln_diag *diag)
{
    const kn_replay_program *program = &call->program;
    char *path = kn_scratch_path(program->tree, program->recorded.dir, ".");
    const bool entered = path != NULL && (chdir(path) == 0 || chdir(program->tree) == 0);
    free(path);
    return entered ? KILN_OK
                   : kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, name_of(call),
                                   "its directory cannot be entered");
}

static int create_program(create_fn *create, const kn_replay_program *from, void **handle)
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
    const int code = create(handle, from->texts[0], from->name, (int)count, split, split + count);
    free((void *)split);
    return code;
}

static bool complete_program(kn_rtc_program *program, const kn_replay_call *call)
{
    const kn_recorded *from = &call->program.recorded;
    bool good = kn_rtc_program_set_options(program, (int)from->option_count,
                                           (const char *const *)call->options);
    for (size_t i = 0; good && i < from->entry_count; i++) {
        good = kn_rtc_program_add_expression(program, from->entries[i]);
    }
    return good;
}

static void add_log(kn_rtc_program *program, kiln_diag *diag)
{
    size_t size = 0;
    kn_rtc_library *library = program->library;
    char *log = kn_rtc_call_size(library, program, KN_RTC_LOG, &size) == 0
                    ? (char *)calloc(1, size + 1)
                    : NULL;
    if (log != NULL && kn_rtc_call_bytes(library, program, KN_RTC_LOG, log) == 0) {
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

static kiln_status make_program(create_fn *create, const kn_replay_call *call,
                                const kiln_key *wanted, kn_rtc_made *made, kiln_diag *diag)
{
    void *handle = NULL;
    made->code = create_program(create, &call->program, &handle);
    if (made->code != 0) {
        return judge_outcome(call, made, diag);
    }
    kn_rtc_program *program = kn_rtc_program_of(handle);
    if (program == NULL) { /* the real library's, which the process keeps */
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "run kiln doctor for details", name_of(call),
                             "kiln's libraries do not stand under the worker's compiler");
    }
    kiln_status status = KILN_OK;
    if (complete_program(program, call)) {
        kn_rtc_program_make(program, wanted, made);
        status = judge_outcome(call, made, diag);
    } else {
        status = kn_no_memory(diag, "replaying a program's calls");
    }
    if (status == KILN_E_COMPILE) {
        add_log(program, diag);
    }
    (void)kn_rtc_program_destroy(program);
    return status;
}

static kiln_status replay_call(worker *one, const kn_replay_question *question,
                               kn_replay_answer *answer)
{
    kn_replay_call call;
    create_fn *create = NULL;
    kn_rtc_made made = {.outcome = KN_OUTCOME_NONE};
    kiln_diag *diag = &answer->diag;
    kiln_status status =
        kn_replay_call_init(&call, one->recording, question->index, question->target, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = find_library(one, &call, &create, diag);
    if (status == KILN_OK) {
        status = enter_dir(&call, diag);
    }
    if (status == KILN_OK) {
        answer->oldest = one->kinds[call.library].oldest;
        const bool only = one->back == 0 && answer->oldest;
        status = make_program(create, &call, question->is_bound && !only ? &question->wanted : NULL,
                              &made, diag);
    }
    kn_replay_call_deinit(&call);
    answer->other = made.outcome == KN_OUTCOME_REFUSED;
    answer->compiled = made.outcome == KN_OUTCOME_STORED;
    answer->keys[0] = made.key;
    answer->key_count = 1;
    answer->compile_ns = answer->compiled ? made.took_ns : 0;
    answer->saved_ns = made.saved_ns;
    return status;
}

/* --- a compile that is no call ---------------------------------------------------------------- */

static kiln_status open_runtime(worker *one, const char *target, kiln_diag *diag)
{
    char backend[KILN_DEVICE_TEXT];
    kiln_runtime_options options = {0};
    const size_t length = strcspn(target, ":");
    const kiln_status status = kiln_runtime_options_init(&options, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_text_putf(backend, sizeof(backend), "%.*s", (int)length, target);
    options.backend = backend;
    options.device = target[length] == ':' && target[length + 1] != '\0' ? target : NULL;
    options.strict = true;
    options.compile_only = true;
    options.cache = kn_session_cache();
    return kiln_runtime_create(&options, &one->runtime, diag);
}

static kiln_status replay_compile(worker *one, const kn_replay_question *question,
                                  kn_replay_answer *answer)
{
    if (one->runtime == NULL) {
        const kiln_status status = open_runtime(one, question->target, &answer->diag);
        answer->lacks_runtime = status != KILN_OK;
        if (status != KILN_OK) {
            return status;
        }
    }
    return kn_replay_compile(one->recording, question->index, one->runtime, question->target,
                             answer, &answer->diag);
}

/* --- questions -------------------------------------------------------------------------------- */

static bool answer_question(worker *one, const kn_replay_question *question, FILE *out)
{
    kn_replay_answer answer = {.diag = KILN_DIAG_INIT};
    const kiln_recorded_use *use = kiln_recording_use(one->recording, question->index);
    answer.diag.status = use == NULL || use->way == KILN_REPLAY_CALL
                             ? replay_call(one, question, &answer)
                             : replay_compile(one, question, &answer);
    const uint64_t failures =
        kn_session_cache() != NULL
            ? kiln_cache_counter(kn_session_cache(), KILN_COUNTER_PUT_FAILURES)
            : 0;
    answer.put_failures = failures - one->put_failures;
    one->put_failures = failures;
    const size_t length = answer.diag.log_length;
    const bool written = fwrite(&answer, sizeof(answer), 1, out) == 1 &&
                         (length == 0 || fwrite(answer.diag.log, length, 1, out) == 1) &&
                         fflush(out) == 0;
    kiln_diag_clear(&answer.diag);
    return written;
}

KILN_API kn_interpose_replay_fn kn_interpose_replay;
bool kn_interpose_replay(const char *recording, int back, const char *scratch, FILE *in, FILE *out)
{
    worker one = {.back = back};
    kn_replay_question question;
    bool good = kiln_recording_open(recording, &one.recording, NULL) == KILN_OK;
    if (good) {
        kn_replay_place(one.recording, scratch);
    }
    while (good && fread(&question, sizeof(question), 1, in) == 1) {
        good = answer_question(&one, &question, out);
    }
    kiln_runtime_destroy(one.runtime);
    kiln_recording_close(one.recording);
    return good;
}

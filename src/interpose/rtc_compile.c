/* See rtc_compile.h: a frontend of the engine. */
#include "interpose/rtc_compile.h"

#include <string.h>

#include "base/text.h"
#include "interpose/room.h"
#include "interpose/rtc_key.h"
#include "interpose/session.h"
#include "record/recorder.h"
#include "store/format/blob.h"

static const char no_room[] = "the program has no free file descriptors";

typedef struct compile_call {
    kn_rtc_program *program;
    kn_rtc_identity identity;
    kn_rtc_key key;
    bool apart; /* in a table of descriptors of its own */
    int code;
    kn_rtc_made *made;
} compile_call;

static void note_job(const compile_call *call, const kn_job *job)
{
    call->made->outcome = job->outcome;
    call->made->key = job->key;
    call->made->took_ns = job->took_ns;
    call->made->saved_ns = kn_job_saved_ns(job);
    kn_text_put(call->made->reason, sizeof(call->made->reason),
                job->reason != NULL ? job->reason : "");
}

/* --- past the cache --------------------------------------------------------------------------- */

/* From now on the real program answers. */
static int compile_plainly(kn_rtc_program *program)
{
    program->plain = true;
    const int code = kn_rtc_program_make_real(program);
    return code != 0 ? code : kn_rtc_program_compile_real(program, false);
}

static void compile_apart(void *user)
{
    compile_call *call = (compile_call *)user;
    call->code = compile_plainly(call->program);
}

static void compile_past_cache(void *user, kn_output *output, kiln_diag *diag)
{
    compile_call *call = (compile_call *)user;
    (void)diag;
    if (call->apart) {
        kn_room_run(compile_apart, call);
    } else {
        compile_apart(call);
    }
    output->outcome = call->code == 0 ? KN_OUTCOME_PRIVATE : KN_OUTCOME_FAILED;
}

static const kn_frontend past_cache = {.compile = compile_past_cache,
                                       .report = kn_session_report_job};

static int bypass_cache(compile_call *call, const kn_request *request)
{
    kn_job job;
    (void)kn_job_run(&job, &past_cache, request, call);
    note_job(call, &job);
    kn_job_deinit(&job);
    return call->code;
}

/* --- through the cache ------------------------------------------------------------------------ */

/* Why what the compile gave is this caller's alone; NULL if it may be stored. */
static const char *find_refusal(const compile_call *call, const kiln_blob *blob)
{
    const kn_rtc_kind *kind = call->program->library->kind;
    const kn_span payload = kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob));
    kn_rtc_answer answer;
    const char *why = NULL;
    if (!kn_rtc_key_fits(&call->key, call->program, payload)) {
        return "the code holds the directory of its source's name";
    }
    if (kind->refuse != NULL) {
        why = kn_rtc_answer_parse(payload, &answer) == KILN_OK
                  ? kind->refuse(&call->key.options, &answer)
                  : "its result cannot be read";
        kn_rtc_answer_deinit(&answer);
    }
    return why;
}

static void compile_program(void *user, kn_output *output, kiln_diag *diag)
{
    compile_call *call = (compile_call *)user;
    kn_rtc_program *program = call->program;
    call->code = kn_rtc_program_make_real(program);
    if (call->code == 0) {
        call->code = kn_rtc_program_compile_real(program, true);
    }
    program->real_compiled = call->code == 0;
    if (call->code != 0) {
        (void)kiln_diag_set(diag, KILN_E_COMPILE, NULL, kn_rtc_program_name(program),
                            "%s returned %d", program->library->kind->name, call->code);
        output->outcome = KN_OUTCOME_FAILED;
        return;
    }
    output->reason = kn_rtc_program_gather(program, &output->blob, diag) == KILN_OK
                         ? find_refusal(call, output->blob)
                         : NULL;
    output->outcome = output->reason == NULL ? KN_OUTCOME_STORED : KN_OUTCOME_PRIVATE;
}

static kn_change find_change(void *user)
{
    const compile_call *call = (const compile_call *)user;
    const kn_rtc_library *library = call->program->library;
    if (call->key.closure != NULL && !kn_closure_still_true(call->key.closure)) {
        return KN_CHANGED_HEADER;
    }
    return library->kind->identity_holds(library, &call->identity) ? KN_UNCHANGED
                                                                   : KN_CHANGED_LIBRARY;
}

static kn_loaded load_answer(void *user, kiln_blob *blob, kiln_diag *diag)
{
    const compile_call *call = (const compile_call *)user;
    (void)diag;
    return kn_rtc_program_take(call->program, kiln_blob_retain(blob)) ? KN_LOADED : KN_LOAD_UNSOUND;
}

static void keep_headers(void *user)
{
    const compile_call *call = (const compile_call *)user;
    if (call->key.closure != NULL) {
        kn_closure_save(call->key.closure);
    }
}

/* What the program was made of, for the cache's recording. */
static void record_program(void *user, kn_draft *draft, char *target, size_t size)
{
    const compile_call *call = (const compile_call *)user;
    const kn_rtc_program *program = call->program;
    const kn_rtc_kind *kind = program->library->kind;
    kn_text_putf(target, size, "%s:%s", kind->record_prefix, call->key.options.arch);
    draft->program.frontend = kind->frontend;
    draft->program.flags = program->library->recorded;
    draft->program.language = kind->language;
    draft->program.name = program->name;
    draft->program.options = (const char *const *)program->options;
    draft->program.option_count = program->option_count;
    draft->program.entries = (const char *const *)program->expressions;
    draft->program.entry_count = program->expression_count;
    kn_draft_add_text(draft, program->text, strlen(program->text), "", program->headers,
                      program->header_count);
    kn_draft_add_closure(draft, call->key.closure);
}

static const kn_frontend through_cache = {.compile = compile_program,
                                          .still_true = find_change,
                                          .load = load_answer,
                                          .keep = keep_headers,
                                          .record = record_program,
                                          .report = kn_session_report_job,
                                          .loads_output = true,
                                          .own_failures = true};

/* Where the result is not an entry, the real program has it. */
static int ask_cache(compile_call *call, const kn_request *request)
{
    kn_job job;
    const kn_outcome outcome = kn_job_run(&job, &through_cache, request, call);
    const bool ran = job.ran;
    note_job(call, &job);
    kn_job_deinit(&job);
    if (outcome == KN_OUTCOME_HIT || outcome == KN_OUTCOME_STORED) {
        return 0;
    }
    call->program->plain = true;
    return ran ? call->code : compile_plainly(call->program);
}

static bool is_wanted(const kiln_key *wanted, const kiln_recipe *recipe)
{
    const kiln_key key = kiln_recipe_key(recipe);
    return memcmp(&key, wanted, sizeof(key)) == 0;
}

void kn_rtc_program_make(kn_rtc_program *program, const kiln_key *wanted, kn_rtc_made *out)
{
    kn_request request = {.cache = kn_session_cache(),
                          .what = program->library->kind->what,
                          .name = kn_rtc_program_name(program)};
    compile_call call = {.program = program, .made = out};
    kiln_diag diag = KILN_DIAG_INIT;
    *out = (kn_rtc_made){.outcome = KN_OUTCOME_NONE};
    kn_rtc_program_forget(program);
    if (request.cache == NULL || program->plain) {
        out->code = compile_plainly(program);
        return;
    }
    call.apart = kn_room_is_short();
    if (call.apart) {
        request.bypass = no_room;
        out->code = bypass_cache(&call, &request);
        return;
    }
    if (kn_rtc_library_identify(program->library, &call.identity, &diag) != KILN_OK ||
        kn_rtc_key_init(&call.key, request.cache, program, &call.identity, &diag) != KILN_OK) {
        kiln_diag_clear(&diag);
        out->code = compile_plainly(program);
        return;
    }
    request.recipe = call.key.recipe;
    request.bypass = call.key.bypass[0] != '\0' ? call.key.bypass : NULL;
    if (request.bypass != NULL) {
        out->code = bypass_cache(&call, &request);
    } else if (wanted != NULL && !is_wanted(wanted, request.recipe)) {
        out->outcome = KN_OUTCOME_REFUSED;
    } else {
        out->code = ask_cache(&call, &request);
    }
    kn_rtc_key_deinit(&call.key);
}

int kn_rtc_program_compile(kn_rtc_program *program)
{
    kn_rtc_made made;
    kn_rtc_program_make(program, NULL, &made);
    return made.code;
}

/* See rtc_compile.h. */
#include "interpose/rtc_compile.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "interpose/room.h"
#include "interpose/rtc_key.h"
#include "interpose/session.h"
#include "key/recipe.h"
#include "record/recorder.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "sys/clock.h"

/* --- the real compile ------------------------------------------------------------------------- */

/* From now on the real program answers. */
static int compile_plainly(kn_rtc_program *program)
{
    program->plain = true;
    const int code = kn_rtc_program_make_real(program);
    return code != 0 ? code : kn_rtc_program_compile_real(program, false);
}

typedef struct compile_call {
    kn_rtc_program *program;
    kn_rtc_key *key;
    const kn_rtc_identity *identity;
    bool ran;
    int code;
    uint64_t took_ns;
    const char *unkept; /* why the result is this caller's alone */
} compile_call;

static const char *find_change(const compile_call *call)
{
    if (call->key->closure != NULL && !kn_closure_still_true(call->key->closure)) {
        return "a header changed during the compile";
    }
    const kn_rtc_library *library = call->program->library;
    return library->kind->identity_holds(library, call->identity)
               ? NULL
               : "the compiler was replaced while this process was running";
}

/* Why what the compile gave is this caller's alone; NULL if it may be stored. */
static const char *find_refusal(const compile_call *call, const kiln_blob *blob)
{
    const kn_rtc_kind *kind = call->program->library->kind;
    const kn_span payload = kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob));
    kn_rtc_answer answer;
    const char *why = NULL;
    if (!kn_rtc_key_fits(call->key, call->program, payload)) {
        return "the code holds the directory of its source's name";
    }
    if (kind->refuse != NULL) {
        why = kn_rtc_answer_parse(payload, &answer) == KILN_OK
                  ? kind->refuse(&call->key->options, &answer)
                  : "its result cannot be read";
        kn_rtc_answer_deinit(&answer);
    }
    return why;
}

static kiln_status compile_for_store(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    compile_call *call = (compile_call *)user;
    kn_rtc_program *program = call->program;
    const uint64_t start = kn_clock_now();
    call->ran = true;
    call->code = kn_rtc_program_make_real(program);
    if (call->code == 0) {
        call->code = kn_rtc_program_compile_real(program, true);
    }
    call->took_ns = kn_clock_now() - start;
    program->real_compiled = call->code == 0;
    if (call->code != 0) {
        return kiln_diag_set(diag, KILN_E_COMPILE, NULL, kn_rtc_program_name(program),
                             "%s returned %d", program->library->kind->name, call->code);
    }
    call->unkept = find_change(call);
    if (call->unkept != NULL) {
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, kn_rtc_program_name(program), "%s",
                             call->unkept);
    }
    kiln_blob *blob = NULL;
    const kiln_status status = kn_rtc_program_gather(program, &blob, diag);
    call->unkept = status == KILN_OK ? find_refusal(call, blob) : NULL;
    if (call->unkept != NULL) {
        kiln_blob_release(blob);
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, kn_rtc_program_name(program), "%s",
                             call->unkept);
    }
    *out_blob = status == KILN_OK ? blob : NULL;
    return status;
}

/* --- one compile ------------------------------------------------------------------------------ */

static void report_compile(const kn_rtc_program *program, const char *origin, const char *reason,
                           uint64_t took_ns, uint64_t saved_ns, const kiln_key *key)
{
    kn_session_report(&(kn_session_event){.what = program->library->kind->what,
                                          .name = kn_rtc_program_name(program),
                                          .origin = origin,
                                          .reason = reason,
                                          .took_ns = took_ns,
                                          .saved_ns = saved_ns,
                                          .key = key});
}

typedef struct plain_call {
    kn_rtc_program *program;
    int code;
} plain_call;

static void compile_apart(void *user)
{
    plain_call *call = (plain_call *)user;
    call->code = compile_plainly(call->program);
}

/* `apart`: in a table of descriptors of its own. */
static int compile_past_cache(kn_rtc_program *program, kiln_cache *cache, const char *reason,
                              bool apart)
{
    const uint64_t start = kn_clock_now();
    plain_call call = {.program = program};
    if (apart) {
        kn_room_run(compile_apart, &call);
    } else {
        compile_apart(&call);
    }
    const int code = call.code;
    kiln_cache_count_bypass(cache, kn_rtc_program_name(program), reason);
    report_compile(program, "bypassed", reason, kn_clock_now() - start, 0, NULL);
    return code;
}

/* The compile ran here and its result is not an entry: the real program has it. */
static int keep_real(const compile_call *call, kiln_cache *cache)
{
    call->program->plain = true;
    if (call->code != 0) {
        report_compile(call->program, "failed", NULL, call->took_ns, 0, NULL);
        return call->code;
    }
    const char *reason = call->unkept != NULL ? call->unkept : "its result could not be kept";
    kiln_cache_count_bypass(cache, kn_rtc_program_name(call->program), reason);
    report_compile(call->program, "bypassed", reason, call->took_ns, 0, NULL);
    return 0;
}

/* What the program was made of, for the cache's recording. */
static void record_program(const kn_rtc_program *program, kiln_cache *cache, const kn_rtc_key *key,
                           uint64_t compile_ns)
{
    const kn_rtc_kind *kind = program->library->kind;
    char target[64];
    kn_draft draft;
    const kiln_key name = kiln_recipe_key(key->recipe);
    if (!kn_draft_begin(&draft, cache, &name)) {
        return;
    }
    kn_text_putf(target, sizeof(target), "%s:%s", kind->record_prefix, key->options.arch);
    draft.program.door = kind->door;
    draft.program.flags = program->library->recorded;
    draft.program.language = kind->language;
    draft.program.name = program->name;
    draft.program.options = (const char *const *)program->options;
    draft.program.option_count = program->option_count;
    draft.program.entries = (const char *const *)program->expressions;
    draft.program.entry_count = program->expression_count;
    kn_draft_add_text(&draft, program->text, strlen(program->text), "", program->headers,
                      program->header_count);
    kn_draft_add_closure(&draft, key->closure);
    kn_draft_end(&draft, target, compile_ns);
}

static int compile_through(kn_rtc_program *program, kiln_cache *cache, kn_rtc_key *key,
                           const kn_rtc_identity *identity)
{
    compile_call call = {.program = program, .key = key, .identity = identity};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    const uint64_t start = kn_clock_now();
    const kiln_status status = kiln_cache_get_or_compile(cache, key->recipe, compile_for_store,
                                                         &call, &blob, &origin, &diag);
    kiln_diag_clear(&diag);
    if (status != KILN_OK) {
        /* Another's compile failed, or memory is short: this caller gets the compiler's own answer.
         */
        return call.ran ? keep_real(&call, cache) : compile_plainly(program);
    }
    if (key->closure != NULL) {
        kn_closure_save(key->closure);
    }
    const uint64_t compile_ns = atomic_load(&blob->compile_ns);
    if (!kn_rtc_program_take(program, blob)) {
        const kiln_key bad = kiln_recipe_key(key->recipe);
        kn_ignore(kiln_cache_remove(cache, &bad, NULL)); /* whole, and not a result of this one */
        return call.ran ? keep_real(&call, cache)
                        : compile_past_cache(program, cache,
                                             "its entry is not a result of this compiler", false);
    }
    record_program(program, cache, key, compile_ns);
    const kiln_key own = kiln_recipe_key(key->recipe);
    report_compile(program, kiln_origin_name(origin), NULL, kn_clock_now() - start,
                   call.ran ? 0 : compile_ns, &own);
    return 0;
}

void kn_rtc_count_bypass(const kn_rtc_library *library, const char *name, const char *reason,
                         uint64_t took_ns)
{
    kiln_cache *cache = kn_session_cache();
    if (cache != NULL) {
        kn_cache_count_bypass(cache, name, reason, took_ns);
    }
    kn_session_report(&(kn_session_event){.what = library->kind->what,
                                          .name = name,
                                          .origin = "bypassed",
                                          .reason = reason,
                                          .took_ns = took_ns});
}

int kn_rtc_program_compile(kn_rtc_program *program)
{
    kiln_cache *cache = kn_session_cache();
    kn_rtc_identity identity;
    kn_rtc_key key;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_rtc_program_forget(program);
    if (cache != NULL && !program->plain && kn_room_is_short()) {
        return compile_past_cache(program, cache, "the program has no free file descriptors", true);
    }
    if (cache == NULL || program->plain ||
        kn_rtc_library_identify(program->library, &identity, &diag) != KILN_OK ||
        kn_rtc_key_init(&key, cache, program, &identity, &diag) != KILN_OK) {
        kiln_diag_clear(&diag);
        return compile_plainly(program);
    }
    const int code = key.bypass[0] != '\0' ? compile_past_cache(program, cache, key.bypass, false)
                                           : compile_through(program, cache, &key, &identity);
    kn_rtc_key_deinit(&key);
    return code;
}

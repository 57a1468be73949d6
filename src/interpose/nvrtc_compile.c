/* See nvrtc_compile.h. */
#include "interpose/nvrtc_compile.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "interpose/nvrtc_key.h"
#include "interpose/session.h"
#include "key/recipe.h"
#include "record/recorder.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "sys/clock.h"

#define INTERNAL_ERROR 11         /* NVRTC_ERROR_INTERNAL_ERROR */
#define FACTS_STAGE "nvrtc.facts" /* true on every machine: packs have it */
#define FACTS_REVISION 1u

/* --- identity, once a process and library ----------------------------------------------------- */

static struct {
    kn_mutex lock;
    _Atomic int known; /* major version; 0: none */
    kn_nvrtc_identity identity;
} memory = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

static kiln_status find_identity(const kn_nvrtc_real *library, kn_nvrtc_identity *out,
                                 kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_mutex_lock(&memory.lock);
    if (atomic_load(&memory.known) != library->major) {
        status = kn_nvrtc_identity_find(library, &memory.identity, diag);
        atomic_store(&memory.known, status == KILN_OK ? library->major : 0);
    }
    *out = memory.identity;
    kn_mutex_unlock(&memory.lock);
    return status;
}

/* --- the real compile ------------------------------------------------------------------------- */

static const char *name_of(const kn_nvrtc_program *program)
{
    return program->name != NULL ? program->name : KN_NVRTC_UNNAMED;
}

/* From now on the real program answers. */
static nvrtcResult compile_plainly(kn_nvrtc_program *program)
{
    program->plain = true;
    const nvrtcResult code = kn_nvrtc_program_make_real(program);
    return code != 0 ? code : kn_nvrtc_program_compile_real(program, false);
}

typedef struct compile_call {
    kn_nvrtc_program *program;
    kn_nvrtc_key *key;
    const kn_nvrtc_identity *identity;
    bool ran;
    nvrtcResult code;
    uint64_t took_ns;
    const char *unkept; /* why the result is this caller's alone */
} compile_call;

static const char *find_change(const compile_call *call)
{
    if (call->key->closure != NULL && !kn_closure_still_true(call->key->closure)) {
        return "a header changed during the compile";
    }
    return kn_nvrtc_identity_holds(call->identity, call->program->library->open())
               ? NULL
               : "NVRTC was replaced while this process was running";
}

static kiln_status compile_for_store(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    compile_call *call = (compile_call *)user;
    kn_nvrtc_program *program = call->program;
    const uint64_t start = kn_clock_now();
    call->ran = true;
    call->code = kn_nvrtc_program_make_real(program);
    if (call->code == 0) {
        call->code = kn_nvrtc_program_compile_real(program, true);
    }
    call->took_ns = kn_clock_now() - start;
    program->real_compiled = call->code == 0;
    if (call->code != 0) {
        return kiln_diag_set(diag, KILN_E_COMPILE, NULL, name_of(program), "NVRTC returned %d",
                             call->code);
    }
    call->unkept = find_change(call);
    if (call->unkept != NULL) {
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, name_of(program), "%s", call->unkept);
    }
    kiln_blob *blob = NULL;
    const kiln_status status = kn_nvrtc_program_gather(program, &blob, diag);
    if (status == KILN_OK &&
        !kn_nvrtc_key_fits(call->key, program,
                           kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)))) {
        kiln_blob_release(blob);
        call->unkept = "the code holds the directory of its source's name";
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, name_of(program), "%s", call->unkept);
    }
    *out_blob = status == KILN_OK ? blob : NULL;
    return status;
}

/* --- one compile ------------------------------------------------------------------------------ */

static void report_compile(const kn_nvrtc_program *program, const char *origin, const char *reason,
                           uint64_t took_ns, uint64_t saved_ns, const kiln_key *key)
{
    kn_session_report(&(kn_session_event){.what = "nvrtc",
                                          .name = name_of(program),
                                          .origin = origin,
                                          .reason = reason,
                                          .took_ns = took_ns,
                                          .saved_ns = saved_ns,
                                          .key = key});
}

static nvrtcResult compile_past_cache(kn_nvrtc_program *program, kiln_cache *cache,
                                      const char *reason)
{
    const uint64_t start = kn_clock_now();
    const nvrtcResult code = compile_plainly(program);
    kiln_cache_count_bypass(cache, name_of(program), reason);
    report_compile(program, "bypassed", reason, kn_clock_now() - start, 0, NULL);
    return code;
}

/* The compile ran here and its result is not an entry: the real program has it. */
static nvrtcResult keep_real(const compile_call *call, kiln_cache *cache)
{
    call->program->plain = true;
    if (call->code != 0) {
        report_compile(call->program, "failed", NULL, call->took_ns, 0, NULL);
        return call->code;
    }
    const char *reason = call->unkept != NULL ? call->unkept : "its result could not be kept";
    kiln_cache_count_bypass(cache, name_of(call->program), reason);
    report_compile(call->program, "bypassed", reason, call->took_ns, 0, NULL);
    return 0;
}

/* What the program was made of, for the cache's recording. The entry's directory is called after
 * the architecture that the options name. */
static void record_program(const kn_nvrtc_program *program, kiln_cache *cache,
                           const kn_nvrtc_key *key, uint64_t compile_ns)
{
    static const char prefix[] = "cuda-";
    char target[64];
    kn_draft draft;
    const kiln_key name = kiln_recipe_key(key->recipe);
    if (!kn_draft_begin(&draft, cache, &name)) {
        return;
    }
    const char *arch = kn_recipe_target(key->recipe) + strlen(prefix);
    kn_text_putf(target, sizeof(target), "cuda:%s", strcmp(arch, "default") != 0 ? arch : "");
    draft.program.door = KN_DOOR_NVRTC;
    draft.program.language = KILN_LANG_CUDA;
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

static nvrtcResult compile_through(kn_nvrtc_program *program, kiln_cache *cache, kn_nvrtc_key *key,
                                   const kn_nvrtc_identity *identity)
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
        /* Another's compile failed, or memory is short: this caller gets NVRTC's own answer. */
        return call.ran ? keep_real(&call, cache) : compile_plainly(program);
    }
    if (key->closure != NULL) {
        kn_closure_save(key->closure);
    }
    const uint64_t compile_ns = atomic_load(&blob->compile_ns);
    if (!kn_nvrtc_program_take(program, blob)) {
        const kiln_key bad = kiln_recipe_key(key->recipe);
        kn_ignore(kiln_cache_remove(cache, &bad, NULL)); /* whole, and not a result of this one */
        return call.ran ? keep_real(&call, cache)
                        : compile_past_cache(program, cache, "its entry is not a result of NVRTC");
    }
    record_program(program, cache, key, compile_ns);
    const kiln_key own = kiln_recipe_key(key->recipe);
    report_compile(program, kiln_origin_name(origin), NULL, kn_clock_now() - start,
                   call.ran ? 0 : compile_ns, &own);
    return 0;
}

void kn_nvrtc_count_private(const kn_nvrtc_program *program)
{
    static const char reason[] = "__nvrtcCPEx: the source is encrypted";
    static const kn_nvrtc_program unknown = {.name = NULL};
    const kn_nvrtc_program *named = program != NULL ? program : &unknown;
    kiln_cache *cache = kn_session_cache();
    if (cache != NULL) {
        kiln_cache_count_bypass(cache, name_of(named), reason);
    }
    report_compile(named, "bypassed", reason, 0, 0, NULL);
}

nvrtcResult kn_nvrtc_compile(kn_nvrtc_program *program)
{
    kiln_cache *cache = kn_session_cache();
    kn_nvrtc_identity identity;
    kn_nvrtc_key key;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_nvrtc_program_forget(program);
    if (cache == NULL || program->plain ||
        find_identity(program->library, &identity, &diag) != KILN_OK ||
        kn_nvrtc_key_init(&key, cache, program, &identity, &diag) != KILN_OK) {
        kiln_diag_clear(&diag);
        return compile_plainly(program);
    }
    const nvrtcResult code = key.bypass[0] != '\0'
                                 ? compile_past_cache(program, cache, key.bypass)
                                 : compile_through(program, cache, &key, &identity);
    kn_nvrtc_key_deinit(&key);
    return code;
}

/* --- version and architectures ---------------------------------------------------------------- */

static nvrtcResult ask_facts(const kn_nvrtc_real *library, kn_nvrtc_facts *out)
{
    const kn_nvrtc_table *real = library->open();
    if (real == NULL || real->nvrtcGetNumSupportedArchs == NULL ||
        real->nvrtcGetSupportedArchs == NULL) {
        return INTERNAL_ERROR;
    }
    memset(out, 0, sizeof(*out));
    nvrtcResult code = real->nvrtcVersion(&out->major, &out->minor);
    if (code == 0) {
        code = real->nvrtcGetNumSupportedArchs(&out->count);
    }
    if (code == 0 && (out->count < 0 || out->count > KN_NVRTC_ARCHS_MAX)) {
        code = INTERNAL_ERROR;
    }
    return code == 0 ? real->nvrtcGetSupportedArchs(out->archs) : code;
}

static kiln_status make_facts_recipe(const kn_nvrtc_identity *identity, kiln_recipe **out_recipe)
{
    kiln_recipe *recipe = NULL;
    kiln_status status = kiln_recipe_create(FACTS_STAGE, FACTS_REVISION, &recipe, NULL);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(recipe, "portable", NULL);
    }
    if (status == KILN_OK) {
        status =
            kiln_recipe_add_text(recipe, "nvrtc", identity->nvrtc, strlen(identity->nvrtc), NULL);
    }
    if (status != KILN_OK) {
        kiln_recipe_destroy(recipe);
        recipe = NULL;
    }
    *out_recipe = recipe;
    return status;
}

static bool read_facts(const kiln_blob *blob, kn_nvrtc_facts *out)
{
    const size_t size = kiln_blob_size(blob);
    const unsigned char *bytes = (const unsigned char *)kiln_blob_data(blob);
    memset(out, 0, sizeof(*out));
    if (size < 12 || size % 4 != 0 || (size - 12) / 4 > KN_NVRTC_ARCHS_MAX) {
        return false;
    }
    out->major = (int)kn_get_u32(bytes);
    out->minor = (int)kn_get_u32(bytes + 4);
    out->count = (int)kn_get_u32(bytes + 8);
    for (size_t i = 0; i < (size - 12) / 4; i++) {
        out->archs[i] = (int)kn_get_u32(bytes + 12 + 4 * i);
    }
    return out->count >= 0 && (size_t)out->count == (size - 12) / 4;
}

static void keep_facts(kiln_cache *cache, const kiln_recipe *recipe, const kn_nvrtc_facts *facts)
{
    unsigned char bytes[12 + 4 * KN_NVRTC_ARCHS_MAX];
    kiln_blob *blob = NULL;
    kn_put_u32(bytes, (uint32_t)facts->major);
    kn_put_u32(bytes + 4, (uint32_t)facts->minor);
    kn_put_u32(bytes + 8, (uint32_t)facts->count);
    for (int i = 0; i < facts->count; i++) {
        kn_put_u32(bytes + 12 + 4 * i, (uint32_t)facts->archs[i]);
    }
    if (kiln_blob_create(bytes, 12 + 4 * (size_t)facts->count, NULL, 0, &blob, NULL) == KILN_OK) {
        kn_ignore(kiln_cache_put(cache, recipe, blob, 0, NULL)); /* the next process asks again */
        kiln_blob_release(blob);
    }
}

nvrtcResult kn_nvrtc_facts_get(const kn_nvrtc_real *library, kn_nvrtc_facts *out_facts)
{
    kiln_cache *cache = kn_session_cache();
    kn_nvrtc_identity identity;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    if (cache == NULL || find_identity(library, &identity, NULL) != KILN_OK ||
        make_facts_recipe(&identity, &recipe) != KILN_OK) {
        return ask_facts(library, out_facts);
    }
    const kiln_key key = kiln_recipe_key(recipe);
    bool found = kn_cache_get_note(cache, &key, "portable", &blob) == KILN_OK;
    if (found) {
        found = read_facts(blob, out_facts);
        kiln_blob_release(blob);
    }
    nvrtcResult code = found ? 0 : ask_facts(library, out_facts);
    if (!found && code == 0 && kn_nvrtc_identity_holds(&identity, library->open())) {
        keep_facts(cache, recipe, out_facts);
    }
    kiln_recipe_destroy(recipe);
    return code;
}

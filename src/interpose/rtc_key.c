/* See rtc_key.h. The recipe is the drop-in's in spirit and not in form: here the options are the
 * caller's own, one for one, so that the architecture is one of them and may be missing. */
#include "interpose/rtc_key.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "headers/include_scan.h"
#include "interpose/session.h"
#include "key/recipe.h"
#include "sys/file.h"
#include "sys/fpstate.h"

/* --- recipe ----------------------------------------------------------------------------------- */

static void add_options(kn_rtc_key *key)
{
    for (size_t i = 0; i < key->options.rest_count; i++) {
        const char *word = kn_include_scan_words(kn_span_of_text(key->options.rest[i]));
        if (word != NULL) {
            kn_text_putf(key->bypass, sizeof(key->bypass), "%s in an option", word);
        }
        kn_recipe_add_string(key->recipe, "option", key->options.rest[i]);
    }
}

static void add_identity(kn_rtc_key *key, const kn_rtc_identity *identity)
{
    for (size_t i = 0; i < KN_RTC_IDENTITY_FIELDS; i++) {
        if (identity->fields[i].field != NULL) {
            kn_recipe_add_string(key->recipe, identity->fields[i].field, identity->fields[i].text);
        }
    }
}

/* To NVRTC the source is a header of its own name: `#if __has_include("t.cu")` in t.cu is true. A
 * text that has the name in it counts as one that asks. */
static bool asks_for_itself(const kn_rtc_key *key, const kn_rtc_program *program, const char *name)
{
    bool asks = strstr(program->text, name) != NULL || kn_closure_asks_for(key->closure, name);
    for (size_t i = 0; i < program->header_count && !asks; i++) {
        asks = strstr(program->headers[i].text, name) != NULL;
    }
    return asks;
}

/* The name as the caller gave it. The directory of a temporary source is new in each process, and
 * most code cannot see it: a text that mentions __FILE__ or its like can, and debug information.
 * Where only headers mention it, their macros could; the length of the directory is keyed for what
 * measures it, and code that holds it is not stored (kn_rtc_key_fits). hipRTC makes up a name for a
 * source that has none, which no log of a named one may show. */
static void add_name(kn_rtc_key *key, const kn_rtc_program *program, bool names)
{
    const char *name = kn_rtc_program_name(program);
    if (names || asks_for_itself(key, program, name) || name[0] == '\0' ||
        kn_closure_source_names(key->closure)) {
        kn_recipe_add_string(key->recipe, "name.whole", name);
        return;
    }
    key->watch_name = kn_closure_names_matter(key->closure);
    if (key->watch_name) {
        kiln_recipe_add_u64(key->recipe, "name.length", strlen(name));
    }
}

static kiln_status add_headers(kn_rtc_key *key, kiln_cache *cache, const kn_rtc_program *program,
                               kiln_diag *diag)
{
    const kn_rtc_options *options = &key->options;
    const bool names = options->names || options->whole_name;
    const kn_closure_request request = {
        .source = &key->source,
        .dir = key->dir,
        .rules = program->library->kind->include_rules,
        .effects =
            (options->not_beside ? KILN_OPTION_NOT_BESIDE : 0u) | (names ? KILN_OPTION_NAMES : 0u),
        .cache = cache,
        .first = key->recipe,
        .list_vouches = true,
        .memo = kn_session_headers(),
    };
    kiln_status status = kn_closure_find(&request, &key->closure, diag);
    if (status == KILN_OK && key->closure->bypass) {
        kn_text_put(key->bypass, sizeof(key->bypass), key->closure->reason);
        return KILN_OK;
    }
    if (status == KILN_OK) {
        status = kn_closure_add_to(key->closure, key->recipe, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    add_name(key, program, names);
    return kiln_recipe_status(key->recipe, diag);
}

/* PTX has a string as a list of its bytes in decimal. */
static void append_decimal(kn_strbuf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        kn_strbuf_printf(out, "%u, ", (unsigned)(unsigned char)*text);
    }
}

static bool holds_text(kn_span bytes, const char *text)
{
    return text[0] != '\0' && memmem(bytes.data, bytes.length, text, strlen(text)) != NULL;
}

/* Only the outputs: the payload also has the name itself, and perhaps a log with it. */
static bool outputs_hold(kn_span payload, const char *text, const char *decimal)
{
    kn_rtc_answer result;
    bool holds = kn_rtc_answer_parse(payload, &result) != KILN_OK;
    for (unsigned i = KN_RTC_PTX; !holds && i < KN_RTC_PARTS; i++) {
        const kn_span bytes = result.parts[i].bytes;
        holds = i != KN_RTC_NAME && (holds_text(bytes, text) || holds_text(bytes, decimal));
    }
    kn_rtc_answer_deinit(&result);
    return holds;
}

bool kn_rtc_key_fits(const kn_rtc_key *key, const kn_rtc_program *program, kn_span payload)
{
    const char *slash = program->name != NULL ? strrchr(program->name, '/') : NULL;
    if (!key->watch_name || slash == NULL) {
        return true;
    }
    kn_strbuf decimal;
    kn_strbuf_init(&decimal, 0);
    char *directory = kn_text_copy_n(program->name, (size_t)(slash - program->name) + 1);
    append_decimal(&decimal, directory != NULL ? directory : "");
    const bool fits = directory != NULL && kn_strbuf_ok(&decimal) &&
                      !outputs_hold(payload, directory, kn_strbuf_text(&decimal));
    free(directory);
    kn_strbuf_deinit(&decimal);
    return fits;
}

static kiln_status describe_source(kn_rtc_key *key, const kn_rtc_program *program, kiln_diag *diag)
{
    const kn_rtc_kind *kind = program->library->kind;
    key->source = (kiln_source)KILN_SOURCE_INIT;
    key->source.language = kind->language;
    key->source.name = kn_rtc_program_name(program);
    key->source.text = program->text;
    key->source.length = strlen(program->text);
    key->source.headers = program->headers;
    key->source.header_count = program->header_count;
    key->options.rest = (const char **)calloc(program->option_count + 1, sizeof(char *));
    key->options.directories = (const char **)calloc(program->option_count + 1, sizeof(char *));
    if (key->options.rest == NULL || key->options.directories == NULL) {
        return kn_no_memory(diag, "keying a compile");
    }
    kind->read_options((const char *const *)program->options, program->option_count, &key->options);
    key->source.options = key->options.rest;
    key->source.option_count = key->options.rest_count;
    key->source.include_dirs = key->options.directories;
    key->source.include_dir_count = key->options.directory_count;
    if (!key->options.beside) {
        return KILN_OK;
    }
    const bool plain = program->name == NULL || strchr(program->name, '/') == NULL;
    key->dir = plain ? kn_text_copy(".") : kn_path_dir(program->name);
    return key->dir != NULL ? KILN_OK : kn_no_memory(diag, "keying a compile");
}

static kiln_status fill_recipe(kn_rtc_key *key, const kn_rtc_program *program,
                               const kn_rtc_identity *identity, kiln_diag *diag)
{
    const kn_rtc_kind *kind = program->library->kind;
    kiln_status status = kiln_recipe_create(kind->stage, kind->revision, &key->recipe, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe_set_target(key->recipe, key->options.target);
    kiln_recipe_add_bytes(key->recipe, "source", program->text, strlen(program->text));
    add_options(key);
    for (size_t i = 0; i < program->expression_count; i++) {
        kn_recipe_add_string(key->recipe, "expression", program->expressions[i]);
    }
    add_identity(key, identity);
    if (kind->add_surroundings != NULL) {
        kind->add_surroundings(key->recipe);
    }
    return kiln_recipe_status(key->recipe, diag);
}

kiln_status kn_rtc_key_init(kn_rtc_key *key, kiln_cache *cache, const kn_rtc_program *program,
                            const kn_rtc_identity *identity, kiln_diag *diag)
{
    memset(key, 0, sizeof(*key));
    kiln_status status = describe_source(key, program, diag);
    if (status == KILN_OK) {
        status = fill_recipe(key, program, identity, diag);
    }
    if (key->options.bypass != NULL) {
        kn_text_put(key->bypass, sizeof(key->bypass), key->options.bypass);
    } else if (!kn_fp_is_default()) {
        kn_text_put(key->bypass, sizeof(key->bypass), KN_FP_REASON);
    }
    if (status == KILN_OK && key->bypass[0] == '\0') {
        status = add_headers(key, cache, program, diag);
    }
    if (status != KILN_OK) {
        kn_rtc_key_deinit(key);
    }
    return status;
}

void kn_rtc_key_deinit(kn_rtc_key *key)
{
    kn_closure_destroy(key->closure);
    kiln_recipe_destroy(key->recipe);
    free((void *)key->options.rest);
    free((void *)key->options.directories);
    free(key->dir);
    memset(key, 0, sizeof(*key));
}

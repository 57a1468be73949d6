/* See nvrtc_key.h. The recipe is the drop-in's in spirit and not in form: here the options are the
 * caller's own, one for one, so that the architecture is one of them and may be missing. */
#include "interpose/nvrtc_key.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/options.h"
#include "base/diag.h"
#include "base/text.h"
#include "headers/include_scan.h"
#include "interpose/session.h"
#include "sys/dylib.h"
#include "sys/elf.h"
#include "sys/env.h"
#include "sys/file.h"

#define STAGE "nvrtc.program"
#define STAGE_REVISION 1u

/* --- identity --------------------------------------------------------------------------------- */

static bool describe_file(const char *path, char *out, size_t size)
{
    kn_elf_facts facts;
    if (kn_elf_inspect(path, &facts, NULL) != KILN_OK) {
        return false;
    }
    kn_elf_identify(&facts, out, size);
    return true;
}

static kiln_status keep_builtins_name(void *user, const char *name)
{
    kn_nvrtc_identity *identity = (kn_nvrtc_identity *)user;
    static const char prefix[] = "libnvrtc-builtins.so.";
    /* The shortest is the link that NVRTC opens: .so.13.0, not .so.13.0.48. */
    if (kn_text_starts(name, prefix) && strlen(name) < sizeof(identity->builtins_name) &&
        (identity->builtins_name[0] == '\0' || strlen(name) < strlen(identity->builtins_name))) {
        kn_text_put(identity->builtins_name, sizeof(identity->builtins_name), name);
    }
    return KILN_OK;
}

kiln_status kn_nvrtc_identity_find(const kn_nvrtc_real *library, kn_nvrtc_identity *out,
                                   kiln_diag *diag)
{
    char *resolved = kn_path_resolve(library->path);
    char *folder = resolved != NULL ? kn_path_folder(resolved) : NULL;
    char *builtins = NULL;
    kiln_status status = KILN_E_UNAVAILABLE;
    memset(out, 0, sizeof(*out));
    if (folder != NULL && describe_file(resolved, out->nvrtc, sizeof(out->nvrtc)) &&
        kn_file_list(folder, keep_builtins_name, out, NULL) == KILN_OK &&
        out->builtins_name[0] != '\0') {
        builtins = kn_path_join(folder, out->builtins_name);
        if (builtins != NULL && describe_file(builtins, out->builtins, sizeof(out->builtins))) {
            status = KILN_OK;
        }
    }
    if (status != KILN_OK) {
        (void)kiln_diag_set(diag, status, NULL, library->path,
                            "NVRTC, or the libnvrtc-builtins next to it, cannot be read");
    }
    free(builtins);
    free(folder);
    free(resolved);
    return status;
}

bool kn_nvrtc_identity_holds(const kn_nvrtc_identity *identity, const kn_nvrtc_table *real)
{
    char path[4096];
    char build_id[140];
    const void *address = NULL;
    memcpy(&address, &real->nvrtcVersion, sizeof(address));
    return kn_module_of_address(address, path, sizeof(path), build_id, sizeof(build_id)) &&
           (strcmp(build_id, identity->nvrtc) == 0 || kn_text_starts(build_id, "noid:"));
}

/* --- options ---------------------------------------------------------------------------------- */

/* The directory that an option names; *index moves to the last element used. */
static const char *directory_of_option(char **options, size_t count, size_t *index)
{
    static const char *const joined[] = {"--include-path=", "-include-path=", "-I=", "-I"};
    const char *option = options[*index];
    if (strcmp(option, "-I") == 0 || strcmp(option, "--include-path") == 0) {
        *index += *index + 1 < count;
        return options[*index];
    }
    for (size_t i = 0; i < sizeof(joined) / sizeof(joined[0]); i++) {
        if (kn_text_starts(option, joined[i])) {
            return option + strlen(joined[i]);
        }
    }
    return NULL;
}

static kiln_status split_options(kn_nvrtc_key *key, const kn_nvrtc_program *program,
                                 kiln_diag *diag)
{
    key->options = (const char **)calloc(program->option_count + 1, sizeof(char *));
    key->directories = (const char **)calloc(program->option_count + 1, sizeof(char *));
    if (key->options == NULL || key->directories == NULL) {
        return kn_no_memory(diag, "keying an NVRTC compile");
    }
    for (size_t i = 0; i < program->option_count; i++) {
        const char *directory = directory_of_option(program->options, program->option_count, &i);
        if (directory != NULL) {
            key->directories[key->source.include_dir_count++] = directory;
        } else {
            key->options[key->source.option_count++] = program->options[i];
        }
    }
    key->source.options = key->options;
    key->source.include_dirs = key->directories;
    return KILN_OK;
}

static const char *find_flag_variable(void)
{
    static const char *const names[] = {"NVRTC_PREPEND_FLAGS", "NVRTC_APPEND_FLAGS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = kn_env_get(names[i]);
        if (value != NULL && value[0] != '\0') {
            return names[i];
        }
    }
    return NULL;
}

/* Where an entry is kept: by the architecture, so that one can be pruned. */
static void name_target(const kn_nvrtc_key *key, char *out, size_t size)
{
    static const char *const spellings[] = {"--gpu-architecture=", "-arch=", "-gpu-architecture="};
    kn_text_put(out, size, "cuda-default");
    for (size_t i = 0; i < key->source.option_count; i++) {
        const char *value = NULL;
        for (size_t j = 0; j < sizeof(spellings) / sizeof(spellings[0]); j++) {
            if (kn_text_starts(key->options[i], spellings[j])) {
                value = key->options[i] + strlen(spellings[j]);
            }
        }
        if (value == NULL && i + 1 < key->source.option_count &&
            (strcmp(key->options[i], "-arch") == 0 ||
             strcmp(key->options[i], "--gpu-architecture") == 0)) {
            value = key->options[i + 1];
        }
        if (value != NULL &&
            strspn(value, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(value) &&
            strlen(value) + 6 < size) {
            kn_text_putf(out, size, "cuda-%s", value);
        }
    }
}

/* --- recipe ----------------------------------------------------------------------------------- */

static kiln_status add_text(kn_nvrtc_key *key, const char *field, const char *text, kiln_diag *diag)
{
    return kiln_recipe_add_text(key->recipe, field, text, strlen(text), diag);
}

static kiln_status add_options(kn_nvrtc_key *key, kn_cuda_option_facts *out_facts, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_cuda_options_read(key->options, key->source.option_count, out_facts);
    if (out_facts->reason != NULL) {
        kn_text_put(key->bypass, sizeof(key->bypass), out_facts->reason);
    }
    for (size_t i = 0; i < key->source.option_count && status == KILN_OK; i++) {
        const char *word = kn_include_scan_words(kn_span_of_text(key->options[i]));
        if (word != NULL) {
            kn_text_putf(key->bypass, sizeof(key->bypass), "%s in an option", word);
        }
        status = add_text(key, "option", key->options[i], diag);
    }
    return status;
}

static kiln_status add_identity(kn_nvrtc_key *key, const kn_nvrtc_identity *identity,
                                kiln_diag *diag)
{
    kiln_status status = add_text(key, "nvrtc", identity->nvrtc, diag);
    if (status == KILN_OK) {
        status = add_text(key, "nvrtc-builtins", identity->builtins, diag);
    }
    return status == KILN_OK ? add_text(key, "nvrtc-builtins.name", identity->builtins_name, diag)
                             : status;
}

/* Outputs in which the compiler writes the source's name: debug information, and the bitcode of
 * LTO and OptiX. */
static bool output_has_names(const kn_nvrtc_key *key, const kn_cuda_option_facts *facts)
{
    static const char *const prefixes[] = {"-dlto",         "--dlink-time-opt", "-gen-opt-lto",
                                           "--gen-opt-lto", "-optix-ir",        "--optix-ir"};
    bool names = facts->names;
    for (size_t i = 0; i < key->source.option_count; i++) {
        for (size_t j = 0; j < sizeof(prefixes) / sizeof(prefixes[0]); j++) {
            names = names || strcmp(key->options[i], prefixes[j]) == 0;
        }
    }
    return names;
}

/* The name as the caller gave it. The directory of a temporary source is new in each process, and
 * most code cannot see it: a text that mentions __FILE__ or its like can, and debug information.
 * Where only headers mention it, their macros could; the length of the directory is keyed for what
 * measures it, and code that holds it is not stored (kn_nvrtc_key_fits). */
static kiln_status add_name(kn_nvrtc_key *key, const kn_nvrtc_program *program, bool names,
                            kiln_diag *diag)
{
    const char *name = program->name != NULL ? program->name : KN_NVRTC_UNNAMED;
    if (names || kn_closure_source_names(key->closure)) {
        return add_text(key, "name.whole", name, diag);
    }
    key->watch_name = kn_closure_names_matter(key->closure);
    return key->watch_name ? kiln_recipe_add_u64(key->recipe, "name.length", strlen(name), diag)
                           : KILN_OK;
}

static kiln_status add_headers(kn_nvrtc_key *key, kiln_cache *cache,
                               const kn_nvrtc_program *program, const kn_cuda_option_facts *facts,
                               kiln_diag *diag)
{
    const bool names = output_has_names(key, facts);
    const kn_closure_request request = {
        .source = &key->source,
        .folder = facts->not_beside ? NULL : key->folder,
        .not_beside = facts->not_beside,
        .names = names,
        .search_path_complete = true,
        .cache = cache,
        .first = key->recipe,
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
    return status == KILN_OK ? add_name(key, program, names, diag) : status;
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
    kn_nvrtc_result result;
    bool holds = kn_nvrtc_result_parse(payload, &result) != KILN_OK;
    for (unsigned i = KN_NVRTC_PTX; !holds && i <= KN_NVRTC_TILEIR; i++) {
        const kn_span bytes = result.parts[i].bytes;
        holds = holds_text(bytes, text) || holds_text(bytes, decimal);
    }
    kn_nvrtc_result_deinit(&result);
    return holds;
}

bool kn_nvrtc_key_fits(const kn_nvrtc_key *key, const kn_nvrtc_program *program, kn_span payload)
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

/* NVRTC looks for "x.h" in the directory of the source's name: the current one for a plain name. */
static kiln_status describe_source(kn_nvrtc_key *key, const kn_nvrtc_program *program,
                                   kiln_diag *diag)
{
    key->source = (kiln_source)KILN_SOURCE_INIT;
    key->source.language = KILN_LANG_CUDA;
    key->source.name = program->name != NULL ? program->name : KN_NVRTC_UNNAMED;
    key->source.text = program->text;
    key->source.length = strlen(program->text);
    key->source.headers = program->headers;
    key->source.header_count = program->header_count;
    const bool plain = program->name == NULL || strchr(program->name, '/') == NULL;
    key->folder = plain ? kn_text_copy(".") : kn_path_folder(program->name);
    return key->folder != NULL ? split_options(key, program, diag)
                               : kn_no_memory(diag, "keying an NVRTC compile");
}

static kiln_status fill_recipe(kn_nvrtc_key *key, const kn_nvrtc_program *program,
                               const kn_nvrtc_identity *identity, kn_cuda_option_facts *facts,
                               kiln_diag *diag)
{
    char target[64];
    name_target(key, target, sizeof(target));
    kiln_status status = kiln_recipe_create(STAGE, STAGE_REVISION, &key->recipe, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(key->recipe, target, diag);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_bytes(key->recipe, "source", program->text, strlen(program->text),
                                       diag);
    }
    if (status == KILN_OK) {
        status = add_options(key, facts, diag);
    }
    for (size_t i = 0; i < program->expression_count && status == KILN_OK; i++) {
        status = add_text(key, "expression", program->expressions[i], diag);
    }
    return status == KILN_OK ? add_identity(key, identity, diag) : status;
}

kiln_status kn_nvrtc_key_init(kn_nvrtc_key *key, kiln_cache *cache, const kn_nvrtc_program *program,
                              const kn_nvrtc_identity *identity, kiln_diag *diag)
{
    kn_cuda_option_facts facts = {0};
    memset(key, 0, sizeof(*key));
    kiln_status status = describe_source(key, program, diag);
    if (status == KILN_OK) {
        status = fill_recipe(key, program, identity, &facts, diag);
    }
    const char *variable = find_flag_variable();
    if (variable != NULL) {
        kn_text_putf(key->bypass, sizeof(key->bypass), "%s is set", variable);
    }
    if (status == KILN_OK && key->bypass[0] == '\0') {
        status = add_headers(key, cache, program, &facts, diag);
    }
    if (status != KILN_OK) {
        kn_nvrtc_key_deinit(key);
    }
    return status;
}

void kn_nvrtc_key_deinit(kn_nvrtc_key *key)
{
    kn_closure_destroy(key->closure);
    kiln_recipe_destroy(key->recipe);
    free((void *)key->options);
    free((void *)key->directories);
    free(key->folder);
    memset(key, 0, sizeof(*key));
}

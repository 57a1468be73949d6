/* What keys of NVRTC's compiles are made of, and what else NVRTC has apart. */
#include "interpose/nvrtc_kind.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/options.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"
#include "sys/dylib.h"
#include "sys/elf.h"
#include "sys/env.h"
#include "sys/file.h"

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

typedef struct builtins_name {
    char text[64]; /* libnvrtc-builtins.so.13.0 */
} builtins_name;

static kiln_status keep_builtins_name(void *user, const char *name)
{
    builtins_name *shortest = (builtins_name *)user;
    static const char prefix[] = "libnvrtc-builtins.so.";
    /* The shortest is the link that NVRTC opens: .so.13.0, not .so.13.0.48. */
    if (kn_text_starts(name, prefix) && strlen(name) < sizeof(shortest->text) &&
        (shortest->text[0] == '\0' || strlen(name) < strlen(shortest->text))) {
        kn_text_put(shortest->text, sizeof(shortest->text), name);
    }
    return KILN_OK;
}

static bool identify_builtins(const char *folder, kn_rtc_identity *out)
{
    builtins_name name = {{0}};
    if (kn_file_list(folder, keep_builtins_name, &name, NULL) != KILN_OK || name.text[0] == '\0') {
        return false;
    }
    char *path = kn_path_join(folder, name.text);
    const bool described =
        path != NULL && describe_file(path, out->fields[1].text, sizeof(out->fields[1].text));
    out->fields[1].field = "nvrtc-builtins";
    out->fields[2].field = "nvrtc-builtins.name";
    kn_text_put(out->fields[2].text, sizeof(out->fields[2].text), name.text);
    free(path);
    return described;
}

static kiln_status find_nvrtc_identity(const kn_rtc_library *library, kn_rtc_identity *out,
                                       kiln_diag *diag)
{
    char *resolved = kn_path_resolve(library->path);
    char *folder = resolved != NULL ? kn_path_folder(resolved) : NULL;
    memset(out, 0, sizeof(*out));
    out->fields[0].field = "nvrtc";
    const bool found = folder != NULL &&
                       describe_file(resolved, out->fields[0].text, sizeof(out->fields[0].text)) &&
                       identify_builtins(folder, out);
    free(folder);
    free(resolved);
    return found ? KILN_OK
                 : kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, library->path,
                                 "NVRTC, or the libnvrtc-builtins next to it, cannot be read");
}

static bool nvrtc_identity_holds(const kn_rtc_library *library, const kn_rtc_identity *identity)
{
    const kn_rtc_calls *real = library->open();
    char path[4096];
    char build_id[140];
    const void *address = NULL;
    memcpy(&address, &real->version, sizeof(address));
    return kn_module_of_address(address, path, sizeof(path), build_id, sizeof(build_id)) &&
           (strcmp(build_id, identity->fields[0].text) == 0 || kn_text_starts(build_id, "noid:"));
}

/* --- options ---------------------------------------------------------------------------------- */

/* The directory that an option names; *index moves to the last element used. */
static const char *directory_of_option(const char *const *options, size_t count, size_t *index)
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

static const char *find_flag_variable(void)
{
    static const struct {
        const char *name, *reason;
    } rows[] = {{"NVRTC_PREPEND_FLAGS", "NVRTC_PREPEND_FLAGS is set"},
                {"NVRTC_APPEND_FLAGS", "NVRTC_APPEND_FLAGS is set"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *value = kn_env_get(rows[i].name);
        if (value != NULL && value[0] != '\0') {
            return rows[i].reason;
        }
    }
    return NULL;
}

/* Where an entry is kept: by the architecture, so that one can be pruned. */
static void name_target(kn_rtc_options *options)
{
    static const char *const spellings[] = {"--gpu-architecture=", "-arch=", "-gpu-architecture="};
    kn_text_put(options->target, sizeof(options->target), "cuda-default");
    for (size_t i = 0; options->rest[i] != NULL; i++) { /* the list has room for an end */
        const char *value = NULL;
        for (size_t j = 0; j < sizeof(spellings) / sizeof(spellings[0]); j++) {
            if (kn_text_starts(options->rest[i], spellings[j])) {
                value = options->rest[i] + strlen(spellings[j]);
            }
        }
        if (value == NULL && i + 1 < options->rest_count &&
            (strcmp(options->rest[i], "-arch") == 0 ||
             strcmp(options->rest[i], "--gpu-architecture") == 0)) {
            value = options->rest[i + 1];
        }
        if (value != NULL &&
            strspn(value, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(value) &&
            strlen(value) + 6 < sizeof(options->target)) {
            kn_text_putf(options->target, sizeof(options->target), "cuda-%s", value);
            kn_text_put(options->arch, sizeof(options->arch), value);
        }
    }
}

/* Outputs in which the compiler writes the source's name: debug information, and the bitcode of
 * LTO and OptiX. */
static bool output_has_names(const kn_rtc_options *options)
{
    static const char *const prefixes[] = {"-dlto",         "--dlink-time-opt", "-gen-opt-lto",
                                           "--gen-opt-lto", "-optix-ir",        "--optix-ir"};
    bool names = false;
    for (size_t i = 0; i < options->rest_count; i++) {
        for (size_t j = 0; j < sizeof(prefixes) / sizeof(prefixes[0]); j++) {
            names = names || strcmp(options->rest[i], prefixes[j]) == 0;
        }
    }
    return names;
}

static void read_nvrtc_options(const char *const *options, size_t count, kn_rtc_options *out)
{
    kn_cuda_option_facts facts = {0};
    for (size_t i = 0; i < count; i++) {
        const char *directory = directory_of_option(options, count, &i);
        if (directory != NULL) {
            out->directories[out->directory_count++] = directory;
        } else {
            out->rest[out->rest_count++] = options[i];
        }
    }
    name_target(out);
    kn_cuda_options_read(out->rest, out->rest_count, &facts);
    out->bypass = find_flag_variable();
    out->bypass = out->bypass != NULL ? out->bypass : facts.reason;
    out->beside = !facts.not_beside;
    out->not_beside = facts.not_beside;
    out->names = facts.names;
    out->whole_name = output_has_names(out);
}

static const char *find_nvrtc_uncached(const kn_rtc_calls *real)
{
    int major = 0;
    int minor = 0;
    return real->version(&major, &minor) == 0 ? kn_cuda_options_uncached(major, minor) : NULL;
}

const kn_rtc_kind kn_nvrtc_kind = {
    .what = "nvrtc",
    .name = "NVRTC",
    .unnamed = "default_program",
    .stage = kn_stage_nvrtc_program,
    .revision = 2,
    .language = KILN_LANG_CUDA,
    .door = KN_DOOR_NVRTC,
    .record_prefix = "cuda",
    .is_complete = true,
    .recompiles = true,
    .clears = true,
    .takes_empty = true,
    .find_identity = find_nvrtc_identity,
    .identity_holds = nvrtc_identity_holds,
    .read_options = read_nvrtc_options,
    .uncached_option = find_nvrtc_uncached,
    .rename_log = kn_rtc_rename_in_nvrtc_log,
};

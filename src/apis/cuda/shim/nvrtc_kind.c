/* What keys of NVRTC's compiles are made of, and what else NVRTC has apart. */
#include "apis/cuda/shim/nvrtc_kind.h"

#include <stdlib.h>
#include <string.h>

#include "apis/cuda/options/nvrtc_options.h"
#include "apis/cuda/options/nvrtc_process.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"
#include "sys/dylib.h"
#include "sys/elf.h"
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

static bool identify_builtins(const char *dir, kn_rtc_identity *out)
{
    builtins_name name = {{0}};
    if (kn_file_list(dir, keep_builtins_name, &name, NULL) != KILN_OK || name.text[0] == '\0') {
        return false;
    }
    char *path = kn_path_join(dir, name.text);
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
    char *dir = resolved != NULL ? kn_path_dir(resolved) : NULL;
    memset(out, 0, sizeof(*out));
    out->fields[0].field = "nvrtc";
    const bool found = dir != NULL &&
                       describe_file(resolved, out->fields[0].text, sizeof(out->fields[0].text)) &&
                       identify_builtins(dir, out);
    free(dir);
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

/* Where an entry is kept: by the architecture, so that one can be pruned. NVRTC takes the last. */
static void name_nvrtc_target(const char *value, kn_rtc_options *out)
{
    if (strspn(value, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(value) &&
        strlen(value) + 6 < sizeof(out->target)) {
        kn_text_putf(out->target, sizeof(out->target), "cuda-%s", value);
        kn_text_put(out->arch, sizeof(out->arch), value);
    }
}

static void read_nvrtc_options(const char *const *options, size_t count, kn_rtc_options *out)
{
    kn_nvrtc_option_facts facts;
    kn_call_option option;
    kn_text_put(out->target, sizeof(out->target), "cuda-default");
    for (size_t i = 0; i < count; i = option.last + 1) {
        kn_nvrtc_option_read(options, count, i, &option);
        if (option.use == KN_OPTION_DIRECTORY) {
            out->directories[out->directory_count++] = option.value;
            continue;
        }
        if (option.use == KN_OPTION_TARGET) {
            name_nvrtc_target(option.value, out);
        }
        for (size_t j = i; j <= option.last; j++) {
            out->rest[out->rest_count++] = options[j];
        }
    }
    kn_nvrtc_options_read(out->rest, out->rest_count, &facts);
    out->bypass = facts.reason;
    /* The program gets what it gets alone, with what -restrict does to its later compiles. */
    kn_nvrtc_process_compiling(options, count);
    out->bypass = out->bypass != NULL ? out->bypass : kn_nvrtc_process_reason(NULL, 0);
    out->beside = !facts.not_beside;
    out->not_beside = facts.not_beside;
    out->names = facts.names;
    out->whole_name = facts.carries_name;
}

static const char *find_nvrtc_refusal(const kn_rtc_options *options, const kn_rtc_answer *answer)
{
    (void)options;
    (void)answer;
    return kn_nvrtc_process_reason(NULL, 0); /* another thread may have compiled with -restrict */
}

static const char *find_nvrtc_uncached(const kn_rtc_calls *real)
{
    int major = 0;
    int minor = 0;
    return real->version(&major, &minor) == 0 ? kn_nvrtc_options_uncached(major, minor) : NULL;
}

static const kiln_include_rules include_rules = {.complete = true};

const kn_rtc_kind kn_nvrtc_kind = {
    .what = "nvrtc",
    .name = "NVRTC",
    .unnamed = "default_program",
    .stage = kn_stage_nvrtc_program,
    .revision = KN_REVISION_nvrtc_program,
    .language = KILN_LANG_CUDA,
    .frontend = KN_FRONTEND_NVRTC,
    .record_prefix = "cuda",
    .include_rules = &include_rules,
    .recompiles = true,
    .clears = true,
    .takes_empty = true,
    .find_identity = find_nvrtc_identity,
    .identity_holds = nvrtc_identity_holds,
    .read_options = read_nvrtc_options,
    .refuse = find_nvrtc_refusal,
    .uncached_option = find_nvrtc_uncached,
    .rename_log = kn_rtc_rename_in_nvrtc_log,
};

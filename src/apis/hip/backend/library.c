/* hipRTC and the compiler under it, opened at the first compile. What was mapped is compared with
 * what the keys named: if ROCm was replaced in between, nothing may be stored under the old
 * identity. */
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/locate.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/elf.h"
#include "sys/file.h"

#define TABLE kn_hiprtc
#define X(row, name, parameters) {"hiprtc" name, offsetof(TABLE, rtc.row), 0, KN_REQUIRED},
static const kn_symbol hiprtc_symbols[] = {
#include "gpu/rtc.def"
#undef X
#define X(since, need, ret, name, args) {#name, offsetof(TABLE, name), since, need},
#include "apis/hip/backend/hiprtc.def"
};
#undef TABLE
#define TABLE kn_comgr
static const kn_symbol comgr_symbols[] = {
#include "apis/hip/backend/comgr.def"
};

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

void kn_hip_facts_deinit(kn_hip_facts *facts)
{
    free(facts->modules);
    free(facts->processors);
    memset(facts, 0, sizeof(*facts));
}

void kn_hip_library_close(kn_hip *hip)
{
    kn_dylib_close(hip->comgr_lib);
    /* HIP's runtime and LLVM have exit handlers. */
    kn_dylib_retire(hip->hiprtc_lib);
    kn_dylib_retire(hip->builtins_lib);
    hip->comgr_lib = NULL;
    hip->hiprtc_lib = NULL;
    hip->builtins_lib = NULL;
}

/* --- opening ---------------------------------------------------------------------------------- */

static kiln_status open_path(const char *path, kn_dylib **out_lib, kiln_diag *diag)
{
    const char *const names[] = {path, NULL};
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    return kn_dylib_open(names, out_lib, &outcome, diag);
}

/* The compiler that hipRTC has opened for itself. */
typedef struct found_comgr {
    char path[KN_HIP_PATH];
    size_t count;
} found_comgr;

static bool is_comgr(const char *path)
{
    return kn_text_starts(kn_path_name(path), kn_hip_names.comgr);
}

static kn_module_choice choose_comgr(void *user, const char *path)
{
    (void)user;
    return is_comgr(path) ? KN_MODULE_ITSELF : KN_MODULE_NO;
}

static void take_comgr(void *user, const char *path, const char *build_id)
{
    found_comgr *found = (found_comgr *)user;
    (void)build_id;
    kn_text_put(found->path, sizeof(found->path), path);
    found->count++;
}

/* hipRTC opens its compiler when it makes its first program, by a name that its release decides; so
 * one is made, and then the one that is mapped is the one. */
static kiln_status open_comgr(kn_hip *hip, kiln_diag *diag)
{
    found_comgr found = {{0}, 0};
    void *program = NULL;
    if (hip->hiprtc.rtc.create(&program, "", "kernel", 0, NULL, NULL) == 0) {
        (void)hip->hiprtc.rtc.destroy(&program);
    }
    (void)kn_module_select(choose_comgr, take_comgr, &found);
    if (found.count != 1) {
        return kiln_diag_set(
            diag, KILN_E_UNAVAILABLE,
            found.count == 0 ? kn_hip_names.no_comgr : "use one ROCm release in a process",
            hip->library, "%zu libraries of the compiler (comgr) are mapped, not one", found.count);
    }
    kiln_status status = open_path(found.path, &hip->comgr_lib, diag);
    return status == KILN_OK ? kn_dylib_bind(hip->comgr_lib, comgr_symbols, COUNT(comgr_symbols), 0,
                                             &hip->comgr, diag)
                             : status;
}

static kiln_status open_libraries(kn_hip *hip, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_dylib *compiler = NULL;
    if (hip->compiler[0] != '\0') { /* for the same reason as the next one */
        status = open_path(hip->compiler, &compiler, diag);
    }
    if (status == KILN_OK && hip->builtins[0] != '\0') {
        /* hipRTC opens it by its bare name; once mapped from its own directory, that name finds it.
         */
        status = open_path(hip->builtins, &hip->builtins_lib, diag);
    }
    if (status == KILN_OK) {
        status = open_path(hip->library, &hip->hiprtc_lib, diag);
    }
    if (status == KILN_OK) {
        status = kn_dylib_bind(hip->hiprtc_lib, hiprtc_symbols, COUNT(hiprtc_symbols), 0,
                               &hip->hiprtc, diag);
    }
    status = status == KILN_OK ? open_comgr(hip, diag) : status;
    kn_dylib_close(compiler);
    return status;
}

/* --- what they are ---------------------------------------------------------------------------- */

typedef struct module_list {
    kn_strbuf modules, paths;
    bool compilers_only;
} module_list;

/* Under another program, libstdc++ or zlib may be that program's own. */
static bool is_compiler(const char *name)
{
    static const char *const prefixes[] = {"libhiprtc", "libamdhip64", "libamd_comgr",
                                           "libLLVM",   "libclang",    "liblld"};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        if (kn_text_starts(name, prefixes[i])) {
            return true;
        }
    }
    return false;
}

static void add_module(void *user, const char *path, const char *build_id)
{
    module_list *list = (module_list *)user;
    if (list->compilers_only && !is_compiler(kn_path_name(path))) {
        return;
    }
    kn_strbuf_printf(&list->modules, "%s %s\n", kn_path_name(path), build_id);
    kn_strbuf_printf(&list->paths, "%s\n", path);
}

static bool list_modules(const kn_hip *hip, module_list *list)
{
    const void *addresses[2];
    memcpy(&addresses[0], &hip->hiprtc.rtc.compile, sizeof(addresses[0]));
    memcpy(&addresses[1], &hip->comgr.amd_comgr_get_isa_count, sizeof(addresses[1]));
    if (hip->builtins[0] != '\0') {
        kn_elf_facts facts;
        char id[160];
        if (kn_elf_inspect(hip->builtins, &facts, NULL) != KILN_OK) {
            return false;
        }
        kn_elf_identify(&facts, id, sizeof(id));
        add_module(list, hip->builtins, id);
    }
    return kn_module_closure(addresses[0], add_module, list) &&
           kn_module_closure(addresses[1], add_module, list) && kn_strbuf_ok(&list->modules) &&
           kn_strbuf_ok(&list->paths);
}

static const char triple[] = "amdgcn-amd-amdhsa--";

/* Asked for a name that it does not know, hipRTC 5.2 aborts the process; this function says no. */
static bool knows_isa(const kn_hip *hip, const char *isa)
{
    kn_comgr_node node = {0};
    if (hip->comgr.amd_comgr_get_isa_metadata(isa, &node) != 0) {
        return false;
    }
    (void)hip->comgr.amd_comgr_destroy_metadata(node);
    return true;
}

static void list_processors(const kn_hip *hip, kn_strbuf *out)
{
    static const char *const choices[] = {"xnack", "sramecc"};
    size_t count = 0;
    if (hip->comgr.amd_comgr_get_isa_count(&count) != 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *isa = NULL;
        if (hip->comgr.amd_comgr_get_isa_name(i, &isa) != 0 || isa == NULL ||
            !kn_text_starts(isa, triple) || !knows_isa(hip, isa)) {
            continue;
        }
        kn_strbuf_append_text(out, isa + strlen(triple));
        for (size_t c = 0; c < COUNT(choices); c++) {
            char longer[128];
            kn_text_putf(longer, sizeof(longer), "%s:%s+", isa, choices[c]);
            if (knows_isa(hip, longer)) {
                kn_strbuf_printf(out, " %s", choices[c]);
            }
        }
        kn_strbuf_append_char(out, '\n');
    }
}

/* Puts what was mapped in the place of what was remembered, if the two are the same. */
static kiln_status take_facts(kn_hip *hip, kiln_diag *diag)
{
    module_list list;
    kn_strbuf processors;
    kn_hip_facts facts = {0};
    int major = 0;
    int minor = 0;
    kiln_status status = KILN_E_NOMEM;
    kn_strbuf_init(&list.modules, 0);
    kn_strbuf_init(&list.paths, 0);
    list.compilers_only = hip->compilers_only;
    kn_strbuf_init(&processors, 0);
    const bool listed = list_modules(hip, &list);
    list_processors(hip, &processors);
    (void)hip->hiprtc.hiprtcVersion(&major, &minor);
    kn_text_putf(facts.version, sizeof(facts.version), "%d.%d", major, minor);
    facts.modules = kn_strbuf_detach(&list.modules, NULL);
    facts.processors = kn_text_copy(kn_strbuf_text(&processors));
    if (!listed || !kn_strbuf_ok(&processors) || facts.modules == NULL ||
        facts.processors == NULL) {
        status = kn_no_memory(diag, hip->library);
    } else if (hip->facts.modules != NULL && strcmp(hip->facts.modules, facts.modules) != 0) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, "start the program again", hip->library,
                               "hipRTC or a library of its was replaced while this process was "
                               "running");
    } else {
        status = KILN_OK;
        kn_hip_memo_keep(hip, &facts, kn_strbuf_text(&list.paths));
        kn_hip_facts_deinit(&hip->facts);
        hip->facts = facts;
        memset(&facts, 0, sizeof(facts));
    }
    kn_hip_facts_deinit(&facts);
    kn_strbuf_deinit(&processors);
    kn_strbuf_deinit(&list.paths);
    kn_strbuf_deinit(&list.modules);
    return status;
}

kiln_status kn_hip_library_get(kn_hip *hip, kiln_diag *diag)
{
    if (hip->comgr_lib != NULL) {
        return KILN_OK;
    }
    kiln_status status = open_libraries(hip, diag);
    if (status == KILN_OK) {
        status = take_facts(hip, diag);
    }
    if (status != KILN_OK) {
        kn_hip_library_close(hip);
    }
    return status;
}

kiln_status kn_hip_facts_get(kn_hip *hip, kiln_diag *diag)
{
    if (hip->facts.modules != NULL || kn_hip_memo_recall(hip, &hip->facts)) {
        return KILN_OK;
    }
    return kn_hip_library_get(hip, diag);
}

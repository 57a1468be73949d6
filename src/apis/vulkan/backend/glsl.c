/* GLSL compute -> SPIR-V through shaderc, opened at run time. Debian 12's own libshaderc.so.1
 * cannot be opened (it lacks symbols), so the build makes a small module of the static library
 * where that is installed, libkiln-shaderc.so; it is looked for next to this library first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "apis/vulkan/backend/instance.h"
#include "base/checked.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sys/elf.h"
#include "sys/file.h"
#include "sys/paths.h"

/* Values of shaderc.h's enums. */
enum {
    SHADERC_TARGET_VULKAN = 0,
    SHADERC_KIND_COMPUTE = 2,
    SHADERC_STATUS_SUCCESS = 0,
    SHADERC_STATUS_ERROR = 2, /* the source is at fault */
};

static bool take_file(kn_vk *vk, const char *path)
{
    kn_elf_facts facts;
    if (kn_elf_inspect(path, &facts, NULL) != KILN_OK) {
        return false;
    }
    kn_text_put(vk->shaderc_path, sizeof(vk->shaderc_path), path);
    kn_elf_identify(&facts, vk->shaderc_id, sizeof(vk->shaderc_id));
    return true;
}

static bool find_module(kn_vk *vk)
{
    char *path = kn_paths_module("libkiln-shaderc.so");
    const bool found = path != NULL && kn_path_is_absolute(path) && take_file(vk, path);
    free(path);
    return found;
}

/* Binds from a system library by its symbols, from kiln's own module through its one function. */
static kiln_status bind_shaderc(kn_dylib *lib, kn_shaderc *shaderc, kiln_diag *diag)
{
    typedef void any_function(void);
    any_function *(*find)(const char *name) = NULL;
    void *symbol = kn_dylib_symbol(lib, "kiln_shaderc_symbol");
    if (symbol == NULL) {
        return kn_dylib_bind(lib, kn_shaderc_symbols, kn_shaderc_symbol_count, 0, shaderc, diag);
    }
    memcpy(&find, &symbol, sizeof(find));
    for (size_t i = 0; i < kn_shaderc_symbol_count; i++) {
        any_function *function = find(kn_shaderc_symbols[i].name);
        if (function == NULL) {
            return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "reinstall kiln", kn_dylib_path(lib),
                                 "it lacks %s, so it is of another version",
                                 kn_shaderc_symbols[i].name);
        }
        memcpy((char *)shaderc + kn_shaderc_symbols[i].offset, &function, sizeof(function));
    }
    return KILN_OK;
}

static kiln_status open_shaderc(kn_vk *vk, const char *const *names, kiln_diag *diag)
{
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    kn_dylib *lib = NULL;
    kiln_status status = kn_dylib_open(names, &lib, &outcome, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = bind_shaderc(lib, &vk->shaderc, diag);
    if (status != KILN_OK) {
        kn_dylib_close(lib);
        return status;
    }
    vk->shaderc_lib = lib;
    return KILN_OK;
}

static const void *shaderc_address(const kn_vk *vk)
{
    const void *address = NULL;
    memcpy(&address, &vk->shaderc.shaderc_compiler_initialize, sizeof(address));
    return address;
}

static void add_module(void *user, const char *path, const char *build_id)
{
    kn_strbuf_printf((kn_strbuf *)user, "%s %s\n", kn_path_name(path), build_id);
}

/* The build ids of a library and of all it needs, in one: distributions link shaderc with glslang
 * and SPIRV-Tools, which make the code and are upgraded by themselves. */
static bool identify_closure(const void *address, char *id, size_t size)
{
    kn_strbuf lines;
    kn_strbuf_init(&lines, 0);
    const bool ok = kn_module_closure(address, add_module, &lines) && kn_strbuf_ok(&lines);
    if (ok) {
        XXH128_canonical_t digest;
        char text[2 * sizeof(digest.digest) + 1];
        XXH128_canonicalFromHash(&digest, XXH3_128bits(kn_strbuf_text(&lines), lines.length));
        kn_hex_encode(digest.digest, sizeof(digest.digest), text);
        kn_text_putf(id, size, "closure:%s", text);
    }
    kn_strbuf_deinit(&lines);
    return ok;
}

void kn_vk_shaderc_find(kn_vk *vk)
{
    static const char *const system[] = {"libshaderc_shared.so.1", "libshaderc.so.1", NULL};
    char path[sizeof(vk->shaderc_path)];
    char build_id[sizeof(vk->shaderc_id)];
    if (find_module(vk)) {
        return;
    }
    /* A system library is opened at once: only that distinguishes a broken one from a good one. */
    if (open_shaderc(vk, system, NULL) == KILN_OK) {
        const void *address = shaderc_address(vk);
        if (kn_module_of_address(address, path, sizeof(path), build_id, sizeof(build_id)) &&
            identify_closure(address, vk->shaderc_id, sizeof(vk->shaderc_id))) {
            kn_text_put(vk->shaderc_path, sizeof(vk->shaderc_path), path);
        }
    }
}

/* The keys name the file that was found; what is mapped now may be another one of that path. */
static kiln_status check_image(kn_vk *vk, kiln_diag *diag)
{
    char path[sizeof(vk->shaderc_path)];
    char build_id[sizeof(vk->shaderc_id)];
    if (!kn_module_of_address(shaderc_address(vk), path, sizeof(path), build_id,
                              sizeof(build_id)) ||
        strncmp(build_id, "noid:", 5) == 0 || strcmp(build_id, vk->shaderc_id) == 0) {
        return KILN_OK;
    }
    kn_dylib_retire(vk->shaderc_lib);
    vk->shaderc_lib = NULL;
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "start the program again", vk->shaderc_path,
                         "the library was replaced while this process was running");
}

static kiln_status get_shaderc(kn_vk *vk, kiln_diag *diag)
{
    const char *const names[] = {vk->shaderc_path, NULL};
    if (vk->shaderc_path[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "install libshaderc-dev and build kiln again, or give SPIR-V", "GLSL",
                             "no shaderc library was found");
    }
    kn_mutex_lock(&vk->lock);
    kiln_status status = KILN_OK;
    if (vk->shaderc_lib == NULL) {
        status = open_shaderc(vk, names, diag);
        status = status == KILN_OK ? check_image(vk, diag) : status;
    }
    if (status == KILN_OK && vk->shaderc_first == NULL) {
        vk->shaderc_first = vk->shaderc.shaderc_compiler_initialize();
    }
    kn_mutex_unlock(&vk->lock);
    return status;
}

/* --- includes --------------------------------------------------------------------------------- */

typedef struct include_context {
    const kiln_source *source;
    bool too_deep; /* every later include fails, too: the compiler goes on after an error */
} include_context;

typedef struct included {
    kn_shaderc_include base;
    kn_glsl_file file;
} included;

static kn_shaderc_include *resolve_include(void *user, const char *requested, int type,
                                           const char *requesting, size_t depth)
{
    static const char deep[] =
        "includes are nested more than 64 deep: look for a file that includes itself";
    static const char nowhere[] = "file not found in the include directories";
    include_context *context = (include_context *)user;
    included *made = (included *)calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    /* Between quotes: beside the includer first. One without a directory is not a file, and the
     * current directory is not a place to look in. */
    const char *includer = type == 0 && strchr(requesting, '/') != NULL ? requesting : NULL;
    context->too_deep = context->too_deep || depth > KN_GLSL_DEPTH; /* shaderc has no bound */
    if (context->too_deep || !kn_glsl_find(context->source, includer, requested, &made->file)) {
        /* An empty name with a message is how shaderc learns of a failure. */
        made->file = (kn_glsl_file){.text = context->too_deep ? deep : nowhere};
        made->file.length = strlen(made->file.text);
    }
    made->base.source_name = made->file.name != NULL ? made->file.name : "";
    made->base.source_name_length = strlen(made->base.source_name);
    made->base.content = made->file.text;
    made->base.content_length = made->file.length;
    return &made->base;
}

static void release_include(void *user, kn_shaderc_include *include)
{
    (void)user;
    if (include != NULL) {
        kn_glsl_file_deinit(&((included *)(void *)include)->file);
        free(include);
    }
}

/* --- options ---------------------------------------------------------------------------------- */

static bool apply_environment(const kn_shaderc *shaderc, void *options, const char *name)
{
    static const struct {
        const char *name;
        uint32_t version;
    } environments[] = {
        {"vulkan", 1U << 22},
        {"vulkan1.0", 1U << 22},
        {"vulkan1.1", 1U << 22 | 1U << 12},
        {"vulkan1.2", 1U << 22 | 2U << 12},
        {"vulkan1.3", 1U << 22 | 3U << 12},
    };
    for (size_t i = 0; i < sizeof(environments) / sizeof(environments[0]); i++) {
        if (strcmp(name, environments[i].name) == 0) {
            shaderc->shaderc_compile_options_set_target_env(options, SHADERC_TARGET_VULKAN,
                                                            environments[i].version);
            return true;
        }
    }
    return false;
}

/* "spv1.0" to "spv1.6". */
static bool apply_spirv(const kn_shaderc *shaderc, void *options, const char *name)
{
    if (strncmp(name, "spv1.", 5) != 0 || name[5] < '0' || name[5] > '6' || name[6] != '\0') {
        return false;
    }
    shaderc->shaderc_compile_options_set_target_spirv(options, 1 << 16 | (name[5] - '0') << 8);
    return true;
}

/* "450", "450core", "310es", "450compatibility": in place of what #version says. */
static bool apply_version(const kn_shaderc *shaderc, void *options, const char *text)
{
    static const char *const profiles[] = {"", "core", "compatibility", "es"};
    int version = 0;
    size_t digits = 0;
    for (; digits < 3 && text[digits] >= '0' && text[digits] <= '9'; digits++) {
        version = version * 10 + (text[digits] - '0');
    }
    for (int i = 0; digits == 3 && i < 4; i++) {
        if (strcmp(text + digits, profiles[i]) == 0) {
            shaderc->shaderc_compile_options_set_forced_version_profile(options, version, i);
            return true;
        }
    }
    return false;
}

/* An option that is a name and a value; false if it is none, or the value is wrong. */
static bool apply_value(const kn_shaderc *shaderc, void *options, const char *option)
{
    static const struct {
        const char *name;
        bool (*apply)(const kn_shaderc *shaderc, void *options, const char *value);
    } rows[] = {{"--target-env=", apply_environment},
                {"--target-spv=", apply_spirv},
                {"-std=", apply_version}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t length = strlen(rows[i].name);
        if (strncmp(option, rows[i].name, length) == 0) {
            return rows[i].apply(shaderc, options, option + length);
        }
    }
    return false;
}

static kiln_status apply_option(const kn_shaderc *shaderc, void *options, const char *option,
                                kiln_diag *diag)
{
    static const char *const levels[] = {"-O0", "-Os", "-O"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(option, levels[i]) == 0) {
            shaderc->shaderc_compile_options_set_optimization_level(options, i);
            return KILN_OK;
        }
    }
    if (strcmp(option, "-g") == 0) {
        shaderc->shaderc_compile_options_set_generate_debug_info(options);
    } else if (strcmp(option, "-w") == 0) {
        shaderc->shaderc_compile_options_set_suppress_warnings(options);
    } else if (strcmp(option, "-Werror") == 0) {
        shaderc->shaderc_compile_options_set_warnings_as_errors(options);
    } else if (!apply_value(shaderc, options, option)) {
        return kiln_diag_set(diag, KILN_E_INVALID,
                             "use -O, -O0, -Os, -g, -w, -Werror, -std=450core, "
                             "--target-env=vulkan1.N or --target-spv=spv1.N",
                             "GLSL option", "'%.80s' is not known", option);
    }
    return KILN_OK;
}

static kiln_status set_options(const kn_shaderc *shaderc, const kiln_source *source, void *options,
                               include_context *context, kiln_diag *diag)
{
    shaderc->shaderc_compile_options_set_target_env(options, SHADERC_TARGET_VULKAN,
                                                    1U << 22 | 1U << 12);
    shaderc->shaderc_compile_options_set_optimization_level(options, 2);
    shaderc->shaderc_compile_options_set_include_callbacks(options, resolve_include,
                                                           release_include, context);
    for (size_t i = 0; i < source->define_count; i++) {
        const char *value = source->defines[i].value != NULL ? source->defines[i].value : "1";
        shaderc->shaderc_compile_options_add_macro_definition(options, source->defines[i].name,
                                                              strlen(source->defines[i].name),
                                                              value, strlen(value));
    }
    for (size_t i = 0; i < source->option_count; i++) {
        kiln_status status = apply_option(shaderc, options, source->options[i], diag);
        if (status != KILN_OK) {
            return status;
        }
    }
    return KILN_OK;
}

/* For versions 1.10 to 1.40 the glslang of 2023 cannot read its own declarations for a compute
 * shader, and prints all 4,500 lines of them on the program's standard output. So what has no
 * compute shaders is refused here, as glslang would in the end. */
static kiln_status check_version(const kiln_source *source, const char *name, kiln_diag *diag)
{
    enum { FIRST_WITH_COMPUTE = 310 };
    int version = kn_glsl_version((const char *)source->text, source->length);
    const bool there = version > 0;
    for (size_t i = 0; i < source->option_count; i++) {
        if (strncmp(source->options[i], "-std=", 5) == 0) { /* the last one counts */
            version = (int)strtol(source->options[i] + 5, NULL, 10);
        }
    }
    if (version >= FIRST_WITH_COMPUTE) {
        return KILN_OK;
    }
    const char *fix = "write \"#version 450\" as the first line, or give the option -std=450";
    return version == 0 && !there
               ? kiln_diag_set(
                     diag, KILN_E_COMPILE, fix, name,
                     "it has no #version, and GLSL without one is version 1.10, which has "
                     "no compute shaders")
               : kiln_diag_set(diag, KILN_E_COMPILE, fix, name,
                               "version %d of GLSL has no compute shaders", version);
}

/* What vertex, fragment and other shaders have and compute shaders do not. */
static bool is_graphics(const char *log)
{
    static const char *const names[] = {"'gl_Position'",  "'gl_FragCoord'",   "'gl_FragColor'",
                                        "'gl_FragDepth'", "'gl_VertexIndex'", "'gl_VertexID'",
                                        "'gl_in'",        "'gl_InvocationID'"};
    for (size_t i = 0; log != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strstr(log, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static const char only_entry[] = "main\n"; /* of GLSL */

static kiln_status take_result(const kn_vk *vk, const void *result, const char *name,
                               kiln_artifact *artifact, kiln_diag *diag)
{
    const kn_shaderc *shaderc = &vk->shaderc;
    const char *log = shaderc->shaderc_result_get_error_message(result);
    const int code = shaderc->shaderc_result_get_compilation_status(result);
    const size_t size = shaderc->shaderc_result_get_length(result);
    if (code != SHADERC_STATUS_SUCCESS || size == 0) {
        kiln_status status = kiln_diag_set(
            diag, code == SHADERC_STATUS_ERROR ? KILN_E_COMPILE : KILN_E_INTERNAL,
            is_graphics(log) ? "give a compute shader: kiln compiles no other GLSL (use glslc)"
                             : "see the compiler's log; it is compiled as a compute shader",
            name, "shaderc could not compile it (status %d)", code);
        kiln_diag_set_vendor_code(diag, code);
        kiln_diag_set_log(diag, log != NULL ? log : "", log != NULL ? strlen(log) : 0);
        return status;
    }
    kiln_status status = vk->host->artifact_set(artifact, KILN_LANG_SPIRV,
                                                shaderc->shaderc_result_get_bytes(result), size);
    if (status == KILN_OK && log != NULL && log[0] != '\0') {
        status = vk->host->artifact_set_log(artifact, log, strlen(log));
    }
    if (status == KILN_OK) {
        status = vk->host->artifact_set_fact(artifact, KILN_FACT_ENTRIES, only_entry,
                                             strlen(only_entry));
    }
    return status == KILN_OK ? KILN_OK : kiln_diag_set(diag, status, NULL, name, "out of memory");
}

kiln_status kn_vk_compile_glsl(kn_vk *vk, const kiln_compile_request *request,
                               kiln_artifact *artifact, kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const char *name = source->name != NULL ? source->name : "kernel.comp";
    kiln_status status = check_version(source, name, diag);
    if (status == KILN_OK) {
        status = get_shaderc(vk, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    const kn_shaderc *shaderc = &vk->shaderc;
    include_context context = {source, false};
    void *compiler = shaderc->shaderc_compiler_initialize();
    void *options = shaderc->shaderc_compile_options_initialize();
    if (compiler == NULL || options == NULL) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "shaderc could not start");
        goto cleanup;
    }
    status = set_options(shaderc, source, options, &context, diag);
    if (status != KILN_OK) {
        goto cleanup;
    }
    /* Every GLSL entry point is main. */
    void *result =
        shaderc->shaderc_compile_into_spv(compiler, (const char *)source->text, source->length,
                                          SHADERC_KIND_COMPUTE, name, "main", options);
    if (result == NULL) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "shaderc gave no result");
        goto cleanup;
    }
    status = take_result(vk, result, name, artifact, diag);
    shaderc->shaderc_result_release(result);
cleanup:
    if (options != NULL) {
        shaderc->shaderc_compile_options_release(options);
    }
    if (compiler != NULL) {
        shaderc->shaderc_compiler_release(compiler);
    }
    return status;
}

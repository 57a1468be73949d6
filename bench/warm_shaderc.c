/* The matrix product's GLSL to SPIR-V by shaderc's own calls, with the options that kiln gives it:
 * what a program that starts from GLSL does by hand before Vulkan's calls. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/warm.h"
#include "hal/glsl_prelude.h"

enum { TARGET_VULKAN = 0, OPTIMISE = 2, COMPUTE = 2 };

typedef struct include_result {
    const char *name;
    size_t name_length;
    const char *content;
    size_t content_length;
    void *user;
} include_result;

typedef include_result *resolve_fn(void *, const char *, int, const char *, size_t);
typedef void release_fn(void *, include_result *);

/* The one header of the text is part of kiln's library. */
static include_result *resolve_prelude(void *user, const char *requested, int type,
                                       const char *requesting, size_t depth)
{
    static include_result prelude = {"kiln.glsl", 9, kn_glsl_prelude, sizeof(kn_glsl_prelude) - 1,
                                     NULL};
    (void)user;
    (void)requested;
    (void)type;
    (void)requesting;
    (void)depth;
    return &prelude;
}

static void release_prelude(void *user, include_result *include)
{
    (void)user;
    (void)include;
}

#define CALLS(X)                                                                                   \
    X(void *, shaderc_compiler_initialize, (void))                                                 \
    X(void, shaderc_compiler_release, (void *))                                                    \
    X(void *, shaderc_compile_options_initialize, (void))                                          \
    X(void, shaderc_compile_options_release, (void *))                                             \
    X(void, shaderc_compile_options_set_target_env, (void *, int, uint32_t))                       \
    X(void, shaderc_compile_options_set_optimization_level, (void *, int))                         \
    X(void, shaderc_compile_options_set_include_callbacks,                                         \
      (void *, resolve_fn *, release_fn *, void *))                                                \
    X(void *, shaderc_compile_into_spv,                                                            \
      (void *, const char *, size_t, int, const char *, const char *, void *))                     \
    X(size_t, shaderc_result_get_length, (const void *))                                           \
    X(const char *, shaderc_result_get_bytes, (const void *))                                      \
    X(void, shaderc_result_release, (void *))

static struct {
#define X(result, name, parameters) result(*name) parameters;
    CALLS(X)
#undef X
} sc;

/* A system's library has the functions by their names, kiln's module by one of its own. */
static bool bind_calls(void *library)
{
    typedef void any_function(void);
    any_function *(*find)(const char *name) = NULL;
    void *own = dlsym(library, "kiln_shaderc_symbol");
    bool whole = true;
    memcpy(&find, &own, sizeof(own));
#define X(result, name, parameters)                                                                \
    {                                                                                              \
        void *symbol = dlsym(library, #name);                                                      \
        any_function *function = find != NULL ? find(#name) : NULL;                                \
        memcpy(&sc.name, find != NULL ? (void *)&function : (void *)&symbol, sizeof(symbol));      \
        whole = whole && sc.name != NULL;                                                          \
    }
    CALLS(X)
#undef X
    return whole;
}

unsigned char *warm_shaderc_compile(const char *path, size_t *out_size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || !bind_calls(library)) {
        return NULL;
    }
    unsigned char *code = NULL;
    void *compiler = sc.shaderc_compiler_initialize();
    void *options = sc.shaderc_compile_options_initialize();
    sc.shaderc_compile_options_set_target_env(options, TARGET_VULKAN, 1U << 22 | 1U << 12);
    sc.shaderc_compile_options_set_optimization_level(options, OPTIMISE);
    sc.shaderc_compile_options_set_include_callbacks(options, resolve_prelude, release_prelude,
                                                     NULL);
    void *result = sc.shaderc_compile_into_spv(compiler, warm_glsl_text, strlen(warm_glsl_text),
                                               COMPUTE, "matmul.comp", "main", options);
    *out_size = result != NULL ? sc.shaderc_result_get_length(result) : 0;
    if (*out_size > 0 && (code = malloc(*out_size)) != NULL) {
        memcpy(code, sc.shaderc_result_get_bytes(result), *out_size);
    }
    if (result != NULL) {
        sc.shaderc_result_release(result);
    }
    sc.shaderc_compile_options_release(options);
    sc.shaderc_compiler_release(compiler);
    return code;
}

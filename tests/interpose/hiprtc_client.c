/* hiprtc_client LIBRARY [CASE ...]: hipRTC's calls in the orders in which callers make them, and
 * all that came back, a line an answer. It knows nothing of kiln: the same transcript must come of
 * hipRTC itself and of the library that stands in for it. LIBRARY is opened; built with
 * CLIENT_IS_LINKED the program is linked with hipRTC instead, and LIBRARY is not looked at.
 * $CLIENT_ARCH is another processor than gfx90a. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *program;
#define CALLS(X)                                                                                   \
    X(int, hiprtcVersion, (int *, int *))                                                          \
    X(const char *, hiprtcGetErrorString, (int))                                                   \
    X(int, hiprtcCreateProgram,                                                                    \
      (program *, const char *, const char *, int, const char **, const char **))                  \
    X(int, hiprtcDestroyProgram, (program *))                                                      \
    X(int, hiprtcCompileProgram, (program, int, const char **))                                    \
    X(int, hiprtcAddNameExpression, (program, const char *))                                       \
    X(int, hiprtcGetLoweredName, (program, const char *, const char **))                           \
    X(int, hiprtcGetProgramLogSize, (program, size_t *))                                           \
    X(int, hiprtcGetProgramLog, (program, char *))                                                 \
    X(int, hiprtcGetCodeSize, (program, size_t *))                                                 \
    X(int, hiprtcGetCode, (program, char *))
/* Not in ROCm 5.2. */
#define LATER_CALLS(X)                                                                             \
    X(int, hiprtcGetBitcodeSize, (program, size_t *))                                              \
    X(int, hiprtcGetBitcode, (program, char *))                                                    \
    X(int, hiprtcLinkCreate, (unsigned, int *, void **, void **))                                  \
    X(int, hiprtcLinkAddData,                                                                      \
      (void *, int, void *, size_t, const char *, unsigned, int *, void **))                       \
    X(int, hiprtcLinkComplete, (void *, void **, size_t *))                                        \
    X(int, hiprtcLinkDestroy, (void *))

#define X(type, name, parameters) type name parameters;
#ifdef CLIENT_IS_LINKED
CALLS(X)
#endif
#undef X

static struct {
#define X(type, name, parameters) type(*name) parameters;
    CALLS(X)
    LATER_CALLS(X)
#undef X
} rtc;

static const char kernel[] = "extern \"C\" __global__ void k(int *a) { *a = 1; }\n";
static char arch[64] = "--offload-arch=gfx90a";

/* --- what came back --------------------------------------------------------------------------- */

static void say_bytes(const char *what, int code, const char *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    }
    printf("%s %d %zu %016llx\n", what, code, size, (unsigned long long)hash);
}

static void say_output(const char *what, program of, int (*ask)(program, size_t *),
                       int (*get)(program, char *), int is_text)
{
    size_t size = 4711;
    int code = ask(of, &size);
    printf("%s size %d %zu\n", what, code, is_text ? 0 : size);
    if (code != 0 || size > (size_t)1 << 28) {
        return;
    }
    char *bytes = calloc(1, size + 1);
    code = bytes != NULL ? get(of, bytes) : -1;
    if (is_text) {
        printf("%s %d <%s>\n", what, code, bytes != NULL ? bytes : "");
    } else {
        say_bytes(what, code, bytes, size);
    }
    free(bytes);
}

static void say_all(program of)
{
    say_output("log", of, rtc.hiprtcGetProgramLogSize, rtc.hiprtcGetProgramLog, 1);
    say_output("code", of, rtc.hiprtcGetCodeSize, rtc.hiprtcGetCode, 0);
    if (rtc.hiprtcGetBitcodeSize != NULL) {
        say_output("bitcode", of, rtc.hiprtcGetBitcodeSize, rtc.hiprtcGetBitcode, 0);
    }
}

static void say_lowered(program of, const char *expression)
{
    const char *lowered = NULL;
    const int code = rtc.hiprtcGetLoweredName(of, expression, &lowered);
    printf("lowered %d %s\n", code, code == 0 ? lowered : "-");
}

/* --- one program ------------------------------------------------------------------------------ */

static program create(const char *text, const char *name)
{
    program made = NULL;
    printf("create %d\n", rtc.hiprtcCreateProgram(&made, text, name, 0, NULL, NULL));
    return made;
}

static void compile(program of, const char *option, const char *more)
{
    const char *options[] = {arch, option, more};
    const int count = more != NULL ? 3 : option != NULL ? 2 : 1;
    printf("compile %d\n", rtc.hiprtcCompileProgram(of, count, options));
}

static void destroy(program of)
{
    program handle = of;
    const int code = rtc.hiprtcDestroyProgram(&handle);
    printf("destroy %d %s\n", code, handle == of ? "kept" : "cleared");
}

static void compile_one(const char *text, const char *name, const char *option)
{
    program made = create(text, name);
    compile(made, option, NULL);
    say_all(made);
    destroy(made);
}

/* --- the cases -------------------------------------------------------------------------------- */

static void version(void)
{
    int major = -1;
    int minor = -1;
    const int code = rtc.hiprtcVersion(&major, &minor);
    printf("version %d %d %d\n", code, major, minor);
    for (int i = 0; i < 7; i++) {
        printf("%s\n", rtc.hiprtcGetErrorString(i));
    }
}

static void machine_code(void)
{
    static const char *const names[] = {NULL, "plain.hip", "/no/such/place/x.hip"};
    for (size_t i = 0; i < 3; i++) {
        compile_one(kernel, names[i], NULL);
    }
}

static void compile_error(void)
{
    compile_one("extern \"C\" __global__ void k(int *a) { *a = nothing; }", "wrong.hip", NULL);
}

static void warnings(void)
{
    static const char text[] = "extern \"C\" __global__ void k(int *a) { int unused; *a = 2; }";
    static const char *const names[] = {"one.hip", "other.hip", "/no/such/place/x.hip"};
    for (size_t i = 0; i < 3; i++) {
        compile_one(text, names[i], "-Wunused-variable");
    }
}

static void no_architecture(void)
{
    static const char *const options[] = {"-O2"};
    program made = create(kernel, "device.hip");
    printf("compile %d\n", rtc.hiprtcCompileProgram(made, 1, (const char **)(uintptr_t)options));
    say_all(made);
    destroy(made);
}

static void definitions(void)
{
    static const char text[] =
        "#ifdef VALUE_OF_A\nextern \"C\" __global__ void k(int *a) { *a = VALUE_OF_A; }\n#endif\n";
    compile_one(text, "define.hip", NULL);
    compile_one(text, "define.hip", "-DVALUE_OF_A=1");
    compile_one(text, "define.hip", "-DVALUE_OF_A=2");
}

static void includes(void)
{
    static const char text[] =
        "#include \"value.h\"\nextern \"C\" __global__ void k(int *a) { *a = VALUE; }\n";
    compile_one(text, "include.hip", "-Isub");
    program made = create(text, "include.hip");
    compile(made, "-I", "other");
    say_all(made);
    destroy(made);
}

static void headers_in_memory(void)
{
    const char *texts[] = {"#define VALUE 71\n", "#include \"value.h\"\n"};
    const char *names[] = {"value.h", "more.h"};
    program made = NULL;
    printf("create %d\n",
           rtc.hiprtcCreateProgram(&made,
                                   "#include \"more.h\"\n"
                                   "extern \"C\" __global__ void k(int *a) { *a = VALUE; }\n",
                                   "memory.hip", 2, texts, names));
    compile(made, NULL, NULL);
    say_all(made);
    destroy(made);
}

static void name_expressions(void)
{
    static const char text[] = "template <class T> __global__ void fill(T *x, T v) { *x = v; }\n";
    program made = create(text, "names.hip");
    printf("express %d\n", rtc.hiprtcAddNameExpression(made, "fill<float>"));
    printf("express %d\n", rtc.hiprtcAddNameExpression(made, "fill<int>"));
    compile(made, NULL, NULL);
    say_all(made);
    say_lowered(made, "fill<int>");
    say_lowered(made, "fill<float>");
    say_lowered(made, "fill<double>");
    destroy(made);
}

static void before_a_compile(void)
{
    program made = create(kernel, "before.hip");
    say_output("code", made, rtc.hiprtcGetCodeSize, rtc.hiprtcGetCode, 0);
    destroy(made);
}

static void twice(void)
{
    program made = create(kernel, "twice.hip");
    compile(made, "-O1", NULL);
    say_all(made);
    compile(made, "-O2", NULL);
    say_all(made);
    destroy(made);
}

static void *work(void *user)
{
    const char *name = user;
    program made = NULL;
    const char *options[] = {arch};
    size_t size = 0;
    int good = rtc.hiprtcCreateProgram(&made, kernel, name, 0, NULL, NULL) == 0 &&
               rtc.hiprtcCompileProgram(made, 1, options) == 0 &&
               rtc.hiprtcGetCodeSize(made, &size) == 0;
    good = good && rtc.hiprtcDestroyProgram(&made) == 0;
    return good ? user : NULL;
}

static void threads(void)
{
    static char names[] = "a\0b\0c\0d\0e\0f\0g\0h";
    pthread_t all[8];
    void *result = NULL;
    int good = 0;
    for (size_t i = 0; i < 8; i++) {
        if (pthread_create(&all[i], NULL, work, names + 2 * i) != 0) {
            abort();
        }
    }
    for (size_t i = 0; i < 8; i++) {
        good += pthread_join(all[i], &result) == 0 && result != NULL;
    }
    printf("threads %d\n", good);
}

static void odd_arguments(void)
{
    printf("%d\n", rtc.hiprtcCreateProgram(NULL, kernel, "x", 0, NULL, NULL));
    printf("%d\n", rtc.hiprtcDestroyProgram(NULL));
    program made = create(kernel, "odd.hip");
    printf("%d\n", rtc.hiprtcAddNameExpression(made, NULL));
    compile(made, NULL, NULL);
    printf("%d\n", rtc.hiprtcGetCodeSize(made, NULL));
    printf("%d\n", rtc.hiprtcGetCode(made, NULL));
    printf("%d\n", rtc.hiprtcGetProgramLogSize(made, NULL));
    printf("%d\n", rtc.hiprtcGetLoweredName(made, NULL, NULL));
    say_all(made);
    destroy(made);
}

/* Bitcode, linked. */
static void links(void)
{
    enum { BITCODE = 100 };
    size_t size = 0;
    void *state = NULL;
    void *binary = NULL;
    if (rtc.hiprtcGetBitcodeSize == NULL) {
        return;
    }
    program made = create(kernel, "link.hip");
    compile(made, "-fgpu-rdc", NULL);
    printf("bitcode %d\n", rtc.hiprtcGetBitcodeSize(made, &size));
    char *bitcode = malloc(size);
    printf("bitcode %d\n", rtc.hiprtcGetBitcode(made, bitcode));
    printf("link %d\n", rtc.hiprtcLinkCreate(0, NULL, NULL, &state));
    printf("link %d\n",
           rtc.hiprtcLinkAddData(state, BITCODE, bitcode, size, "link", 0, NULL, NULL));
    const int code = rtc.hiprtcLinkComplete(state, &binary, &size);
    printf("link %d %d\n", code, size > 0);
    printf("link %d\n", rtc.hiprtcLinkDestroy(state));
    free(bitcode);
    destroy(made);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"version", version},
    {"machine_code", machine_code},
    {"compile_error", compile_error},
    {"warnings", warnings},
    {"no_architecture", no_architecture},
    {"definitions", definitions},
    {"includes", includes},
    {"headers_in_memory", headers_in_memory},
    {"name_expressions", name_expressions},
    {"before_a_compile", before_a_compile},
    {"twice", twice},
    {"threads", threads},
    {"odd_arguments", odd_arguments},
    {"links", links},
};

#ifndef CLIENT_IS_LINKED
static void bind(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof(symbol));
}

#endif

int main(int count, char **arguments)
{
    if (getenv("CLIENT_ARCH") != NULL) {
        (void)snprintf(arch, sizeof(arch), "--offload-arch=%s", getenv("CLIENT_ARCH"));
    }
#ifdef CLIENT_IS_LINKED
#define X(type, name, parameters) rtc.name = name;
    CALLS(X)
#undef X
#else
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", count > 1 ? dlerror() : "no library is named");
        return 2;
    }
#define X(type, name, parameters) bind(library, #name, &rtc.name);
    CALLS(X)
    if (getenv("CLIENT_LACKS_LATER") == NULL) {
        LATER_CALLS(X)
    }
#undef X
#endif
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int wanted = count <= 2;
        for (int k = 2; k < count; k++) {
            wanted = wanted || strcmp(arguments[k], cases[i].name) == 0;
        }
        if (wanted) {
            printf("== %s\n", cases[i].name);
            (void)fflush(stdout);
            cases[i].run();
        }
    }
    return 0;
}

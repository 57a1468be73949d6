/* What of the cuda backend only a real driver can show. A host program's own context
 * stays current and its primary one alive, static and dynamic shared memory together, names longer
 * than any buffer; link-time optimisation, clusters, and (last, as nothing works after it) a
 * kernel's fault that comes back as a lost device. Exit 77 without a CUDA device. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

static const char text[] =
    "template <class A, class B, class C, class D> struct list {};\n"
    "template <class T> __device__ int mark();\n"
    "template <> __device__ int mark<float>() { return 1; }\n"
    "template <> __device__ int mark<int>() { return 2; }\n"
    "template <class L, class T> __global__ void marked(int *x) { x[threadIdx.x] = mark<T>(); }\n"
    "extern \"C\" __global__ void shared(int *x)\n"
    "{\n"
    "    __shared__ int fixed[10240];\n"
    "    extern __shared__ int dynamic[];\n"
    "    fixed[threadIdx.x * 80] = (int)threadIdx.x;\n"
    "    dynamic[threadIdx.x * 32] = 2 * (int)threadIdx.x;\n"
    "    __syncthreads();\n"
    "    const unsigned other = (threadIdx.x + 1) % blockDim.x;\n"
    "    x[threadIdx.x] = fixed[other * 80] + dynamic[other * 32];\n"
    "}\n"
    "extern \"C\" __global__ void clusters(int *x)\n"
    "{\n"
    "    int count = 0;\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "    asm volatile(\"mov.u32 %0, %%cluster_nctaid.x;\" : \"=r\"(count));\n"
    "#endif\n"
    "    x[blockIdx.x * blockDim.x + threadIdx.x] = count;\n"
    "}\n"
    "extern \"C\" __global__ void slow(int *x)\n"
    "{\n"
    "    const long long start = clock64();\n"
    "    while (clock64() - start < 400000000) { }\n"
    "    x[threadIdx.x] = 7;\n"
    "}\n"
    "extern \"C\" __global__ void misaligned(char *x) { *(volatile int *)(x + 1) = 1; }\n";

enum { COUNT = 128, LONG = 900 };

typedef struct rig {
    kiln_cache *cache;
    kiln_runtime *runtime;
    kiln_device *device;
    kiln_queue *queue;
    kiln_buffer *buffer;
} rig;

static int bad;

static void need(kiln_status status, kiln_diag *diag, const char *what)
{
    if (status != KILN_OK) {
        char line[4096];
        (void)kiln_diag_format(diag, line, sizeof(line));
        fprintf(stderr, "hard_cases: %s: error: %s\n%s\n", what, line,
                diag->log != NULL ? diag->log : "");
        exit(1);
    }
}

static void check(bool good, const char *what)
{
    printf("%s  %s\n", good ? "ok    " : "WRONG ", what);
    bad += good ? 0 : 1;
}

static kiln_program *build(rig *r, const char *const *entries, size_t count, const char *option)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_CUDA;
    source.name = "hard_cases.cu";
    source.text = text;
    source.length = sizeof(text) - 1;
    source.entries = entries;
    source.entry_count = count;
    source.options = &option;
    source.option_count = option != NULL ? 1 : 0;
    need(kiln_program_build(r->device, &source, 1, NULL, &program, &diag), &diag, "build");
    return program;
}

static kiln_status launch(rig *r, kiln_program *program, const char *entry, kiln_launch shape,
                          int values[COUNT], kiln_diag *diag)
{
    const kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = r->buffer};
    shape.struct_size = sizeof(shape);
    shape.dims = 1;
    shape.global[0] = COUNT;
    shape.args = &arg;
    shape.arg_count = 1;
    kiln_status status = kiln_queue_launch(r->queue, program, entry, &shape, NULL, diag);
    return status == KILN_OK
               ? kiln_queue_read(r->queue, r->buffer, 0, values, COUNT * sizeof(int), diag)
               : status;
}

/* --- the cases -------------------------------------------------------------------------------- */

static void long_names(rig *r)
{
    kiln_diag diag = KILN_DIAG_INIT;
    int values[COUNT];
    char names[2][LONG + 64];
    static const char *const types[2] = {"float", "int"};
    for (int i = 0; i < 2; i++) {
        size_t used = (size_t)snprintf(names[i], sizeof(names[i]), "marked<list<int");
        while (used < LONG) {
            used += (size_t)snprintf(names[i] + used, sizeof(names[i]) - used, " *");
        }
        (void)snprintf(names[i] + used, sizeof(names[i]) - used, ", int, int, int>, %s>", types[i]);
    }
    const char *const entries[] = {names[0], names[1]};
    kiln_program *program = build(r, entries, 2, NULL);
    for (int i = 0; i < 2; i++) {
        need(launch(r, program, names[i], (kiln_launch){.local = {64}}, values, &diag), &diag,
             "launch by a long name");
        check(values[0] == i + 1,
              i == 0 ? "a name of 900 characters" : "another, alike until then");
    }
    kiln_program_release(program);
}

static void shared_memory(rig *r, const char *option, const char *what)
{
    kiln_diag diag = KILN_DIAG_INIT;
    int values[COUNT];
    kiln_program *program = build(r, NULL, 0, option);
    need(launch(r, program, "shared",
                (kiln_launch){.local = {COUNT}, .shared_bytes = COUNT * 32 * sizeof(int)}, values,
                &diag),
         &diag, what);
    bool good = true;
    for (int i = 0; i < COUNT; i++) {
        good = good && values[i] == 3 * ((i + 1) % COUNT);
    }
    check(good, what);
    kiln_program_release(program);
}

static void clusters(rig *r)
{
    kiln_diag diag = KILN_DIAG_INIT;
    int values[COUNT];
    if (atoi(kiln_device_get_info(r->device)->target + strlen("sm_")) < 90) {
        printf("none    no clusters before sm_90\n");
        return;
    }
    kiln_program *program = build(r, NULL, 0, NULL);
    need(
        launch(r, program, "clusters", (kiln_launch){.local = {32}, .cluster = {2}}, values, &diag),
        &diag, "clusters");
    check(values[0] == 2 && values[COUNT - 1] == 2, "clusters of two groups");
    const kiln_status status =
        launch(r, program, "clusters", (kiln_launch){.local = {32}, .cluster = {3}}, values, &diag);
    char line[1024];
    (void)kiln_diag_format(&diag, line, sizeof(line));
    printf("        a cluster of 3 in a grid of 4: %s: %s\n", kiln_status_name(status), line);
    check(status == KILN_E_INVALID,
          "a cluster that does not divide the grid is the caller's fault");
    kiln_diag_clear(&diag);
    kiln_program_release(program);
}

/* The last reference goes while the kernel runs, and other code is loaded meanwhile. */
static void released_while_it_runs(rig *r)
{
    kiln_diag diag = KILN_DIAG_INIT;
    int values[COUNT] = {0};
    const kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = r->buffer};
    const kiln_launch shape = {.struct_size = sizeof(shape),
                               .dims = 1,
                               .global = {COUNT},
                               .local = {COUNT},
                               .args = &arg,
                               .arg_count = 1};
    kiln_program *program = build(r, NULL, 0, "-DRELEASED");
    need(kiln_queue_launch(r->queue, program, "slow", &shape, NULL, &diag), &diag, "slow");
    kiln_program_release(program);
    program = build(r, NULL, 0, "-DOTHER");
    need(kiln_queue_read(r->queue, r->buffer, 0, values, sizeof(values), &diag), &diag,
         "a program released while its kernel ran");
    check(values[0] == 7 && values[COUNT - 1] == 7, "a program released while its kernel runs");
    kiln_program_release(program);
}

static void fault(rig *r)
{
    kiln_diag diag = KILN_DIAG_INIT;
    int values[COUNT];
    kiln_program *program = build(r, NULL, 0, NULL);
    const kiln_status status =
        launch(r, program, "misaligned", (kiln_launch){.local = {64}}, values, &diag);
    char line[1024];
    (void)kiln_diag_format(&diag, line, sizeof(line));
    printf("        a misaligned address: %s: %s\n", kiln_status_name(status), line);
    check(status == KILN_E_DEVICE_LOST, "a misaligned address loses the device");
    check(kiln_queue_finish(r->queue, &diag) == KILN_E_DEVICE_LOST, "and it stays lost");
    kiln_diag_clear(&diag);
    kiln_program_release(program);
}

/* --- a host program with CUDA of its own ------------------------------------------------------ */

typedef struct host {
    int (*init)(unsigned int);
    int (*retain)(void **, int);
    int (*release)(int);
    int (*set)(void *);
    int (*get)(void **);
    int (*alloc)(uint64_t *, size_t);
    int (*free)(uint64_t);
    void *primary;
    uint64_t memory;
} host;

static bool find(void *library, const char *name, void *out_function)
{
    void *symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

/* The primary context current and in use, as a program with the CUDA runtime has it. */
static bool host_start(host *h)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != NULL && find(library, "cuInit", &h->init) &&
           find(library, "cuDevicePrimaryCtxRetain", &h->retain) &&
           find(library, "cuDevicePrimaryCtxRelease_v2", &h->release) &&
           find(library, "cuCtxSetCurrent", &h->set) && find(library, "cuCtxGetCurrent", &h->get) &&
           find(library, "cuMemAlloc_v2", &h->alloc) && find(library, "cuMemFree_v2", &h->free) &&
           h->init(0) == 0 && h->retain(&h->primary, 0) == 0 && h->set(h->primary) == 0 &&
           h->alloc(&h->memory, 4096) == 0;
}

static bool is_current(const host *h)
{
    void *now = NULL;
    return h->get(&now) == 0 && now == h->primary;
}

/* --- all of it -------------------------------------------------------------------------------- */

static bool open_all(rig *r)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    memset(r, 0, sizeof(*r));
    need(kiln_cache_options_init(&cache_options, &diag), &diag, "options");
    cache_options.flags = KILN_CACHE_NO_DISK;
    need(kiln_cache_create(&cache_options, &r->cache, &diag), &diag, "cache");
    need(kiln_runtime_options_init(&options, &diag), &diag, "options");
    options.backend = "cuda";
    options.cache = r->cache;
    options.strict = true;
    if (kiln_runtime_create(&options, &r->runtime, &diag) != KILN_OK ||
        kiln_runtime_device_count(r->runtime) == 0) {
        kiln_diag_clear(&diag);
        return false;
    }
    r->device = kiln_runtime_device(r->runtime, 0);
    need(kiln_queue_create(r->device, &r->queue, &diag), &diag, "queue");
    need(kiln_buffer_create(r->device, COUNT * sizeof(int), &r->buffer, &diag), &diag, "buffer");
    return true;
}

static void close_all(rig *r)
{
    kiln_buffer_destroy(r->buffer);
    kiln_queue_destroy(r->queue);
    kiln_runtime_destroy(r->runtime);
    kiln_cache_destroy(r->cache);
}

int main(void)
{
    rig r;
    host h = {0};
    const bool own = host_start(&h);
    if (!own || !open_all(&r)) {
        printf("hard_cases: there is no CUDA device here\n");
        return 77;
    }
    long_names(&r);
    shared_memory(&r, NULL, "40 KiB of static and 16 KiB of dynamic shared memory");
    shared_memory(&r, "-dlto", "the same through nvJitLink");
    clusters(&r);
    released_while_it_runs(&r);
    check(is_current(&h), "the host's context is current still");
    close_all(&r);
    check(is_current(&h) && h.free(h.memory) == 0 && h.alloc(&h.memory, 4096) == 0,
          "and works when the runtime is gone");
    if (open_all(&r)) {
        fault(&r);
        close_all(&r);
    }
    printf("hard_cases: %s\n", bad == 0 ? "good" : "BAD");
    return bad == 0 ? 0 : 1;
}

/* An engine of many kernels: generated variants of the example kernels, in a fresh process. They
 * are loaded from kiln's disk tier and from a pack, one after the other and by kiln_warm_start,
 * next to as many binaries read from files and loaded by the driver's own calls, in one thread and
 * in one a processor: time, peak memory, open files; and how the store alone grows.
 *
 *     bench_thousand [store | opencl|cuda COUNT [RUNS]]     default: opencl 200, then the store
 *
 * OLD=PROGRAM: a bench_thousand of another state takes turns with this one, on what it stored
 * itself. KILN_BENCH_KERNELS names the directory `kernels` where it is not that of the build. */
#include <dirent.h>
#include <kiln/kiln.h>
#include <kiln/unstable/compile.h>
#include <kiln/unstable/counters.h>
#include <kiln/unstable/pack.h>
#include <kiln/unstable/warm.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/thousand.h"

enum { MOST = 4096, THREADS = 64 };

static const char *const names[] = {"gemm",    "quantise_absmax", "rms_norm",
                                    "rotary",  "saxpy",           "silu_gate",
                                    "softmax", "ternary_matmul",  "ternary_matvec"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static int refuse(const char *what, kiln_diag *diag)
{
    char line[1024];
    (void)kiln_diag_format(diag, line, sizeof(line));
    (void)fprintf(stderr, "bench_thousand: %s: %s\n", what, line);
    return 1;
}

/* --- the kernels ------------------------------------------------------------------------------ */

typedef struct variant {
    char entry[48], file[600];
    const char *entries[1], *include[1];
    char *text;
    kiln_source source;
} variant;

static const char *kernels_dir(void)
{
    const char *named = getenv("KILN_BENCH_KERNELS");
    return named != NULL ? named : BENCH_KERNELS;
}

/* Number `n`: an example kernel with a name of its own, and so a binary of its own. */
static void make_variant(const char *backend, int n, variant *v)
{
    static char include[600];
    const bool cuda = strcmp(backend, "cuda") == 0;
    const char *name = names[n % NAMES];
    size_t size = 0;
    (void)snprintf(include, sizeof(include), "%s/include", kernels_dir());
    (void)snprintf(v->file, sizeof(v->file), "%s/%s/%s.%s", kernels_dir(), backend, name,
                   cuda ? "cu" : "cl");
    (void)snprintf(v->entry, sizeof(v->entry), "%s_%d", name, n);
    unsigned char *body = bench_read(v->file, &size);
    v->text = body != NULL ? malloc(size + 128) : NULL;
    if (v->text == NULL) {
        (void)fprintf(stderr, "bench_thousand: %s cannot be read\n", v->file);
        exit(1);
    }
    const int head = snprintf(v->text, 128, "#define %s %s\n", name, v->entry);
    memcpy(v->text + head, body, size);
    free(body);
    v->entries[0] = v->entry;
    v->include[0] = include;
    const kiln_source empty = KILN_SOURCE_INIT;
    v->source = empty;
    v->source.language = cuda ? KILN_LANG_CUDA : KILN_LANG_OPENCL_C;
    v->source.name = v->file;
    v->source.text = v->text;
    v->source.length = size + (size_t)head;
    v->source.include_dirs = v->include;
    v->source.include_dir_count = 1;
    v->source.entries = v->entries;
    v->source.entry_count = 1;
}

static variant *make_all(const char *backend, int count)
{
    variant *all = calloc((size_t)count, sizeof(*all));
    for (int i = 0; i < count && all != NULL; i++) {
        make_variant(backend, i, &all[i]);
    }
    return all;
}

static kiln_runtime *open_on(const char *backend)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    if (kiln_runtime_options_init(&options, &diag) != KILN_OK) {
        exit(refuse("options", &diag));
    }
    options.backend = backend;
    options.strict = true;
    if (kiln_runtime_create(&options, &runtime, &diag) != KILN_OK) {
        exit(refuse("runtime", &diag));
    }
    return runtime;
}

/* --- the children ----------------------------------------------------------------------------- */

typedef struct filling {
    kiln_runtime *runtime;
    const char *backend, *dir;
    variant *all;
    int count;
    atomic_int next, failed;
} filling;

/* The binary also goes to a file, for the hand. */
static bool compile_variant(const filling *f, int i)
{
    char target[32], path[700];
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    (void)snprintf(target, sizeof(target), "%s:0", f->backend);
    (void)snprintf(path, sizeof(path), "%s/%04d.bin", f->dir, i);
    if (kiln_compile(f->runtime, target, &f->all[i].source, &blob, NULL, &diag) != KILN_OK) {
        (void)refuse(f->all[i].entry, &diag);
        return false;
    }
    FILE *file = fopen(path, "wb");
    const size_t size = kiln_blob_size(blob);
    const bool good = file != NULL && fwrite(kiln_blob_data(blob), 1, size, file) == size;
    kiln_blob_release(blob);
    return (file == NULL || fclose(file) == 0) && good;
}

static void *fill_some(void *user)
{
    filling *f = user;
    for (int i = atomic_fetch_add(&f->next, 1); i < f->count; i = atomic_fetch_add(&f->next, 1)) {
        if (!compile_variant(f, i)) {
            (void)atomic_fetch_add(&f->failed, 1);
        }
    }
    return NULL;
}

static bool write_pack(kiln_cache *cache, const char *dir, kiln_diag *diag)
{
    char path[700];
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof copied};
    const kiln_pack_writer_options options = {.struct_size = sizeof options, .raw = true};
    (void)snprintf(path, sizeof(path), "%s/all.kpack", dir);
    const bool good =
        kiln_pack_writer_create(path, &options, &writer, diag) == KILN_OK &&
        kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, diag) == KILN_OK &&
        kiln_pack_writer_finish(writer, NULL, diag) == KILN_OK;
    kiln_pack_writer_destroy(writer);
    return good;
}

static int child_fill(const char *backend, const char *dir, int count)
{
    kiln_diag diag = KILN_DIAG_INIT;
    pthread_t threads[THREADS];
    filling f = {open_on(backend), backend, dir, make_all(backend, count), count, 0, 0};
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int crew = processors < THREADS ? (int)processors : THREADS;
    int started = 0;
    const double start = bench_now();
    while (started < crew && pthread_create(&threads[started], NULL, fill_some, &f) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    const double took = bench_now() - start;
    if (atomic_load(&f.failed) != 0 || !write_pack(kiln_runtime_cache(f.runtime), dir, &diag)) {
        return refuse("fill", &diag);
    }
    kiln_runtime_destroy(f.runtime);
    printf("%.1f\n", took * 1e3);
    return 0;
}

static int open_files(void)
{
    int count = -3; /* ".", ".." and the one that looks */
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Prints "load ms, kiln's own ms, peak MB, files opened, compiles, processor ms". */
static void print_load(double start, double worked, double own, int files, uint64_t compiles)
{
    struct rusage usage;
    const double took = bench_now() - start;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%.3f %.3f %.3f %d %llu %.3f\n", took * 1e3, own, (double)usage.ru_maxrss / 1024,
           open_files() - files, (unsigned long long)compiles, worked * 1e3);
    (void)fflush(stdout);
}

static int child_kiln(const char *backend, int count)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime *runtime = open_on(backend);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    kiln_buffer *ready = NULL;
    if (kiln_buffer_create(device, 4, &ready, &diag) != KILN_OK) {
        return refuse("device", &diag);
    }
    variant *all = make_all(backend, count);
    double own = 0;
    const int files = open_files();
    const double cpu = bench_own(), start = bench_now();
    for (int i = 0; i < count; i++) {
        kiln_program *program = NULL;
        if (kiln_program_build(device, &all[i].source, 1, NULL, &program, &diag) != KILN_OK) {
            return refuse(all[i].entry, &diag);
        }
        const kiln_build_info *info = kiln_program_get_info(program);
        own += (double)(info->total_ns - info->load_ns - info->compile_ns) / 1e6;
    }
    print_load(start, bench_own() - cpu, own, files,
               kiln_cache_counter(kiln_runtime_cache(runtime), KILN_COUNTER_COMPILES));
    _Exit(0); /* the programs are nobody's: what is left is the process's */
}

/* All of them by kiln_warm_start, one job a processor; processor time is the whole process's. */
static int child_warm(const char *backend, int count)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime *runtime = open_on(backend);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    kiln_buffer *ready = NULL;
    kiln_warm *warm = NULL;
    kiln_warm_state state = {.struct_size = sizeof(state)};
    const kiln_warm_options options = {.struct_size = sizeof(options), .in_order = true};
    if (kiln_buffer_create(device, 4, &ready, &diag) != KILN_OK) {
        return refuse("device", &diag);
    }
    variant *all = make_all(backend, count);
    kiln_warm_item *items = calloc((size_t)count, sizeof(*items));
    for (int i = 0; i < count && items != NULL; i++) {
        items[i] = (kiln_warm_item){&all[i].source, 1};
    }
    const int files = open_files();
    const clock_t cpu = clock();
    const double start = bench_now();
    if (kiln_warm_start(device, items, (size_t)count, &options, &warm, &diag) != KILN_OK) {
        return refuse("warm", &diag);
    }
    kiln_warm_wait(warm);
    const double took = (double)(clock() - cpu) / CLOCKS_PER_SEC;
    if (kiln_warm_get_state(warm, &state, &diag) != KILN_OK || state.built != (size_t)count) {
        return refuse("warm", &diag);
    }
    print_load(start, took, 0, files, state.compiled);
    _Exit(0);
}

typedef struct handful {
    const char *backend, *dir;
    const variant *all;
    int count;
    atomic_int next, failed;
} handful;

static void *load_some(void *user)
{
    handful *h = user;
    bool good = thousand_hand_enter(h->backend);
    for (int i = atomic_fetch_add(&h->next, 1); good && i < h->count;
         i = atomic_fetch_add(&h->next, 1)) {
        char path[700];
        size_t size = 0;
        (void)snprintf(path, sizeof(path), "%s/%04d.bin", h->dir, i);
        unsigned char *binary = bench_read(path, &size);
        good = binary != NULL && thousand_hand_load(h->backend, binary, size, h->all[i].entry);
        free(binary);
        if (!good) {
            (void)fprintf(stderr, "bench_thousand: %s does not load\n", path);
        }
    }
    if (!good) {
        atomic_store(&h->failed, 1);
    }
    return NULL;
}

/* In this thread, or with `crowd` in one a processor. */
static int child_hand(const char *backend, const char *dir, int count, bool crowd)
{
    pthread_t threads[THREADS];
    if (!thousand_hand_open(backend)) {
        return 1;
    }
    const int files = open_files();
    handful h = {backend, dir, make_all(backend, count), count, 0, 0}; /* counts for both */
    const long processors = crowd ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    int started = 0;
    const clock_t process = clock();
    const double cpu = bench_own(), start = bench_now();
    while (started < processors && started < THREADS &&
           pthread_create(&threads[started], NULL, load_some, &h) == 0) {
        started++;
    }
    if (started == 0) {
        (void)load_some(&h);
    }
    for (int i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    if (atomic_load(&h.failed) != 0) {
        return 1;
    }
    print_load(start, crowd ? (double)(clock() - process) / CLOCKS_PER_SEC : bench_own() - cpu, 0,
               files, 0);
    _Exit(0);
}

/* --- the parent ------------------------------------------------------------------------------- */

typedef struct arm {
    const char *name, *what;
    bool pack, kept, old;
    bench_samples load, own, peak, files, cpu;
    double compiles;
} arm;

/* With a pack the cache is empty, or has what earlier starts from the pack left: lists of headers.
 */
static void use_cache(const char *root, const arm *a, int run)
{
    char path[700];
    if (a->pack) {
        (void)snprintf(path, sizeof(path), "%s/all.kpack", root);
        (void)setenv("KILN_PACKS", path, 1);
        (void)snprintf(path, sizeof(path), "%s/beside-%d", root, a->kept ? -1 : run);
    } else {
        (void)unsetenv("KILN_PACKS");
        (void)snprintf(path, sizeof(path), "%s/cache", root);
    }
    (void)setenv("KILN_CACHE_DIR", path, 1);
}

/* Milliseconds; below 0 if the backend is not here. */
static double fill_dir(const char *program, const char *backend, const char *dir, const char *count)
{
    static const arm none = {.what = "fill"};
    double values[BENCH_MAX_VALUES];
    char *argv[] = {(char *)(uintptr_t)program, "fill",
                    (char *)(uintptr_t)backend, (char *)(uintptr_t)dir,
                    (char *)(uintptr_t)count,   NULL};
    use_cache(dir, &none, 0);
    return bench_child(argv, values) == 1 ? values[0] : -1;
}

static void print_arms(const char *backend, const char *count, const arm *arms, size_t number)
{
    puts("| backend | kernels | way | load all, ms | of by hand | processor, ms | of by hand | "
         "kiln's own, ms | peak MB | files open | compiles |\n| --- | ---: | --- | --- | ---: | "
         "--- | ---: | ---: | ---: | ---: | ---: |");
    for (size_t i = 0; i < number; i++) {
        const arm *a = &arms[i];
        printf("| %s | %s | %s | %.1f (%.1f to %.1f) | %.2f | %.1f (%.1f to %.1f) | %.2f | %.1f | "
               "%.1f | %.0f | %.0f |\n",
               backend, count, a->name, bench_median(&a->load), bench_quantile(&a->load, 0),
               bench_quantile(&a->load, 1), bench_median(&a->load) / bench_median(&arms[0].load),
               bench_median(&a->cpu), bench_quantile(&a->cpu, 0), bench_quantile(&a->cpu, 1),
               bench_median(&a->cpu) / bench_median(&arms[0].cpu), bench_median(&a->own),
               bench_median(&a->peak), bench_median(&a->files), a->compiles);
    }
    (void)fflush(stdout);
}

static int measure(const char *self, const char *root, const char *backend, const char *count,
                   int runs)
{
    static arm arms[] = {
        {.name = "binaries in files, by hand", .what = "hand"},
        {.name = "kiln, from disk", .what = "kiln"},
        {.name = "kiln, from a pack", .what = "kiln", .pack = true, .kept = true},
        {.name = "kiln, first start from a pack", .what = "kiln", .pack = true},
        {.name = "by hand, in all processors", .what = "crowd"},
        {.name = "kiln_warm_start, from disk", .what = "warm"},
        {.name = "kiln_warm_start, from a pack", .what = "warm", .pack = true, .kept = true},
        {.name = "old kiln, from disk", .what = "kiln", .old = true},
        {.name = "old kiln, from a pack", .what = "kiln", .pack = true, .kept = true, .old = true},
        {.name = "old kiln, first start from a pack", .what = "kiln", .pack = true, .old = true}};
    const char *old = getenv("OLD");
    const size_t number = old != NULL ? sizeof(arms) / sizeof(arms[0]) : 7;
    double values[BENCH_MAX_VALUES];
    char before[600];
    (void)snprintf(before, sizeof(before), "%s/old", root);
    const double took = fill_dir(self, backend, root, count);
    if (took < 0 ||
        (old != NULL && (mkdir(before, 0700) != 0 || fill_dir(old, backend, before, count) < 0))) {
        printf("%s: not here, or not filled: see above\n", backend);
        return 1;
    }
    printf("%s kernels for %s compiled and stored in %.0f ms\n\n", count, backend, took);
    for (int run = -1; run < runs; run++) { /* the first reads the files into the page cache */
        for (size_t i = 0; i < number; i++) {
            const char *dir = arms[i].old ? before : root;
            char *argv[] = {(char *)(uintptr_t)(arms[i].old ? old : self),
                            (char *)(uintptr_t)arms[i].what,
                            (char *)(uintptr_t)backend,
                            (char *)(uintptr_t)dir,
                            (char *)(uintptr_t)count,
                            NULL};
            use_cache(dir, &arms[i], run + 1);
            if (bench_child(argv, values) != 6) {
                (void)fprintf(stderr, "bench_thousand: %s failed\n", arms[i].name);
                return 1;
            }
            if (run >= 0) {
                bench_add(&arms[i].load, values[0]);
                bench_add(&arms[i].own, values[1]);
                bench_add(&arms[i].peak, values[2]);
                bench_add(&arms[i].files, values[3]);
                bench_add(&arms[i].cpu, values[5]);
                arms[i].compiles = values[4];
            }
        }
    }
    print_arms(backend, count, arms, number);
    return 0;
}

/* What this program does as a child of itself; -1 if it is none. */
static int run_child(int argc, char **argv)
{
    const int count = argc == 5 ? (int)strtol(argv[4], NULL, 10) : 0;
    if (count <= 0 || count > 100 * MOST) {
        return -1;
    }
    if (strcmp(argv[1], "store") == 0) {
        return thousand_store_child(argv[2], argv[3], count);
    }
    return strcmp(argv[1], "fill") == 0    ? child_fill(argv[2], argv[3], count)
           : strcmp(argv[1], "kiln") == 0  ? child_kiln(argv[2], count)
           : strcmp(argv[1], "warm") == 0  ? child_warm(argv[2], count)
           : strcmp(argv[1], "hand") == 0  ? child_hand(argv[2], argv[3], count, false)
           : strcmp(argv[1], "crowd") == 0 ? child_hand(argv[2], argv[3], count, true)
                                           : -1;
}

/* What is asked of a parent; a child's arguments that are none must not begin another parent. */
static bool is_asked_well(int argc, char **argv)
{
    const bool load = argc > 1 && (strcmp(argv[1], "opencl") == 0 || strcmp(argv[1], "cuda") == 0);
    return argc < 2 || (argc == 2 && strcmp(argv[1], "store") == 0) ||
           (load && (argc == 3 || (argc == 4 && strtol(argv[3], NULL, 10) > 0)) &&
            strtol(argv[2], NULL, 10) > 0);
}

int main(int argc, char **argv)
{
    char self[512], root[512];
    const int answer = run_child(argc, argv);
    if (answer >= 0) {
        return answer;
    }
    if (!is_asked_well(argc, argv)) {
        (void)fprintf(stderr, "bench_thousand: give store, or opencl or cuda, COUNT and RUNS\n");
        return 2;
    }
    if (!bench_self(self, sizeof(self)) || !bench_dir(root, sizeof(root))) {
        (void)fprintf(stderr, "bench_thousand: no temporary directory\n");
        return 1;
    }
    bench_print_machine();
    const char *backend = argc > 1 ? argv[1] : "opencl";
    const bool store = argc < 2 || strcmp(argv[1], "store") == 0;
    int failed = 0;
    if (argc < 2 || !store) {
        failed = measure(self, root, backend, argc > 2 ? argv[2] : "200",
                         argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5);
    }
    if (store) {
        failed = thousand_store(self, root) || failed;
    }
    bench_remove(root);
    return failed;
}

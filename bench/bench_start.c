/* Start of a fresh process with 100 cached programs of about 100 KB, on every device. Measured
 * are the runtime's start with and without a remembered probe, the time to load all, kiln's own
 * part of it, and peak memory next to the same artifacts loaded by the backend alone from plain
 * files; the hit rate; and what switching from program to program costs a launch.
 *
 *     bench_start [--quick] [--backend NAME] */
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/counters.h>
#include <kiln/unstable/explain.h>
#include <kiln/unstable/tune.h>
#include <kiln/unstable/warm.h>

#include "core/build/stage_artifact.h"
#include "core/runtime/runtime.h"

enum { PROGRAMS = 100, STAGES = 4, ITEMS = 64, SWITCHES = 4000, ROUNDS = 6 };

static int complain(const char *what, kiln_diag *diag)
{
    char line[1024];
    (void)kiln_diag_format(diag, line, sizeof(line));
    (void)fprintf(stderr, "bench_start: %s: %s\n", what, line);
    return 1;
}

/* --- the programs ----------------------------------------------------------------------------- */

typedef struct form {
    const char *backend;
    kiln_language language;
    const char *name, *entry, *head, *table, *tail; /* numbers go between the last two */
    int numbers;                                    /* so many make about 100 KB */
} form;

/* A table of numbers: large, and quick to compile. */
static const form forms[] = {
    {"cpu", KILN_LANG_C, "work.c", "work", "#include <kiln_kernel.h>\n",
     "static const int table[] = {",
     "};\nKILN_KERNEL(work, KILN_INOUT(float, x))\n{\n    KILN_ITEMS_X(i)\n    {\n"
     "        x[i] += (float)table[(int)x[i] & 4095];\n    }\n}\n",
     22000},
    {"opencl", KILN_LANG_OPENCL_C, "work.cl", "work", "", "__constant int table[] = {",
     "};\n__kernel void work(__global float *x)\n{\n    int i = get_global_id(0);\n"
     "    x[i] += (float)table[(int)x[i] & 4095];\n}\n",
     6000},
    {"cuda", KILN_LANG_CUDA, "work.cu", "work", "", "__device__ const int table[] = {",
     "};\nextern \"C\" __global__ void work(float *x)\n{\n"
     "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "    x[i] += (float)table[(int)x[i] & 4095];\n}\n",
     22000},
    {"vulkan", KILN_LANG_GLSL, "work.comp", "main",
     "#version 450\n#include <kiln.glsl>\nlayout(local_size_x = 8) in;\n"
     "KILN_BUFFER(0, float, x)\n",
     "const int table[] = {",
     "};\nvoid main()\n{\n    int i = int(gl_GlobalInvocationID.x);\n"
     "    x[i] += float(table[int(x[i]) & 1023]);\n}\n",
     4000},
    {"opengl", KILN_LANG_GLSL, "work.comp", "main",
     "#version 450\n#include <kiln.glsl>\nlayout(local_size_x = 8) in;\n"
     "KILN_BUFFER(0, float, x)\n",
     "const int table[] = {",
     "};\nvoid main()\n{\n    int i = int(gl_GlobalInvocationID.x);\n"
     "    x[i] += float(table[int(x[i]) & 1023]);\n}\n",
     4000},
    {"fake", KILN_LANG_FAKE, "work.fake", "work", "", "", "", 0},
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static const form *form_of(const char *backend)
{
    for (size_t i = 0; i < FORMS; i++) {
        if (strcmp(forms[i].backend, backend) == 0) {
            return &forms[i];
        }
    }
    return NULL;
}

static char *make_text(const form *f, int number)
{
    const size_t room =
        strlen(f->head) + strlen(f->table) + strlen(f->tail) + (size_t)f->numbers * 8 + 64;
    char *text = malloc(room);
    if (text == NULL) {
        exit(1);
    }
    if (f->language == KILN_LANG_FAKE) {
        (void)snprintf(text, room, "kernel work x:floats\nx = x %d +\n", number + 1);
        return text;
    }
    size_t used = (size_t)snprintf(text, room, "%s%s", f->head, f->table);
    for (int i = 0; i < f->numbers; i++) {
        used += (size_t)snprintf(text + used, room - used, i > 0 ? ",%d" : "%d",
                                 (i * 7919 + number * 104729) % 100000);
    }
    (void)snprintf(text + used, room - used, "%s", f->tail);
    return text;
}

static kiln_source source_of(const form *f, char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = f->language;
    source.name = f->name;
    source.text = text;
    source.length = strlen(text);
    source.entries = &f->entry;
    source.entry_count = 1;
    return source;
}

/* --- what a process knows of itself ----------------------------------------------------------- */

static double peak_kb(void)
{
    char line[256];
    double kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kb = strtod(line + 6, NULL);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kb;
}

static kiln_runtime *open_runtime(const char *backend, const char *trace)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    if (kiln_runtime_options_init(&options, &diag) != KILN_OK) {
        exit(complain("options", &diag));
    }
    /* All backends are listed; one is chosen. */
    char device[64];
    (void)snprintf(device, sizeof(device), "%s:0", backend);
    options.device = device;
    options.backend = strcmp(backend, "fake") == 0 ? backend : NULL;
    options.strict = true;
    options.trace = trace;
    if (kiln_runtime_create(&options, &runtime, &diag) != KILN_OK) {
        exit(complain("runtime", &diag));
    }
    return runtime;
}

/* --- the children ----------------------------------------------------------------------------- */

static bool write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    const bool good = file != NULL && (size == 0 || fwrite(data, 1, size, file) == size);
    return (file == NULL || fclose(file) == 0) && good;
}

typedef struct exporting {
    kiln_cache *cache;
    const char *dir;
    int number, stage;
    size_t last_size;
    kiln_diag *diag;
} exporting;

/* What a program that was made a moment ago is not found for. */
static kiln_status say_missing(const exporting *e, const kiln_explanation *stage)
{
    return kiln_diag_set(e->diag, KILN_MISS, NULL, stage->stage,
                         "program %d was built and is not in the cache: %s%s%s", e->number,
                         kiln_why_text(stage->why), stage->detail[0] != '\0' ? ", " : "",
                         stage->detail);
}

/* Each stage's payload and facts, as plain files. */
static kiln_status export_stage(void *user, const kiln_explanation *stage)
{
    exporting *e = user;
    char path[512];
    kiln_blob *blob = NULL;
    if (stage->why != KILN_WHY_HIT) {
        return say_missing(e, stage);
    }
    kiln_status status = kiln_cache_get(e->cache, &stage->key, &blob, NULL, e->diag);
    if (status == KILN_MISS) {
        return kiln_diag_set(e->diag, status, NULL, stage->stage,
                             "program %d was in the cache and could not be read", e->number);
    }
    if (status != KILN_OK) {
        return status;
    }
    (void)snprintf(path, sizeof(path), "%s/%03d.%d.data", e->dir, e->number, e->stage);
    bool good = write_file(path, kiln_blob_data(blob), kiln_blob_size(blob));
    if (good) {
        (void)snprintf(path, sizeof(path), "%s/%03d.%d.facts", e->dir, e->number, e->stage);
        good = write_file(path, kiln_blob_facts(blob), kiln_blob_facts_size(blob));
    }
    if (!good) {
        status =
            kiln_diag_set(e->diag, KILN_E_IO, NULL, path, "cannot be written: %s", strerror(errno));
    }
    e->last_size = kiln_blob_size(blob);
    e->stage++;
    kiln_blob_release(blob);
    return status;
}

/* Runs each once, so that what a driver finishes at a first launch is in the cache. */
static void launch_once(kiln_queue *queue, kiln_program *program, const form *f,
                        kiln_buffer *buffer)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
    const kiln_launch launch = {.struct_size = sizeof(launch),
                                .dims = 1,
                                .global = {ITEMS},
                                .local = {8},
                                .args = &arg,
                                .arg_count = 1};
    if (kiln_queue_launch(queue, program, f->entry, &launch, NULL, &diag) != KILN_OK) {
        exit(complain("launch", &diag));
    }
}

static void open_queue(kiln_device *device, kiln_queue **queue, kiln_buffer **buffer)
{
    kiln_diag diag = KILN_DIAG_INIT;
    static const float zeros[ITEMS];
    if (kiln_queue_create(device, queue, &diag) != KILN_OK ||
        kiln_buffer_create(device, sizeof(zeros), buffer, &diag) != KILN_OK ||
        kiln_queue_write(*queue, *buffer, 0, zeros, sizeof(zeros), &diag) != KILN_OK) {
        exit(complain("queue", &diag));
    }
}

/* Builds and launches all. The runtime's end waits some seconds for the binaries that the driver
 * is asked for, and no longer: not every one need be in the cache after one round. */
static void fill_once(const form *f, const kiln_source *sources)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime *runtime = open_runtime(f->backend, NULL);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    kiln_warm *warm = NULL;
    kiln_warm_item items[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++) {
        items[i] = (kiln_warm_item){&sources[i], 1};
    }
    if (kiln_warm_start(device, items, PROGRAMS, NULL, &warm, &diag) != KILN_OK) {
        exit(complain("warm", &diag));
    }
    kiln_warm_wait(warm);
    open_queue(device, &queue, &buffer);
    for (int i = 0; i < PROGRAMS; i++) {
        kiln_program *program = NULL;
        if (kiln_program_build(device, &sources[i], 1, NULL, &program, &diag) != KILN_OK) {
            exit(complain("build", &diag));
        }
        launch_once(queue, program, f, buffer);
        if (kiln_queue_finish(queue, &diag) != KILN_OK) {
            exit(complain("run", &diag));
        }
        kiln_program_release(program);
    }
    kiln_warm_destroy(warm);
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
    kiln_runtime_destroy(runtime); /* captures are written */
}

/* KILN_MISS if one is not in the cache yet. */
static kiln_status export_all(const form *f, const char *dir, const kiln_source *sources,
                              double *out_bytes, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kiln_runtime *runtime = open_runtime(f->backend, NULL);
    *out_bytes = 0;
    for (int i = 0; i < PROGRAMS && status == KILN_OK; i++) {
        char target[64];
        exporting e = {kiln_runtime_cache(runtime), dir, i, 0, 0, diag};
        (void)snprintf(target, sizeof(target), "%s:0", f->backend);
        status = kiln_explain(runtime, target, &sources[i], export_stage, &e, diag);
        *out_bytes += (double)e.last_size;
    }
    kiln_runtime_destroy(runtime);
    return status;
}

static int child_fill(const form *f, const char *dir)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *texts[PROGRAMS];
    kiln_source sources[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++) {
        texts[i] = make_text(f, i);
        sources[i] = source_of(f, texts[i]);
    }
    double bytes = 0;
    kiln_status status = KILN_MISS;
    for (int round = 0; status == KILN_MISS && round < ROUNDS; round++) {
        fill_once(f, sources);
        kiln_diag_clear(&diag);
        status = export_all(f, dir, sources, &bytes, &diag);
    }
    for (int i = 0; i < PROGRAMS; i++) {
        free(texts[i]);
    }
    if (status != KILN_OK) {
        return complain("export", &diag);
    }
    printf("%.1f\n", bytes / (double)PROGRAMS / 1024);
    return 0;
}

/* create ms, load all ms, kiln's own ms, peak KB, hits, compiles */
static int child_load(const form *f)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *programs[PROGRAMS];
    double own = 0;
    double start = bench_now();
    kiln_runtime *runtime = open_runtime(f->backend, NULL);
    const double create = bench_now() - start;
    kiln_device *device = kiln_runtime_device(runtime, 0);
    start = bench_now();
    for (int i = 0; i < PROGRAMS; i++) {
        char *text = make_text(f, i);
        const kiln_source source = source_of(f, text);
        if (kiln_program_build(device, &source, 1, NULL, &programs[i], &diag) != KILN_OK) {
            return complain("build", &diag);
        }
        const kiln_build_info *info = kiln_program_get_info(programs[i]);
        own += (double)(info->total_ns - info->load_ns - info->compile_ns) / 1e6;
        free(text);
    }
    const double load = bench_now() - start;
    const kiln_cache *cache = kiln_runtime_cache(runtime);
    const uint64_t hits = kiln_cache_counter(cache, KILN_COUNTER_HITS_MEMORY) +
                          kiln_cache_counter(cache, KILN_COUNTER_HITS_DISK) +
                          kiln_cache_counter(cache, KILN_COUNTER_HITS_SHARED);
    printf("%.3f %.3f %.3f %.0f %llu %llu\n", create * 1e3, load * 1e3, own, peak_kb(),
           (unsigned long long)hits,
           (unsigned long long)kiln_cache_counter(cache, KILN_COUNTER_COMPILES));
    for (int i = 0; i < PROGRAMS; i++) {
        kiln_program_release(programs[i]);
    }
    kiln_runtime_destroy(runtime);
    return 0;
}

/* The backend alone: no cache, no keys, no core but the opening. load all ms, peak KB */
static int child_bare(const form *f, const char *dir)
{
    kiln_diag diag = KILN_DIAG_INIT;
    void *handle = NULL;
    kiln_runtime *runtime = open_runtime(f->backend, NULL);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    if (kn_device_handle(device, &handle, &diag) != KILN_OK) {
        return complain("device", &diag);
    }
    const double start = bench_now();
    for (int i = 0; i < PROGRAMS; i++) {
        kiln_blob *blobs[STAGES] = {NULL};
        kn_artifact artifacts[STAGES];
        const kiln_artifact *list[STAGES];
        size_t count = 0;
        void *program = NULL;
        char *text = make_text(f, i);
        const kiln_source source = source_of(f, text);
        for (; count < STAGES; count++) {
            char path[512];
            size_t size = 0, facts_size = 0;
            (void)snprintf(path, sizeof(path), "%s/%03d.%d.data", dir, i, (int)count);
            unsigned char *data = bench_read(path, &size);
            (void)snprintf(path, sizeof(path), "%s/%03d.%d.facts", dir, i, (int)count);
            unsigned char *facts = data != NULL ? bench_read(path, &facts_size) : NULL;
            const bool good = data != NULL && kiln_blob_create(data, size, facts, facts_size,
                                                               &blobs[count], &diag) == KILN_OK;
            free(facts);
            free(data);
            kn_artifact_init(&artifacts[count]);
            if (!good || kn_artifact_of_blob(&artifacts[count], blobs[count]) != KILN_OK) {
                break;
            }
            list[count] = &artifacts[count].base;
        }
        const kiln_load_request request = {.target = &device->target,
                                           .source = &source,
                                           .artifacts = list,
                                           .artifact_count = count};
        if (kn_hal_program_load(&device->driver->in, handle, &request, &program, &diag) !=
            KILN_OK) {
            return complain("load", &diag);
        }
        for (size_t k = 0; k < count; k++) {
            kn_artifact_deinit(&artifacts[k]);
            kiln_blob_release(blobs[k]);
        }
        free(text);
    }
    printf("%.3f %.0f\n", (bench_now() - start) * 1e3, peak_kb());
    (void)fflush(stdout);
    _Exit(0); /* the programs are nobody's: what is left is the process's */
}

/* Processor microseconds of the launching thread, a launch: one program, and a hundred in turn. */
static int child_switch(const form *f)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *programs[PROGRAMS];
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    bench_samples same = {.count = 0}, turns = {.count = 0};
    kiln_runtime *runtime = open_runtime(f->backend, NULL);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    open_queue(device, &queue, &buffer);
    for (int i = 0; i < PROGRAMS; i++) {
        char *text = make_text(f, i);
        const kiln_source source = source_of(f, text);
        if (kiln_program_build(device, &source, 1, NULL, &programs[i], &diag) != KILN_OK) {
            return complain("build", &diag);
        }
        launch_once(queue, programs[i], f, buffer); /* first launches are the driver's affair */
        free(text);
    }
    for (int round = 0; round < SWITCHES / PROGRAMS; round++) {
        for (int many = 0; many < 2; many++) {
            if (kiln_queue_finish(queue, &diag) != KILN_OK) {
                return complain("run", &diag);
            }
            const double start = bench_own();
            for (int i = 0; i < PROGRAMS; i++) {
                launch_once(queue, programs[many != 0 ? i : 0], f, buffer);
            }
            bench_add(many != 0 ? &turns : &same, (bench_own() - start) / (double)PROGRAMS * 1e6);
        }
    }
    printf("%.3f %.3f\n", bench_median(&same), bench_median(&turns));
    for (int i = 0; i < PROGRAMS; i++) {
        kiln_program_release(programs[i]);
    }
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
    kiln_runtime_destroy(runtime);
    return 0;
}

/* --- the parent ------------------------------------------------------------------------------- */

static size_t child(const char *what, const char *backend, const char *dir, double *values)
{
    char self[512];
    if (!bench_self(self, sizeof(self))) {
        return 0;
    }
    char *argv[] = {self, (char *)(uintptr_t)what, (char *)(uintptr_t)backend,
                    (char *)(uintptr_t)dir, NULL};
    return bench_child(argv, values);
}

static void measure(const form *f, int runs, const char *root)
{
    char dir[512], cache[560];
    double values[BENCH_MAX_VALUES], size[BENCH_MAX_VALUES];
    bench_samples create = {.count = 0}, fresh = {.count = 0}, load = {.count = 0},
                  own = {.count = 0}, peak = {.count = 0}, bare = {.count = 0},
                  bare_peak = {.count = 0};
    (void)snprintf(dir, sizeof(dir), "%s", root);
    (void)snprintf(cache, sizeof(cache), "%s/cache-%s", root, f->backend);
    (void)setenv("KILN_CACHE_DIR", cache, 1);
    if (child("fill", f->backend, dir, size) != 1) {
        printf("%-8s not here, or not filled: see above\n", f->backend);
        return;
    }
    double hits = 0, compiles = 0;
    for (int i = 0; i < runs; i++) {
        if (child("load", f->backend, dir, values) == 6) {
            bench_add(&create, values[0]);
            bench_add(&load, values[1]);
            bench_add(&own, values[2]);
            bench_add(&peak, values[3]);
            hits = values[4];
            compiles = values[5];
        }
        if (child("bare", f->backend, dir, values) == 2) {
            bench_add(&bare, values[0]);
            bench_add(&bare_peak, values[1]);
        }
        (void)setenv("KILN_FRESH_PROBE", "1", 1);
        if (child("load", f->backend, dir, values) == 6) {
            bench_add(&fresh, values[0]);
        }
        (void)unsetenv("KILN_FRESH_PROBE");
    }
    double turns[BENCH_MAX_VALUES] = {0};
    (void)child("switch", f->backend, dir, turns);
    printf("%-8s %6.0f %9.2f %9.2f %9.1f %9.1f %8.2f %9.1f %9.1f %9.1f %6.0f %5.0f %8.2f %8.2f\n",
           f->backend, size[0], bench_median(&fresh), bench_median(&create), bench_median(&load),
           bench_median(&bare), bench_median(&own) / (double)PROGRAMS * 1e3,
           bench_median(&peak) / 1024, bench_median(&bare_peak) / 1024,
           (bench_median(&peak) - bench_median(&bare_peak)) / 1024, hits, compiles, turns[0],
           turns[1]);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    char root[256];
    int runs = 9;
    if (argc >= 4 && argv[1][0] != '-') {
        const form *f = form_of(argv[2]);
        if (f == NULL) {
            return 2;
        }
        return strcmp(argv[1], "fill") == 0   ? child_fill(f, argv[3])
               : strcmp(argv[1], "load") == 0 ? child_load(f)
               : strcmp(argv[1], "bare") == 0 ? child_bare(f, argv[3])
                                              : child_switch(f);
    }
    for (int i = 1; i < argc; i++) {
        runs = strcmp(argv[i], "--quick") == 0 ? 3 : runs;
        only = strcmp(argv[i], "--backend") == 0 && i + 1 < argc ? argv[++i] : only;
    }
    bench_print_machine();
    puts("100 cached programs, a fresh process. Start: of the runtime, every backend probed, and "
         "as");
    puts("remembered. Load: all programs through kiln, and their artifacts by the backend alone.");
    puts("Own: kiln's part of one build, us. Peak: of the process, kiln, bare, difference (50 MB");
    puts("allowed). Launch: processor time of the launching thread, one program, a hundred in "
         "turn\n");
    printf("%-8s %6s %9s %9s %9s %9s %8s %9s %9s %9s %6s %5s %8s %8s\n", "backend", "KB",
           "probe ms", "known ms", "load ms", "bare ms", "own us", "peak MB", "bare MB", "above",
           "hits", "comp.", "same us", "turn us");
    for (size_t i = 0; i < FORMS; i++) {
        if ((only == NULL || strcmp(only, forms[i].backend) == 0) &&
            bench_dir(root, sizeof(root))) {
            measure(&forms[i], runs, root);
            bench_remove(root);
        }
    }
    return 0;
}

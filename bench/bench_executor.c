/* A stream of conv2d and matmul submissions with data on the host, on every device: one after the
 * other against 2, 3 and 4 in flight. In addition each part alone (uploads, kernels, downloads): no
 * stream is faster than the slowest part, and the last column says how near to that it comes.
 *
 *     bench_executor [--quick] [--backend NAME] [KERNELS]     KERNELS: the directory kernels/
 *
 * With KILN_TRACE=FILE the overlap can be looked at. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/executor.h>

enum { RING = 8, BUFFERS = 4 };

/* One of the two streams, sized for a device. */
typedef struct stream {
    const char *name, *file;
    const char *define[2];
    size_t sizes[BUFFERS]; /* bytes; the last one is the output */
    size_t buffers;
    int32_t values[2];
    size_t value_count;
    uint32_t dims;
    uint64_t global[3], local[3];
} stream;

typedef struct bed {
    kiln_device *device;
    kiln_program *program;
    const char *entry;
    const stream *s;
    kiln_queue *queue;
    kiln_buffer *on_device[BUFFERS];
    void *input[BUFFERS];
    void *output[RING];
    int count; /* submissions a measurement */
} bed;

static void must(kiln_status status, kiln_diag *diag)
{
    if (status != KILN_OK) {
        char text[1024];
        (void)kiln_diag_format(diag, text, sizeof(text));
        (void)fprintf(stderr, "bench_executor: %s\n%s", text, diag->log != NULL ? diag->log : "");
        exit(1);
    }
}

static stream conv2d(bool large)
{
    const uint64_t side = large ? 1024 : 128;
    const uint64_t in = 4, out = 8;
    return (stream){
        .name = "conv2d_5x5",
        .file = "conv2d",
        .define = {"KSIZE", "5"},
        .sizes = {in * side * side * 4, out * in * 25 * 4, out * 4, out * side * side * 4},
        .buffers = 4,
        .values = {(int32_t)in},
        .value_count = 1,
        .dims = 3,
        .global = {side, side, out},
        .local = {16, 16, 1}};
}

static stream matmul(bool large)
{
    const uint64_t n = large ? 1536 : 192;
    return (stream){.name = "gemm",
                    .file = "gemm",
                    .define = {"TILE", "16"},
                    .sizes = {n * n * 4, n * n * 4, n * n * 4},
                    .buffers = 3,
                    .values = {(int32_t)n, (int32_t)n},
                    .value_count = 2,
                    .dims = 2,
                    .global = {n, n, 0},
                    .local = {16, 16, 0}};
}

/* --- the program ------------------------------------------------------------------------------ */

static const struct {
    const char *dir, *ending;
    kiln_language language;
} forms[] = {{"cuda", "cu", KILN_LANG_CUDA},
             {"opencl", "cl", KILN_LANG_OPENCL_C},
             {"glsl", "comp", KILN_LANG_GLSL},
             {"c", "c", KILN_LANG_C}};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static char *read_text(const char *path, size_t *out_length)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(65536);
    if (file == NULL || text == NULL) {
        (void)fprintf(stderr, "bench_executor: cannot read %s\n", path);
        exit(1);
    }
    *out_length = fread(text, 1, 65535, file);
    text[*out_length] = '\0';
    (void)fclose(file);
    return text;
}

/* False if the device takes none of the languages, or its compiler is not there. */
static bool build(bed *b, const char *kernels)
{
    kiln_source sources[FORMS];
    char paths[FORMS][512];
    char include[512];
    const char *dirs[] = {include};
    const kiln_define define = {b->s->define[0], b->s->define[1]};
    const char *entries[FORMS];
    kiln_diag diag = KILN_DIAG_INIT;
    (void)snprintf(include, sizeof(include), "%s/include", kernels);
    for (size_t i = 0; i < FORMS; i++) {
        sources[i] = (kiln_source)KILN_SOURCE_INIT;
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/%s/%s.%s", kernels, forms[i].dir, b->s->file,
                       forms[i].ending);
        entries[i] = forms[i].language == KILN_LANG_GLSL ? "main" : b->s->name;
        sources[i].text = read_text(paths[i], &sources[i].length);
        sources[i].language = forms[i].language;
        sources[i].name = paths[i];
        sources[i].defines = &define;
        sources[i].define_count = 1;
        sources[i].include_dirs = dirs;
        sources[i].include_dir_count = 1;
        sources[i].entries = &entries[i];
        sources[i].entry_count = 1;
    }
    kiln_status status = kiln_program_build(b->device, sources, FORMS, NULL, &b->program, &diag);
    const char *backend = kiln_device_get_info(b->device)->backend;
    b->entry =
        strcmp(backend, "vulkan") == 0 || strcmp(backend, "opengl") == 0 ? "main" : b->s->name;
    for (size_t i = 0; i < FORMS; i++) {
        free((void *)(uintptr_t)sources[i].text);
    }
    if (status != KILN_OK) {
        printf("%s: %s\n", backend, diag.why);
    }
    kiln_diag_clear(&diag);
    return status == KILN_OK;
}

/* --- the measurements: seconds a submission --------------------------------------------------- */

static void launch_once(bed *b, const kiln_launch *shape, kiln_diag *diag)
{
    kiln_arg args[BUFFERS + 2];
    kiln_launch launch = *shape;
    for (size_t i = 0; i < b->s->buffers; i++) {
        args[i] = (kiln_arg){.kind = KILN_ARG_BUFFER, .buffer = b->on_device[i]};
    }
    for (size_t i = 0; i < b->s->value_count; i++) {
        args[b->s->buffers + i] =
            (kiln_arg){.kind = KILN_ARG_VALUE, .value = &b->s->values[i], .size = 4};
    }
    launch.args = args;
    launch.arg_count = b->s->buffers + b->s->value_count;
    must(kiln_queue_launch(b->queue, b->program, b->entry, &launch, NULL, diag), diag);
}

static void upload(const bed *b, kiln_diag *diag)
{
    for (size_t i = 0; i + 1 < b->s->buffers; i++) {
        must(kiln_queue_write(b->queue, b->on_device[i], 0, b->input[i], b->s->sizes[i], diag),
             diag);
    }
}

static void download(const bed *b, int i, kiln_diag *diag)
{
    const size_t last = b->s->buffers - 1;
    must(kiln_queue_read(b->queue, b->on_device[last], 0, b->output[i % RING], b->s->sizes[last],
                         diag),
         diag);
}

enum { UP = 1, RUN = 2, DOWN = 4 };

/* One queue, one thing after the other; or only some of the things. */
static double in_turn(bed *b, unsigned parts)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_launch launch = {.struct_size = sizeof(launch), .dims = b->s->dims};
    memcpy(launch.global, b->s->global, sizeof(launch.global));
    memcpy(launch.local, b->s->local, sizeof(launch.local));
    const double start = bench_now();
    for (int i = 0; i < b->count; i++) {
        if ((parts & UP) != 0) {
            upload(b, &diag);
        }
        if ((parts & RUN) != 0) {
            launch_once(b, &launch, &diag);
        }
        if ((parts & DOWN) != 0) {
            download(b, i, &diag);
        }
    }
    must(kiln_queue_finish(b->queue, &diag), &diag);
    return (bench_now() - start) / b->count;
}

/* The executor's own start and first buffers are outside the time. */
static double in_flight(bed *b, uint32_t most)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_executor *executor = NULL;
    const kiln_executor_options options = {.struct_size = sizeof(options), .in_flight = most};
    kiln_work_arg args[BUFFERS + 2];
    memset(args, 0, sizeof(args));
    for (size_t i = 0; i < b->s->buffers; i++) {
        args[i] =
            (kiln_work_arg){.kind = KILN_ARG_BUFFER, .size = b->s->sizes[i], .input = b->input[i]};
    }
    for (size_t i = 0; i < b->s->value_count; i++) {
        args[b->s->buffers + i] =
            (kiln_work_arg){.kind = KILN_ARG_VALUE, .value = &b->s->values[i], .size = 4};
    }
    kiln_work work = {.struct_size = sizeof(work),
                      .program = b->program,
                      .entry = b->entry,
                      .dims = b->s->dims,
                      .args = args,
                      .arg_count = b->s->buffers + b->s->value_count};
    memcpy(work.global, b->s->global, sizeof(work.global));
    memcpy(work.local, b->s->local, sizeof(work.local));
    must(kiln_executor_create(b->device, &options, &executor, &diag), &diag);
    const int warm = (int)most * 2;
    double start = 0;
    for (int i = 0; i < warm + b->count; i++) {
        if (i == warm) {
            kiln_executor_drain(executor);
            start = bench_now();
        }
        args[b->s->buffers - 1].output = b->output[i % RING];
        must(kiln_executor_submit(executor, &work, NULL, &diag), &diag);
    }
    kiln_executor_drain(executor);
    const double took = (bench_now() - start) / b->count;
    kiln_executor_stats stats = {.struct_size = sizeof(stats)};
    must(kiln_executor_get_stats(executor, &stats, &diag), &diag);
    if (stats.failed > 0) {
        (void)fprintf(stderr, "bench_executor: %llu submissions failed\n",
                      (unsigned long long)stats.failed);
        exit(1);
    }
    kiln_executor_destroy(executor);
    return took;
}

/* --- a device --------------------------------------------------------------------------------- */

static void *create_input(size_t size)
{
    float *values = malloc(size);
    for (size_t i = 0; values != NULL && i < size / sizeof(*values); i++) {
        values[i] = (float)(i % 17) * 0.1F;
    }
    return values;
}

static void open_bed(bed *b)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const size_t last = b->s->buffers - 1;
    must(kiln_queue_create(b->device, &b->queue, &diag), &diag);
    for (size_t i = 0; i <= last; i++) {
        must(kiln_buffer_create(b->device, b->s->sizes[i], &b->on_device[i], &diag), &diag);
        b->input[i] = i < last ? create_input(b->s->sizes[i]) : NULL; /* the last is an output */
    }
    for (size_t i = 0; i < RING; i++) {
        b->output[i] = calloc(1, b->s->sizes[last]); /* touched by the first download */
    }
}

static void close_bed(bed *b)
{
    for (size_t i = 0; i < b->s->buffers; i++) {
        kiln_buffer_destroy(b->on_device[i]);
        free(b->input[i]);
    }
    for (size_t i = 0; i < RING; i++) {
        free(b->output[i]);
    }
    kiln_queue_destroy(b->queue);
    kiln_program_release(b->program);
}

static double largest(double a, double b, double c)
{
    const double ab = a > b ? a : b;
    return ab > c ? ab : c;
}

static void measure(bed *b, int rounds)
{
    bench_samples parts[3] = {{.count = 0}};
    bench_samples sync = {.count = 0};
    bench_samples flights[3] = {{.count = 0}};
    const double one = in_turn(b, UP | RUN | DOWN) + in_turn(b, UP | RUN | DOWN);
    const int fit = (int)(0.3 / (one / 2 + 1e-6));
    b->count = fit < 12 ? 12 : (fit > 400 ? 400 : fit);
    for (int round = 0; round < rounds; round++) {
        bench_add(&parts[0], in_turn(b, UP));
        bench_add(&parts[1], in_turn(b, RUN));
        bench_add(&parts[2], in_turn(b, DOWN));
        bench_add(&sync, in_turn(b, UP | RUN | DOWN));
        for (uint32_t most = 2; most <= 4; most++) {
            bench_add(&flights[most - 2], in_flight(b, most));
        }
    }
    const kiln_device_info *info = kiln_device_get_info(b->device);
    const double up = bench_median(&parts[0]);
    const double run = bench_median(&parts[1]);
    const double down = bench_median(&parts[2]);
    const double base = bench_median(&sync);
    printf("%-8s %-10s %8.1f %8.1f %8.1f %9.1f", info->backend, b->s->name, up * 1e6, run * 1e6,
           down * 1e6, base * 1e6);
    for (int i = 0; i < 3; i++) {
        printf("  %6.2f", base / bench_median(&flights[i]));
    }
    const double three = bench_median(&flights[1]);
    printf("   %5.0f %%   %5.0f %%\n", 100 * largest(up + down, run, 0) / three,
           100 * largest(up, run, down) / three);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *kernels = BENCH_KERNELS;
    const char *backend = NULL;
    int rounds = 7;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            rounds = 1;
        } else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
            backend = argv[++i];
        } else {
            kernels = argv[i];
        }
    }
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    must(kiln_runtime_options_init(&options, &diag), &diag);
    options.backend = backend != NULL ? backend : options.backend;
    must(kiln_runtime_create(&options, &runtime, &diag), &diag);
    bench_print_machine();
    printf("microseconds a submission; ratios to one after the other; the last two columns: how\n"
           "near three in flight come to the slower of copies and kernels, and to the slowest of\n"
           "uploads, kernels and downloads\n\n");
    printf("%-8s %-10s %8s %8s %8s %9s  %6s  %6s  %6s   %7s   %7s\n", "backend", "kernel", "upload",
           "kernel", "download", "in turn", "2", "3", "4", "copies", "parts");
    for (size_t i = 0; i < kiln_runtime_device_count(runtime); i++) {
        kiln_device *device = kiln_runtime_device(runtime, i);
        const bool large = kiln_device_get_info(device)->device_class == KILN_DEVICE_DISCRETE;
        const stream streams[] = {conv2d(large), matmul(large)};
        for (size_t j = 0; j < 2; j++) {
            bed b = {.device = device, .s = &streams[j], .count = 2};
            if (build(&b, kernels)) {
                open_bed(&b);
                measure(&b, rounds);
                close_bed(&b);
            }
        }
    }
    kiln_runtime_destroy(runtime);
    return 0;
}

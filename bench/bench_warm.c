/* bench_warm: a warm start in a fresh process, from a ready device to the first result: kiln
 * against the driver's own calls with the binary in a file, and kiln's own cost over the driver's
 * load call (DESIGN section 10: under 100 us or 5 %, whichever is larger).
 *
 * Every sample is a process of its own; kiln and baseline take turns. Drivers' caches are fresh
 * directories for each process, so that what is measured is not theirs. */
#include <kiln/kiln.h>
#include <kiln/unstable/compile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/bench.h"
#include "bench/warm.h"

enum { ROUNDS = 31 };

static const char c_text[] =
    "#include <kiln_kernel.h>\n"
    "KILN_KERNEL(matmul, KILN_IN(float, a), KILN_IN(float, b), KILN_OUT(float, c),\n"
    "            KILN_VALUE(int, n))\n"
    "{\n"
    "    KILN_ITEMS_XY(x, y)\n"
    "    {\n"
    "        float sum = 0.0f;\n"
    "        for (int i = 0; i < n; i++) { sum += a[(int)y * n + i] * b[i * n + (int)x]; }\n"
    "        c[(int)y * n + (int)x] = sum;\n"
    "    }\n"
    "}\n";

static int complain(const char *what, kiln_diag *diag)
{
    char line[1024];
    (void)kiln_diag_format(diag, line, sizeof(line));
    fprintf(stderr, "bench_warm: %s: %s\n", what, line);
    kiln_diag_clear(diag);
    return 1;
}

static bool takes_glsl(const char *backend)
{
    return strcmp(backend, "vulkan") == 0 || strcmp(backend, "opengl") == 0;
}

static kiln_source source_for(const char *backend)
{
    kiln_source source = KILN_SOURCE_INIT;
    if (strcmp(backend, "opencl") == 0) {
        source.language = KILN_LANG_OPENCL_C;
        source.name = "matmul.cl";
        source.text = warm_opencl_text;
    } else if (takes_glsl(backend)) {
        source.language = KILN_LANG_GLSL;
        source.name = "matmul.comp";
        source.text = warm_glsl_text;
    } else {
        source.language = KILN_LANG_C;
        source.name = "matmul.c";
        source.text = c_text;
    }
    source.length = strlen((const char *)source.text);
    return source;
}

static kiln_status run_once(kiln_device *device, kiln_queue *queue, const kiln_source *source,
                            kiln_program **program, kiln_diag *diag)
{
    static float a[WARM_SIZE * WARM_SIZE];
    static float c[WARM_SIZE * WARM_SIZE];
    kiln_buffer *buffers[3] = {NULL, NULL, NULL};
    const int n = WARM_SIZE;
    kiln_status status = kiln_program_build(device, source, 1, NULL, program, diag);
    for (int i = 0; i < 3 && status == KILN_OK; i++) {
        status = kiln_buffer_create(device, sizeof(a), &buffers[i], diag);
        if (status == KILN_OK && i < 2) {
            status = kiln_queue_write(queue, buffers[i], 0, a, sizeof(a), diag);
        }
    }
    if (status == KILN_OK) {
        const kiln_arg args[] = {
            {.kind = KILN_ARG_BUFFER, .buffer = buffers[0]},
            {.kind = KILN_ARG_BUFFER, .buffer = buffers[1]},
            {.kind = KILN_ARG_BUFFER, .buffer = buffers[2]},
            {.kind = KILN_ARG_VALUE, .value = &n, .size = sizeof(n)},
        };
        const char *entry = takes_glsl(kiln_device_get_info(device)->backend) ? "main" : "matmul";
        const kiln_launch launch = {.struct_size = sizeof(launch),
                                    .dims = 2,
                                    .global = {WARM_SIZE, WARM_SIZE},
                                    .local = {WARM_GROUP, WARM_GROUP},
                                    .args = args,
                                    .arg_count = 4};
        status = kiln_queue_launch(queue, *program, entry, &launch, NULL, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_read(queue, buffers[2], 0, c, sizeof(c), diag);
    }
    for (int i = 0; i < 3; i++) {
        kiln_buffer_destroy(buffers[i]);
    }
    return status;
}

/* A child: prints "own load first compiles key lookup" (microseconds), the first being all of build
 * but the driver's load call, the last two what most of it is. With `twice`, builds again: the same
 * program, shared, must cost next to nothing. */
static int child_kiln(const char *backend)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    kiln_queue *queue = NULL;
    kiln_program *program = NULL;
    if (kiln_runtime_options_init(&options, &diag) != KILN_OK) {
        return complain("options", &diag);
    }
    options.backend = backend;
    if (kiln_runtime_create(&options, &runtime, &diag) != KILN_OK ||
        kiln_runtime_device_count(runtime) == 0) {
        return complain("runtime", &diag);
    }
    kiln_device *device = kiln_runtime_device(runtime, 0);
    if (kiln_queue_create(device, &queue, &diag) != KILN_OK) {
        return complain("queue", &diag);
    }
    const kiln_source source = source_for(backend);
    const double start = bench_now();
    if (run_once(device, queue, &source, &program, &diag) != KILN_OK) {
        return complain("run", &diag);
    }
    const double first = bench_now() - start;
    const kiln_build_info *info = kiln_program_get_info(program);
    printf("%.3f %.3f %.3f %u %.3f %.3f\n",
           (double)(info->total_ns - info->load_ns - info->compile_ns) / 1e3,
           (double)info->load_ns / 1e3, first * 1e6, info->compiles, (double)info->key_ns / 1e3,
           (double)info->lookup_ns / 1e3);
    kiln_program_release(program);
    kiln_queue_destroy(queue);
    kiln_runtime_destroy(runtime);
    kiln_diag_clear(&diag);
    return 0;
}

static bool write_blob(const char *path, const kiln_blob *blob)
{
    FILE *file = fopen(path, "wb");
    const size_t size = kiln_blob_size(blob);
    const bool written = file != NULL && fwrite(kiln_blob_data(blob), 1, size, file) == size;
    if (file != NULL) {
        (void)fclose(file);
    }
    return written;
}

static bool export_target(kiln_runtime *runtime, const char *backend, const char *target,
                          const char *path, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    const kiln_source source = source_for(backend);
    if (kiln_compile(runtime, target, &source, &blob, NULL, diag) != KILN_OK) {
        return false;
    }
    const bool written = write_blob(path, blob);
    kiln_blob_release(blob);
    return written;
}

/* Writes the last stage's binary, as it is in the cache by now, to a file; Vulkan's SPIR-V to
 * another next to it. OpenGL's binary is in kiln's own wrapping, so one is made by hand. */
static int child_export(const char *backend, const char *path)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    char target[64];
    char code_path[600];
    if (strcmp(backend, "opengl") == 0) {
        return warm_opengl_export(path) ? 0 : 1;
    }
    if (kiln_runtime_options_init(&options, &diag) != KILN_OK) {
        return complain("options", &diag);
    }
    options.backend = backend;
    if (kiln_runtime_create(&options, &runtime, &diag) != KILN_OK) {
        return complain("runtime", &diag);
    }
    (void)snprintf(target, sizeof(target), "%s:0", backend);
    (void)snprintf(code_path, sizeof(code_path), "%s.spv", path);
    const bool written = export_target(runtime, backend, target, path, &diag) &&
                         (strcmp(backend, "vulkan") != 0 ||
                          export_target(runtime, backend, "vulkan:spirv", code_path, &diag));
    kiln_runtime_destroy(runtime);
    return written ? 0 : complain("export", &diag);
}

static void fresh_driver_cache(const char *root, int round)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/driver-%d", root, round);
    (void)mkdir(path, 0700);
    (void)setenv("POCL_CACHE_DIR", path, 1);
    (void)setenv("MESA_SHADER_CACHE_DIR", path, 1);
    (void)setenv("__GL_SHADER_DISK_CACHE_PATH", path, 1);
}

/* Off where that is possible. With its cache off Mesa gives no program binaries of OpenGL, so there
 * each process gets an empty directory. */
static void drivers_own_caches_off(const char *backend)
{
    (void)setenv("__GL_SHADER_DISK_CACHE", "0", 1);
    if (strcmp(backend, "opengl") == 0) {
        (void)unsetenv("MESA_SHADER_CACHE_DISABLE");
    } else {
        (void)setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    }
}

static bool by_hand(const char *backend, const char *path)
{
    if (strcmp(backend, "vulkan") == 0) {
        return warm_vulkan_by_hand(path);
    }
    return strcmp(backend, "opengl") == 0 ? warm_opengl_by_hand(path) : warm_opencl_by_hand(path);
}

/* For bench/compare.py: from source by the driver's own calls, and kiln's drop-in. */
static int side_by_side(const char *mode, const char *backend, const char *path)
{
    bool done = false;
    if (strcmp(mode, "shaderc") == 0) {
        done = path != NULL && warm_vulkan_from_text(path);
    } else if (strcmp(mode, "text") == 0) {
        done = fputs(warm_opencl_text, stdout) >= 0;
    } else if (strcmp(mode, "dropin") == 0) {
        done = warm_opencl_dropin();
    } else if (strcmp(backend, "vulkan") == 0) {
        done = path != NULL && warm_vulkan_plain(path);
    } else {
        done = strcmp(backend, "opengl") == 0 ? warm_opengl_plain() : warm_opencl_plain();
    }
    return done ? 0 : 1;
}

static void report(const char *what, const bench_samples *samples)
{
    printf("  %-34s %10.1f us   (%.1f to %.1f)\n", what, bench_median(samples),
           bench_quantile(samples, 0.1), bench_quantile(samples, 0.9));
}

static int measure(const char *self, const char *root, const char *backend)
{
    char path[512];
    char *kiln_argv[] = {(char *)self, "kiln", (char *)backend, NULL};
    char *export_argv[] = {(char *)self, "export", (char *)backend, path, NULL};
    char *hand_argv[] = {(char *)self, "hand", (char *)backend, path, NULL};
    bench_samples own = {.count = 0};
    bench_samples load = {.count = 0};
    bench_samples first = {.count = 0};
    bench_samples hand = {.count = 0};
    bench_samples key = {.count = 0};
    bench_samples lookup = {.count = 0};
    double values[BENCH_MAX_VALUES];
    int round = 0;
    drivers_own_caches_off(backend);
    (void)snprintf(path, sizeof(path), "%s/%s.bin", root, backend);
    fresh_driver_cache(root, round++);
    if (bench_child(kiln_argv, values) < 6) {
        printf("%s: not here\n", backend);
        return 0;
    }
    const double cold = values[2];
    if (bench_child(export_argv, values) == 0) {
        /* prints nothing: 0 numbers are right */
    }
    for (int i = 0; i < ROUNDS; i++) {
        fresh_driver_cache(root, round++);
        if (bench_child(kiln_argv, values) < 6 || values[3] != 0) {
            fprintf(stderr, "bench_warm: a warm start of %s compiled or failed\n", backend);
            return 1;
        }
        bench_add(&own, values[0]);
        bench_add(&load, values[1]);
        bench_add(&first, values[2]);
        bench_add(&key, values[4]);
        bench_add(&lookup, values[5]);
        fresh_driver_cache(root, round++);
        if (strcmp(backend, "cpu") != 0 && bench_child(hand_argv, values) >= 2) {
            bench_add(&hand, values[1]);
        }
    }
    const double limit = bench_median(&load) * 0.05 > 100 ? bench_median(&load) * 0.05 : 100;
    printf("%s: matmul %d x %d, %d fresh processes each; cold %.1f ms\n", backend, WARM_SIZE,
           WARM_SIZE, ROUNDS, cold / 1e3);
    report("kiln's own, build less load", &own);
    report("  of it: key", &key);
    report("  of it: look-up", &lookup);
    report("the driver's load call", &load);
    report("ready device to result, kiln", &first);
    if (hand.count > 0) {
        report("ready device to result, by hand", &hand);
        printf("  kiln / by hand                     %10.2f\n",
               bench_median(&first) / bench_median(&hand));
    }
    printf("  own cost is %.0f %% of its budget (%.0f us)\n\n", 100 * bench_median(&own) / limit,
           limit);
    return 0;
}

/* What this program does as a child of itself; -1 if it is none. */
static int run_child(int argc, char **argv)
{
    const char *what = argc >= 3 ? argv[1] : "";
    const char *path = argc >= 4 ? argv[3] : NULL;
    if (strcmp(what, "kiln") == 0) {
        return child_kiln(argv[2]);
    }
    if (strcmp(what, "export") == 0 && path != NULL) {
        return child_export(argv[2], path);
    }
    if (strcmp(what, "hand") == 0 && path != NULL) {
        return by_hand(argv[2], path) ? 0 : 1;
    }
    if (strcmp(what, "plain") == 0 || strcmp(what, "dropin") == 0 || strcmp(what, "text") == 0 ||
        strcmp(what, "shaderc") == 0) {
        return side_by_side(what, argv[2], path);
    }
    if (strcmp(what, "nvrtc-child") == 0) {
        return warm_nvrtc_child(argv[2], path);
    }
    return strcmp(what, "nvrtc-hand") == 0 ? warm_nvrtc_by_hand(argv[2]) : -1;
}

static int measure_all(const char *self, const char *root, const char *only)
{
    static const char *const backends[] = {"cpu", "opencl", "vulkan", "opengl"};
    int failed = 0;
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        if (only == NULL || strcmp(only, backends[i]) == 0) {
            failed = measure(self, root, backends[i]) || failed;
        }
    }
    if (only == NULL || strcmp(only, "nvrtc") == 0) {
        failed = warm_nvrtc_measure(self, root) || failed;
    }
    return failed;
}

int main(int argc, char **argv)
{
    char self[512];
    char root[512];
    char cache[600];
    const int answer = run_child(argc, argv);
    if (answer >= 0) {
        return answer;
    }
    if (!bench_self(self, sizeof(self)) || !bench_dir(root, sizeof(root))) {
        fprintf(stderr, "bench_warm: no temporary directory\n");
        return 1;
    }
    (void)snprintf(cache, sizeof(cache), "%s/cache", root);
    (void)setenv("KILN_CACHE_DIR", cache, 1);
    bench_print_machine();
    const int failed = measure_all(self, root, argc > 1 ? argv[1] : NULL);
    bench_remove(root);
    return failed;
}

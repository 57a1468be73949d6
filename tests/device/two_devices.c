/* two_devices: one kernel on two CUDA devices of one process. The compiled bytes are shared (one
 * compile), the loaded programs are not, and each computes on its own device. Exit 77 without two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/counters.h>

enum { COUNT = 1024 };

static const char text[] = "extern \"C\" __global__ void twice(float *x)\n"
                           "{\n"
                           "    x[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f;\n"
                           "}\n";

static void need(kiln_status status, kiln_diag *diag, const char *what)
{
    if (status != KILN_OK) {
        char line[4096];
        (void)kiln_diag_format(diag, line, sizeof(line));
        fprintf(stderr, "two_devices: %s: %s\n", what, line);
        exit(1);
    }
}

static kiln_program *run_on(kiln_device *device, float start)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    float values[COUNT];
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_CUDA;
    source.name = "twice.cu";
    source.text = text;
    source.length = sizeof(text) - 1;
    for (int i = 0; i < COUNT; i++) {
        values[i] = start + (float)i;
    }
    need(kiln_program_build(device, &source, 1, NULL, &program, &diag), &diag, "build");
    need(kiln_queue_create(device, &queue, &diag), &diag, "queue");
    need(kiln_buffer_create(device, sizeof(values), &buffer, &diag), &diag, "buffer");
    need(kiln_queue_write(queue, buffer, 0, values, sizeof(values), &diag), &diag, "write");
    const kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
    const kiln_launch launch = {.struct_size = sizeof(launch),
                                .dims = 1,
                                .global = {COUNT},
                                .local = {128},
                                .args = &arg,
                                .arg_count = 1};
    need(kiln_queue_launch(queue, program, "twice", &launch, NULL, &diag), &diag, "launch");
    need(kiln_queue_read(queue, buffer, 0, values, sizeof(values), &diag), &diag, "read");
    for (int i = 0; i < COUNT; i++) {
        if (values[i] != 2.0F * (start + (float)i)) {
            fprintf(stderr, "two_devices: wrong result at %d\n", i);
            exit(1);
        }
    }
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
    return program;
}

int main(void)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    kiln_cache *cache = NULL;
    kiln_runtime *runtime = NULL;
    need(kiln_cache_options_init(&cache_options, &diag), &diag, "options");
    cache_options.flags = KILN_CACHE_NO_DISK;
    need(kiln_cache_create(&cache_options, &cache, &diag), &diag, "cache");
    need(kiln_runtime_options_init(&options, &diag), &diag, "options");
    options.backend = "cuda";
    options.cache = cache;
    options.strict = true;
    if (kiln_runtime_create(&options, &runtime, &diag) != KILN_OK ||
        kiln_runtime_device_count(runtime) < 2) {
        printf("two_devices: there are no two CUDA devices here\n");
        kiln_runtime_destroy(runtime);
        kiln_cache_destroy(cache);
        return 77;
    }
    kiln_device *first = kiln_runtime_device(runtime, 0);
    kiln_device *second = kiln_runtime_device(runtime, 1);
    kiln_program *a = run_on(first, 1.0F);
    kiln_program *b = run_on(second, 1000.0F);
    kiln_program *c = run_on(first, 5.0F);
    const bool same_kind =
        strcmp(kiln_device_get_info(first)->target, kiln_device_get_info(second)->target) == 0;
    const bool good = a != b && a == c &&
                      kiln_cache_counter(cache, KILN_COUNTER_COMPILES) == (same_kind ? 1U : 2U);
    printf("two_devices: %s and %s, %llu compiles, programs %s: %s\n",
           kiln_device_get_info(first)->name, kiln_device_get_info(second)->name,
           (unsigned long long)kiln_cache_counter(cache, KILN_COUNTER_COMPILES),
           a != b ? "apart" : "SHARED", good ? "good" : "BAD");
    kiln_program_release(a);
    kiln_program_release(b);
    kiln_program_release(c);
    kiln_runtime_destroy(runtime);
    kiln_cache_destroy(cache);
    return good ? 0 : 1;
}

/* by_kiln BACKEND FILE ENTRY: the program of some twenty lines that `process.py` starts: one kernel
 * in a file, a 64 x 64 matrix product of ones, its first number on standard output, and in the
 * second line the processor time that it took until then. */
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/process/processor.h"

enum { SIZE = 64, GROUP = 8, TEXT = 65536 };

static void need(kiln_status status, kiln_diag *diag)
{
    if (status != KILN_OK) {
        char line[1024];
        (void)kiln_diag_format(diag, line, sizeof(line));
        (void)fprintf(stderr, "by_kiln: %s\n", line);
        exit(1);
    }
}

static kiln_source read_source(const char *path, char text[TEXT])
{
    kiln_source source = KILN_SOURCE_INIT;
    FILE *file = fopen(path, "rb");
    source.length = file != NULL ? fread(text, 1, TEXT, file) : 0;
    source.text = text;
    source.name = path;
    source.language = strstr(path, ".cl") != NULL     ? KILN_LANG_OPENCL_C
                      : strstr(path, ".comp") != NULL ? KILN_LANG_GLSL
                      : strstr(path, ".cu") != NULL   ? KILN_LANG_CUDA
                                                      : KILN_LANG_C;
    if (file != NULL) {
        (void)fclose(file);
    }
    return source;
}

int main(int argc, char **argv)
{
    static float ones[SIZE * SIZE], product[SIZE * SIZE];
    static char text[TEXT];
    const int n = SIZE;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    kiln_program *program = NULL;
    kiln_queue *queue = NULL;
    kiln_arg args[4] = {{.kind = KILN_ARG_BUFFER},
                        {.kind = KILN_ARG_BUFFER},
                        {.kind = KILN_ARG_BUFFER},
                        {.kind = KILN_ARG_VALUE, .value = &n, .size = sizeof(n)}};
    if (argc < 4) {
        return 2;
    }
    for (int i = 0; i < SIZE * SIZE; i++) {
        ones[i] = 1.0F;
    }
    const kiln_source source = read_source(argv[2], text);
    need(kiln_runtime_options_init(&options, &diag), &diag);
    options.backend = argv[1];
    options.strict = true;
    need(kiln_runtime_create(&options, &runtime, &diag), &diag);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    need(kiln_program_build(device, &source, 1, NULL, &program, &diag), &diag);
    need(kiln_queue_create(device, &queue, &diag), &diag);
    for (int i = 0; i < 3; i++) {
        need(kiln_buffer_create(device, sizeof(ones), &args[i].buffer, &diag), &diag);
        if (i < 2) {
            need(kiln_queue_write(queue, args[i].buffer, 0, ones, sizeof(ones), &diag), &diag);
        }
    }
    const kiln_launch launch = {.struct_size = sizeof(launch),
                                .dims = 2,
                                .global = {SIZE, SIZE},
                                .local = {GROUP, GROUP},
                                .args = args,
                                .arg_count = 4};
    need(kiln_queue_launch(queue, program, argv[3], &launch, NULL, &diag), &diag);
    need(kiln_queue_read(queue, args[2].buffer, 0, product, sizeof(product), &diag), &diag);
    printf("%g\n", (double)product[0]);
    (void)fflush(stdout);
    print_processor_time();
    for (int i = 0; i < 3; i++) {
        kiln_buffer_destroy(args[i].buffer);
    }
    kiln_program_release(program);
    kiln_queue_destroy(queue);
    kiln_runtime_destroy(runtime);
    return product[0] == (float)SIZE ? 0 : 1;
}

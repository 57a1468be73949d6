/* Level 3: y = a x + y on the best device there is, from the source that this device takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

enum { COUNT = 1 << 16 };

static const char opencl[] =
    "__kernel void saxpy(float a, __global const float *x, __global float *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    y[i] = a * x[i] + y[i];\n"
    "}\n";
static const char cuda[] = "extern \"C\" __global__ void saxpy(float a, const float *x, float *y)\n"
                           "{\n"
                           "    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
                           "    y[i] = a * x[i] + y[i];\n"
                           "}\n";
static const char c[] = "#include <kiln_kernel.h>\n"
                        "KILN_KERNEL(saxpy, KILN_VALUE(float, a), KILN_IN(float, x),\n"
                        "            KILN_INOUT(float, y))\n"
                        "{\n"
                        "    KILN_ITEMS_X(i) { y[i] = a * x[i] + y[i]; }\n"
                        "}\n";

static kiln_source source_of(kiln_language language, const char *name, const char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = language;
    source.name = name;
    source.text = text;
    source.length = strlen(text);
    return source;
}

static kiln_status run(kiln_device *device, kiln_program *program, const float *x, float *y,
                       kiln_diag *diag)
{
    const float a = 2.5F;
    const size_t size = COUNT * sizeof(float);
    kiln_buffer *on_x = NULL, *on_y = NULL;
    kiln_queue *queue = NULL;
    kiln_status status = kiln_buffer_create(device, size, &on_x, diag);
    if (status == KILN_OK) {
        status = kiln_buffer_create(device, size, &on_y, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_create(device, &queue, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_write(queue, on_x, 0, x, size, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_write(queue, on_y, 0, y, size, diag);
    }
    const kiln_arg args[] = {{.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof a},
                             {.kind = KILN_ARG_BUFFER, .buffer = on_x},
                             {.kind = KILN_ARG_BUFFER, .buffer = on_y}};
    const kiln_launch launch = {.struct_size = sizeof launch,
                                .dims = 1,
                                .global = {COUNT},
                                .args = args,
                                .arg_count = sizeof args / sizeof *args};
    if (status == KILN_OK) {
        status = kiln_queue_launch(queue, program, "saxpy", &launch, NULL, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_read(queue, on_y, 0, y, size, diag);
    }
    kiln_queue_destroy(queue);
    kiln_buffer_destroy(on_y);
    kiln_buffer_destroy(on_x);
    return status;
}

int main(void)
{
    const kiln_source sources[] = {source_of(KILN_LANG_CUDA, "saxpy.cu", cuda),
                                   source_of(KILN_LANG_OPENCL_C, "saxpy.cl", opencl),
                                   source_of(KILN_LANG_C, "saxpy.c", c)};
    const size_t count = sizeof sources / sizeof *sources;
    static float x[COUNT], y[COUNT];
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime *runtime = NULL;
    kiln_device *device = NULL;
    kiln_program *program = NULL;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 100);
        y[i] = 1;
    }
    kiln_status status = kiln_runtime_create(NULL, &runtime, &diag);
    if (status == KILN_OK) {
        status = kiln_runtime_select(runtime, sources, count, &device, &diag);
    }
    if (status == KILN_OK) {
        status = kiln_program_build(device, sources, count, NULL, &program, &diag);
    }
    if (status == KILN_OK) {
        printf("%s: %s\n", kiln_device_get_info(device)->name,
               kiln_origin_name(kiln_program_get_info(program)->origin));
        status = run(device, program, x, y, &diag);
    }
    int wrong = 0;
    for (size_t i = 0; status == KILN_OK && i < COUNT; i++) {
        wrong += y[i] != 2.5F * x[i] + 1;
    }
    if (status != KILN_OK) {
        char line[1024];
        (void)kiln_diag_format(&diag, line, sizeof line);
        fprintf(stderr, "%s\n%s", line, diag.log != NULL ? diag.log : "");
    }
    kiln_program_release(program);
    kiln_runtime_destroy(runtime);
    kiln_diag_clear(&diag);
    return status == KILN_OK && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

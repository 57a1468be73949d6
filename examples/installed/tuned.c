/* Level 3 in C: a kernel with variants, measured once and picked from then on. */
#include <stdio.h>

#include <kiln/kiln.h>
#include <kiln/unstable/tune.h>

enum { COUNT = 1 << 16, SHAPES = 3 };
static const char c[] = "#include <kiln_kernel.h>\n"
                        "KILN_KERNEL(twice, KILN_IN(float, x), KILN_OUT(float, y))\n"
                        "{ KILN_ITEMS_X(i) { y[i] = 2 * x[i]; } }\n";

int main(void)
{
    static float x[COUNT], y[COUNT];
    const char *names[SHAPES] = {"groups of 256", "groups of 64", "groups of 1024"};
    const uint64_t locals[SHAPES] = {256, 64, 1024}, sizes[] = {COUNT};
    kiln_source source = KILN_SOURCE_INIT;
    kiln_variant variants[SHAPES];
    source.language = KILN_LANG_C, source.name = "twice.c";
    source.text = c, source.length = sizeof(c) - 1;
    for (int i = 0; i < SHAPES; i++) {
        variants[i] = (kiln_variant){.struct_size = sizeof(kiln_variant),
                                     .name = names[i],
                                     .source = &source,
                                     .entry = "twice",
                                     .launch = {.struct_size = sizeof(kiln_launch),
                                                .dims = 1,
                                                .global = {COUNT},
                                                .local = {locals[i]}}};
    }
    const kiln_kernel kernel = {sizeof(kernel), "twice", variants, SHAPES,
                                sizes,          1,       COUNT,    8.0 * COUNT};
    x[3] = 21;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime *runtime = NULL;
    kiln_device *device = NULL;
    kiln_program *program = NULL;
    kiln_queue *queue = NULL;
    kiln_buffer *on_x = NULL, *on_y = NULL;
    kiln_tuning tuning = {.struct_size = sizeof(tuning)};
    if (kiln_runtime_create(NULL, &runtime, &diag) ||
        kiln_runtime_select(runtime, &source, 1, &device, &diag) ||
        kiln_queue_create(device, &queue, &diag) ||
        kiln_buffer_create(device, sizeof(x), &on_x, &diag) ||
        kiln_buffer_create(device, sizeof(y), &on_y, &diag) ||
        kiln_queue_write(queue, on_x, 0, x, sizeof(x), &diag)) {
        return 1;
    }
    const kiln_arg args[] = {{.kind = KILN_ARG_BUFFER, .buffer = on_x},
                             {.kind = KILN_ARG_BUFFER, .buffer = on_y}};
    const kiln_tune_output output = {.arg = 1, .element = KILN_ELEMENT_F32};
    const kiln_tune_options options = {.struct_size = sizeof(options),
                                       .args = args,
                                       .arg_count = 2,
                                       .outputs = &output,
                                       .output_count = 1};
    if (kiln_tune(device, &kernel, &options, &tuning,
                  &diag)) { /* once; later starts leave this out */
        return 1;
    }
    printf("%s", tuning.launches > 0 ? "measured, " : "found, ");
    kiln_status status = kiln_tuned_build(device, &kernel, NULL, &program, &tuning, &diag);
    kiln_launch launch = variants[tuning.variant].launch;
    launch.args = args, launch.arg_count = 2;
    status = status ? status : kiln_queue_launch(queue, program, "twice", &launch, NULL, &diag);
    status = status ? status : kiln_queue_read(queue, on_y, 0, y, sizeof(y), &diag);
    printf("%s: y[3] = %g\n", names[tuning.variant], y[3]);
    return status;
}

/* hello TEXT: greets through the hello backend, and says whether the "compile" was needed.
 * KILN_BACKEND_PATH names the backend's file. */
#include <kiln/kiln.h>

#include <stdio.h>
#include <string.h>

static int complain(kiln_diag *diag)
{
    char line[2048];
    (void)kiln_diag_format(diag, line, sizeof(line));
    (void)fprintf(stderr, "hello: %s\n", line);
    kiln_diag_clear(diag);
    return 1;
}

static kiln_status greet(kiln_runtime *runtime, const char *text, kiln_diag *diag)
{
    char answer[256] = "";
    kiln_device *device = NULL;
    kiln_program *program = NULL;
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_FAKE;
    source.name = "greeting";
    source.text = text;
    source.length = strlen(text);
    kiln_status status = kiln_runtime_select(runtime, &source, 1, &device, diag);
    if (status == KILN_OK) {
        status = kiln_program_build(device, &source, 1, NULL, &program, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_create(device, &queue, diag);
    }
    if (status == KILN_OK) {
        status = kiln_buffer_create(device, sizeof(answer), &buffer, diag);
    }
    if (status == KILN_OK) {
        kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
        kiln_launch launch = {
            .struct_size = sizeof(launch), .dims = 1, .global = {1}, .args = &arg, .arg_count = 1};
        status = kiln_queue_launch(queue, program, "greet", &launch, NULL, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_read(queue, buffer, 0, answer, sizeof(answer) - 1, diag);
    }
    if (status == KILN_OK) {
        (void)printf("%s (%s)\n", answer, kiln_origin_name(kiln_program_get_info(program)->origin));
    }
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
    kiln_program_release(program);
    return status;
}

int main(int argc, char **argv)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    if (kiln_runtime_options_init(&options, &diag) != KILN_OK) {
        return complain(&diag);
    }
    options.backend = "hello";
    options.strict = true;
    if (kiln_runtime_create(&options, &runtime, &diag) != KILN_OK) {
        return complain(&diag);
    }
    kiln_status status = greet(runtime, argc > 1 ? argv[1] : "hello, world", &diag);
    kiln_runtime_destroy(runtime);
    return status == KILN_OK ? 0 : complain(&diag);
}

/* The smallest honest backend: one device, one kernel, nothing but kiln's public headers. It lives
 * in a file of its own and is loaded by $KILN_BACKEND_PATH; a program can register one just as
 * well.
 *
 * Its "language" is a text, its "compiler" writes it in capitals, its only kernel, greet, puts that
 * into a buffer. Everything kiln does for a real backend it does for this one: the key, the cache,
 * single flight, argument checks. */
#include <kiln/sys/backend.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COMPILER_VERSION "1.0"

typedef struct hello_program {
    size_t size;
    char text[];
} hello_program;

/* Buffers are memory, the device and its queues are the instance: there is nothing to distinguish.
 */
typedef struct hello_instance {
    const kiln_host *host;
} hello_instance;

static kiln_status no_memory(kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "hello", "out of memory");
}

/* --- compiler --------------------------------------------------------------------------------- */

static const kiln_stage *hello_stages(void *instance, const kiln_target *target,
                                      kiln_language language, size_t *out_count)
{
    static const kiln_stage stages[] = {
        {.name = "hello.capitals", .revision = 1, .takes_source = true}};
    (void)instance;
    (void)target;
    *out_count = 1;
    return language == KILN_LANG_FAKE ? stages : NULL;
}

static kiln_status hello_target(void *instance, uint32_t index, kiln_target *out_target,
                                kiln_diag *diag)
{
    (void)instance;
    (void)index;
    (void)diag;
    memcpy(out_target->name, "hello", sizeof("hello"));
    return KILN_OK;
}

static void hello_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    (void)target;
}

/* Whatever changes the output for the same text belongs here. */
static kiln_status hello_identify(void *instance, const kiln_stage *stage,
                                  const kiln_target *target, const kiln_identity *identity,
                                  kiln_diag *diag)
{
    (void)instance;
    (void)stage;
    (void)target;
    (void)diag;
    identity->text(identity->sink, "compiler.version", COMPILER_VERSION);
    return KILN_OK;
}

static const char *hello_system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    (void)instance;
    (void)target;
    (void)index;
    return NULL;
}

static bool hello_ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance;
    (void)target;
    (void)name;
    return false;
}

static const char *hello_uncacheable_option(void *instance, const kiln_source *source)
{
    (void)instance;
    (void)source;
    return NULL;
}

static kiln_status hello_compile(void *instance, const kiln_compile_request *request,
                                 kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    const hello_instance *hello = (const hello_instance *)instance;
    const char *text = (const char *)request->source->text;
    size_t size = request->source->length;
    (void)out_live;
    char *capitals = (char *)malloc(size);
    if (capitals == NULL) {
        return no_memory(diag);
    }
    for (size_t i = 0; i < size; i++) {
        capitals[i] = (char)toupper((unsigned char)text[i]);
    }
    kiln_status status = hello->host->artifact_set(artifact, KILN_LANG_NONE, capitals, size);
    free(capitals);
    return status == KILN_OK ? status : no_memory(diag);
}

/* --- device ----------------------------------------------------------------------------------- */

static kiln_status hello_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                                     kiln_diag *diag)
{
    (void)instance;
    (void)index;
    (void)diag;
    memcpy(out_info->name, "Hello", sizeof("Hello"));
    out_info->device_class = KILN_DEVICE_SOFTWARE;
    out_info->max_group_size = 1;
    out_info->max_buffer_bytes = 1u << 20;
    return KILN_OK;
}

static kiln_status hello_device_open(void *instance, uint32_t index, void **out_device,
                                     kiln_diag *diag)
{
    (void)index;
    (void)diag;
    *out_device = instance;
    return KILN_OK;
}

static void hello_device_close(void *device)
{
    (void)device;
}

static kiln_status hello_buffer_create(void *device, size_t size, void **out_buffer,
                                       kiln_diag *diag)
{
    (void)device;
    *out_buffer = calloc(1, size);
    return *out_buffer != NULL ? KILN_OK : no_memory(diag);
}

static void hello_buffer_destroy(void *device, void *buffer)
{
    (void)device;
    free(buffer);
}

static kiln_status hello_program_load(void *device, const kiln_load_request *request,
                                      void **out_program, kiln_diag *diag)
{
    const kiln_artifact *artifact = request->artifacts[0];
    (void)device;
    hello_program *program = (hello_program *)malloc(sizeof(*program) + artifact->size);
    if (program == NULL) {
        return no_memory(diag);
    }
    program->size = artifact->size;
    memcpy(program->text, artifact->data, artifact->size);
    *out_program = program;
    return KILN_OK;
}

static void hello_program_unload(void *device, void *program)
{
    (void)device;
    free(program);
}

static kiln_status hello_queue_create(void *device, void **out_queue, kiln_diag *diag)
{
    (void)diag;
    *out_queue = device;
    return KILN_OK;
}

static void hello_queue_destroy(void *device, void *queue)
{
    (void)device;
    (void)queue;
}

static kiln_status hello_queue_write(void *queue, void *buffer, size_t offset, const void *data,
                                     size_t size, void **out_event, kiln_diag *diag)
{
    (void)diag;
    memcpy((char *)buffer + offset, data, size);
    if (out_event != NULL) {
        *out_event = queue;
    }
    return KILN_OK;
}

static kiln_status hello_queue_read(void *queue, void *buffer, size_t offset, void *data,
                                    size_t size, void **out_event, kiln_diag *diag)
{
    (void)diag;
    memcpy(data, (const char *)buffer + offset, size);
    if (out_event != NULL) {
        *out_event = queue;
    }
    return KILN_OK;
}

/* Without KILN_CAP_REFLECT core cannot compare the arguments: this is the place to. */
static kiln_status hello_queue_launch(void *queue, const kiln_sys_launch *launch, void **out_event,
                                      kiln_diag *diag)
{
    const hello_program *program = (const hello_program *)launch->program;
    if (strcmp(launch->entry, "greet") != 0 || launch->arg_count != 1 ||
        launch->args[0].kind != KILN_ARG_BUFFER || launch->args[0].size < program->size) {
        return kiln_diag_set(diag, KILN_E_INVALID, "launch greet with one large enough buffer",
                             "hello", "cannot launch \"%s\" like that", launch->entry);
    }
    memcpy(launch->args[0].buffer, program->text, program->size);
    if (out_event != NULL) {
        *out_event = queue;
    }
    return KILN_OK;
}

static kiln_status hello_queue_finish(void *queue, kiln_diag *diag)
{
    (void)queue;
    (void)diag;
    return KILN_OK;
}

static bool hello_event_done(void *device, void *event)
{
    (void)device;
    (void)event;
    return true;
}

static kiln_status hello_event_wait(void *device, void *event, kiln_diag *diag)
{
    (void)device;
    (void)event;
    (void)diag;
    return KILN_OK;
}

static kiln_status hello_event_elapsed(void *device, void *event, uint64_t *out_ns, kiln_diag *diag)
{
    (void)device;
    (void)event;
    (void)diag;
    *out_ns = 1;
    return KILN_OK;
}

static void hello_event_destroy(void *device, void *event)
{
    (void)device;
    (void)event;
}

/* --- backend ---------------------------------------------------------------------------------- */

static kiln_status hello_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                              kiln_diag *diag)
{
    hello_instance *hello = (hello_instance *)calloc(1, sizeof(*hello));
    if (hello == NULL) {
        return no_memory(diag);
    }
    hello->host = host;
    report->outcome = KILN_PROBE_READY;
    memcpy(report->version, COMPILER_VERSION, sizeof(COMPILER_VERSION));
    report->device_count = 1;
    *out_instance = hello;
    return KILN_OK;
}

static void hello_close(void *instance)
{
    free(instance);
}

/* Nothing is known: a source with an include bypasses the cache. */
static const kiln_include_rules include_rules = {.complete = false};

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = hello_stages,
    .target_of_device = hello_target,
    .target_destroy = hello_target_destroy,
    .identify = hello_identify,
    .system_include_dir = hello_system_include_dir,
    .ships_header = hello_ships_header,
    .uncacheable_option = hello_uncacheable_option,
    .compile = hello_compile,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = hello_device_info,
    .device_open = hello_device_open,
    .device_close = hello_device_close,
    .buffer_create = hello_buffer_create,
    .buffer_destroy = hello_buffer_destroy,
    .program_load = hello_program_load,
    .program_unload = hello_program_unload,
    .queue_create = hello_queue_create,
    .queue_destroy = hello_queue_destroy,
    .queue_write = hello_queue_write,
    .queue_read = hello_queue_read,
    .queue_launch = hello_queue_launch,
    .queue_finish = hello_queue_finish,
    .event_done = hello_event_done,
    .event_wait = hello_event_wait,
    .event_elapsed = hello_event_elapsed,
    .event_destroy = hello_event_destroy,
};

static const kiln_backend backend = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "hello",
    .summary = "an example: greets in capitals",
    .caps = KILN_CAP_ANY_THREAD,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = hello_open,
    .close = hello_close,
};

KILN_API const kiln_backend *kiln_backend_entry(void);

const kiln_backend *kiln_backend_entry(void)
{
    return &backend;
}

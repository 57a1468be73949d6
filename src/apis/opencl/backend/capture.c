/* Capturing a program's binary again after it has run, for PoCL.
 *
 * PoCL compiles a kernel a second time at its first launch with a new shape (local size; offset
 * zero or not; grid narrower than 65,535), and that code belongs to the program's binary: one that
 * is read after the launch is done holds it, and the next process starts warm. But a program gives
 * its binary away once: the first answer is kept, and a program that was loaded from a binary
 * returns that very binary for ever. So a capture builds the same program from source again, which
 * PoCL answers from its own directory without compiling, and reads that one's binary. Whether it is
 * the same program is decided by the hash in the binary's header: where a header file has changed
 * meanwhile, or PoCL's own cache is off, it is not, and the capture is given up. All this was
 * measured; docs/reference/backends/opencl.md has the figures.
 *
 * Reading the first binary of a program makes PoCL compile all its kernels for any size, launched
 * or not. So a compile whose program is used at once does not read it, and the first capture does.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/program.h"
#include "apis/opencl/backend/status.h"
#include "base/text.h"
#include "sys/env.h"

/* PoCL's USHRT_MAX: work-items in the widest dimension. */
#define SMALL_GRID 65535u

kn_opencl_shape kn_opencl_shape_of(const char *kernel, const uint64_t *global,
                                   const uint64_t *local, const uint64_t *offset)
{
    kn_opencl_shape shape = {.zero_offset = true, .small_grid = true};
    kn_text_put(shape.kernel, sizeof(shape.kernel), kernel);
    for (int i = 0; i < 3; i++) {
        shape.local[i] = local[i];
        shape.zero_offset = shape.zero_offset && offset[i] == 0;
        shape.small_grid = shape.small_grid && global[i] < SMALL_GRID;
    }
    return shape;
}

static bool same_shape(const kn_opencl_shape *a, const kn_opencl_shape *b)
{
    return memcmp(a->local, b->local, sizeof(a->local)) == 0 && a->zero_offset == b->zero_offset &&
           a->small_grid == b->small_grid && strcmp(a->kernel, b->kernel) == 0;
}

static size_t find_shape(const kn_opencl_capture *capture, const kn_opencl_shape *shape)
{
    size_t i = 0;
    while (i < capture->count && !same_shape(&capture->shapes[i], shape)) {
        i++;
    }
    return i;
}

bool kn_opencl_capture_wants(kn_opencl_capture *capture, kn_opencl_shape *shape)
{
    if (!capture->enabled) {
        return false;
    }
    if (capture->general) {
        memset(shape->local, 0, sizeof(shape->local));
        shape->zero_offset = false;
        shape->small_grid = false;
    }
    kn_mutex_lock(&capture->lock);
    const bool held = capture->general && !capture->unread;
    bool wants = !held && !capture->failed && capture->count < KN_OPENCL_MAX_SHAPES &&
                 find_shape(capture, shape) == capture->count;
    kn_mutex_unlock(&capture->lock);
    return wants;
}

void kn_opencl_capture_add(kn_opencl_capture *capture, const kn_opencl_api *api,
                           const kn_opencl_shape *shape, cl_event event)
{
    kn_mutex_lock(&capture->lock);
    size_t at = find_shape(capture, shape);
    if (at == capture->count && at < KN_OPENCL_MAX_SHAPES &&
        api->clRetainEvent(event) == CL_SUCCESS) {
        capture->shapes[at] = *shape;
        capture->events[at] = event;
        capture->held[at] = false;
        capture->count = at + 1;
    }
    kn_mutex_unlock(&capture->lock);
}

/* --- the fact: "X Y Z offset-is-zero grid-is-small kernel" a line ----------------------------- */

static void shape_to_line(const kn_opencl_shape *shape, kn_strbuf *text)
{
    kn_strbuf_printf(text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %s\n", shape->local[0],
                     shape->local[1], shape->local[2], shape->zero_offset, shape->small_grid,
                     shape->kernel);
}

/* One of the list: "64-1-1", then "-goffs0" and "-smallgrid". */
static bool shape_from_word(const char *word, kn_opencl_shape *shape)
{
    *shape = (kn_opencl_shape){0};
    for (int i = 0; i < 3; i++) {
        char *rest = NULL;
        shape->local[i] = strtoull(word, &rest, 10);
        if (rest == word || (i < 2 && *rest != '-')) {
            return false;
        }
        word = rest + (i < 2);
    }
    shape->zero_offset = strncmp(word, "-goffs0", 7) == 0;
    shape->small_grid = strncmp(word + (shape->zero_offset ? 7 : 0), "-smallgrid", 10) == 0;
    return true;
}

void kn_opencl_shapes_asked_for(const kn_opencl_kernels *kernels, kn_strbuf *text)
{
    const char *at = kn_env_get("POCL_BINARY_SPECIALIZE_WG");
    while (at != NULL && *at != '\0') {
        kn_opencl_shape shape;
        for (size_t i = 0; shape_from_word(at, &shape) && i < kernels->count; i++) {
            kn_text_put(shape.kernel, sizeof(shape.kernel), kernels->items[i].name);
            shape_to_line(&shape, text);
        }
        at += strcspn(at, ",");
        at += *at == ',';
    }
}

static bool shape_from_line(const char *line, kn_opencl_shape *shape)
{
    uint64_t numbers[5] = {0};
    char word[24];
    for (int i = 0; i < 5; i++) {
        size_t length = strcspn(line, " ");
        if (length >= sizeof(word) || line[length] != ' ') {
            return false;
        }
        kn_text_putf(word, sizeof(word), "%.*s", (int)length, line);
        if (!kn_text_to_u64(word, &numbers[i])) {
            return false;
        }
        line += length + 1;
    }
    *shape = (kn_opencl_shape){.zero_offset = numbers[3] != 0, .small_grid = numbers[4] != 0};
    memcpy(shape->local, numbers, sizeof(shape->local));
    kn_text_put(shape->kernel, sizeof(shape->kernel), line);
    return line[0] != '\0';
}

static void read_shapes(kn_opencl_capture *capture, const char *text, size_t size)
{
    char line[512];
    for (size_t at = 0; at < size && capture->count < KN_OPENCL_MAX_SHAPES;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : size - at;
        kn_text_putf(line, sizeof(line), "%.*s", (int)(length < 511 ? length : 511), text + at);
        if (shape_from_line(line, &capture->shapes[capture->count])) {
            capture->held[capture->count++] = true;
        }
        at += length + 1;
    }
}

/* --- setting up ------------------------------------------------------------------------------- */

/* A fact as text of its own; NULL if there is none or memory is short. */
static char *fact_text(const kiln_host *host, const kiln_artifact *artifact, const char *name,
                       size_t *out_size)
{
    size_t size = 0;
    const char *fact = (const char *)host->artifact_fact(artifact, name, &size);
    if (out_size != NULL) {
        *out_size = size;
    }
    return fact != NULL ? kn_text_copy_n(fact, size) : NULL;
}

/* The request made ready again as it was for the compile, down to the option string: that is part
 * of PoCL's hash. */
static bool prepare_input(kn_opencl_capture *capture, const kiln_host *host,
                          const kiln_source *source, const kiln_artifact *artifact)
{
    char *options = fact_text(host, artifact, KN_OPENCL_FACT_OPTIONS, NULL);
    char *dir = fact_text(host, artifact, KN_OPENCL_FACT_DIR, NULL);
    bool ready =
        options != NULL && kn_opencl_input_init(&capture->input, source, dir, NULL) == KILN_OK;
    free(dir);
    if (!ready) {
        free(options);
        return false;
    }
    free(capture->input.options);
    capture->input.options = options;
    return true;
}

void kn_opencl_capture_init(kn_opencl_capture *capture, const kn_opencl_device *device,
                            const kiln_source *source, const kiln_artifact *artifact)
{
    const kiln_host *host = device->cl->host;
    if (!device->unit->is_pocl || source == NULL || source->text == NULL ||
        source->language != KILN_LANG_OPENCL_C ||
        (artifact->size < KN_POCL_HEADER && !artifact->later)) {
        return;
    }
    size_t size = 0;
    const char *shapes = (const char *)host->artifact_fact(artifact, KN_OPENCL_FACT_SHAPES, &size);
    if (shapes == NULL || !prepare_input(capture, host, source, artifact)) {
        return;
    }
    capture->params = fact_text(host, artifact, KN_OPENCL_FACT_PARAMS, &capture->params_size);
    capture->log = artifact->log != NULL ? kn_text_copy(artifact->log) : NULL;
    if (capture->params == NULL || (artifact->log != NULL && capture->log == NULL)) {
        return;
    }
    capture->unread = artifact->later;
    capture->general = !kn_pocl_specializes();
    if (!capture->unread) {
        memcpy(capture->header, artifact->data, KN_POCL_HEADER);
    }
    read_shapes(capture, shapes, size);
    capture->enabled = true;
}

void kn_opencl_capture_deinit(kn_opencl_capture *capture, const kn_opencl_api *api)
{
    for (size_t i = 0; i < capture->count; i++) {
        if (capture->events[i] != NULL) {
            (void)api->clReleaseEvent(capture->events[i]);
        }
    }
    kn_opencl_input_deinit(&capture->input);
    free(capture->params);
    free(capture->log);
}

/* --- capturing -------------------------------------------------------------------------------- */

bool kn_opencl_program_grew(void *device, void *program)
{
    kn_opencl_capture *capture = &((kn_opencl_program *)program)->capture;
    bool grew = false;
    (void)device;
    if (((kn_opencl_program *)program)->is_ptx) {
        return !atomic_load(&((kn_opencl_program *)program)->assembled);
    }
    if (!capture->enabled) {
        return false;
    }
    kn_mutex_lock(&capture->lock);
    for (size_t i = 0; i < capture->count && !capture->failed; i++) {
        grew = grew || !capture->held[i];
    }
    kn_mutex_unlock(&capture->lock);
    return grew;
}

/* Waits for the first launch of every shape there is now; returns how many that are. A launch that
 * failed may have left no code behind: then the next process compiles it, no more. */
static size_t wait_for_launches(kn_opencl_capture *capture, const kn_opencl_api *api)
{
    cl_event events[KN_OPENCL_MAX_SHAPES];
    kn_mutex_lock(&capture->lock);
    size_t count = capture->count;
    for (size_t i = 0; i < count; i++) {
        events[i] = capture->events[i];
        capture->events[i] = NULL;
    }
    kn_mutex_unlock(&capture->lock);
    for (size_t i = 0; i < count; i++) {
        if (events[i] != NULL) {
            (void)api->clWaitForEvents(1, &events[i]);
            (void)api->clReleaseEvent(events[i]);
        }
    }
    return count;
}

/* The binary of the program that was built from source and has run: no more than that is needed the
 * first time, for a program's first answer holds what was launched before. */
static kiln_status read_first(kn_opencl_program *program, const kn_opencl_site *site,
                              void **out_data, size_t *out_size, kiln_diag *diag)
{
    kn_opencl_capture *capture = &program->capture;
    kiln_status status = kn_opencl_read_binary(site, program->handle, out_data, out_size, diag);
    if (status == KILN_OK && !kn_pocl_binary_is_sound(*out_data, *out_size)) {
        free(*out_data);
        *out_data = NULL;
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "capturing an OpenCL program",
                               "PoCL gives %zu bytes that are not a binary", *out_size);
    }
    if (status == KILN_OK) {
        memcpy(capture->header, *out_data, KN_POCL_HEADER);
        capture->unread = false;
    }
    return status;
}

static kiln_status read_again(const kn_opencl_capture *capture, const kn_opencl_site *site,
                              void **out_data, size_t *out_size, kiln_diag *diag)
{
    cl_program program = NULL;
    char *log = NULL;
    kn_opencl_input input = capture->input; /* borrowed: enter and leave touch `entered` only */
    kiln_status status = kn_opencl_input_enter(&input, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_opencl_build_source(site, KILN_LANG_OPENCL_C, input.text, input.length,
                                    input.options, &program, &log, diag);
    if (status == KILN_OK) {
        status = kn_opencl_read_binary(site, program, out_data, out_size, diag);
        (void)site->api->clReleaseProgram(program);
    }
    kn_opencl_input_leave(&input);
    free(log);
    if (status == KILN_OK &&
        (*out_size < KN_POCL_HEADER || memcmp(*out_data, capture->header, KN_POCL_HEADER) != 0)) {
        free(*out_data);
        *out_data = NULL;
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "capturing an OpenCL program",
                               "PoCL does not find the program again (a header has changed, or "
                               "POCL_KERNEL_CACHE is 0)");
    }
    return status;
}

static kiln_status keep_captured(const kn_opencl_program *program, const kiln_host *host,
                                 size_t shapes, const void *data, size_t size,
                                 kiln_artifact *artifact)
{
    const kn_opencl_capture *capture = &program->capture;
    const kn_opencl_input *input = &capture->input;
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    for (size_t i = 0; i < shapes; i++) {
        shape_to_line(&capture->shapes[i], &text);
    }
    kn_opencl_shapes_asked_for(&program->kernels, &text);
    kiln_status status = kn_strbuf_ok(&text) ? KILN_OK : KILN_E_NOMEM;
    if (status == KILN_OK) {
        status = host->artifact_set(artifact, KILN_LANG_NONE, data, size);
    }
    if (status == KILN_OK && capture->log != NULL) {
        status = host->artifact_set_log(artifact, capture->log, strlen(capture->log));
    }
    if (status == KILN_OK) {
        status = host->artifact_set_fact(artifact, KN_OPENCL_FACT_PARAMS, capture->params,
                                         capture->params_size);
    }
    if (status == KILN_OK) {
        status = host->artifact_set_fact(artifact, KN_OPENCL_FACT_SHAPES, kn_strbuf_text(&text),
                                         text.length);
    }
    if (status == KILN_OK) {
        status = host->artifact_set_fact(artifact, KN_OPENCL_FACT_OPTIONS, input->options,
                                         strlen(input->options));
    }
    if (status == KILN_OK && input->dir != NULL) {
        status =
            host->artifact_set_fact(artifact, KN_OPENCL_FACT_DIR, input->dir, strlen(input->dir));
    }
    kn_strbuf_deinit(&text);
    return status;
}

/* The same PTX, and the machine code of it. */
static kiln_status assemble_program(const kn_opencl_device *device, kn_opencl_program *program,
                                    kiln_artifact *artifact, kiln_diag *diag)
{
    const kn_opencl_site site = {&device->cl->api, device->context, device->unit->device};
    const kiln_host *host = device->cl->host;
    void *ptx = NULL;
    size_t size = 0;
    kn_strbuf params;
    atomic_store(&program->assembled, true); /* one that fails is not tried again */
    kn_strbuf_init(&params, 0);
    kiln_status status = kn_opencl_read_binary(&site, program->handle, &ptx, &size, diag);
    if (status == KILN_OK && !kn_nvidia_can_assemble(device->unit->capability, ptx, size, "")) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "assembling an OpenCL program",
                               "the driver gives %zu bytes that are not its PTX", size);
    }
    if (status == KILN_OK) {
        status = kn_opencl_keep_code(device->unit, host, ptx, artifact, diag);
    }
    if (status == KILN_OK) {
        kn_opencl_kernels_to_fact(&program->kernels, &params);
        status = host->artifact_set(artifact, KILN_LANG_NONE, ptx, size);
    }
    if (status == KILN_OK) {
        status = kn_strbuf_ok(&params)
                     ? host->artifact_set_fact(artifact, KN_OPENCL_FACT_PARAMS,
                                               kn_strbuf_text(&params), params.length)
                     : KILN_E_NOMEM;
    }
    kn_strbuf_deinit(&params);
    free(ptx);
    return status;
}

kiln_status kn_opencl_program_capture(void *device, void *program, kiln_artifact *artifact,
                                      kiln_diag *diag)
{
    const kn_opencl_device *dev = (const kn_opencl_device *)device;
    const kn_opencl_site site = {&dev->cl->api, dev->context, dev->unit->device};
    kn_opencl_program *owner = (kn_opencl_program *)program;
    kn_opencl_capture *capture = &owner->capture;
    void *data = NULL;
    size_t size = 0;
    if (owner->is_ptx) {
        return assemble_program(dev, owner, artifact, diag);
    }
    if (!capture->enabled) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "capturing an OpenCL program",
                             "%s needs no capture, or the source is not at hand",
                             dev->unit->info.platform);
    }
    /* Shapes only ever get appended, so the first `count` may be read without the lock. */
    size_t count = wait_for_launches(capture, site.api);
    kiln_status status = kn_pocl_check_linker(dev->unit->takes_linker, diag);
    if (status == KILN_OK) {
        status = kn_pocl_check_names(site.api, owner->handle, diag);
    }
    if (status == KILN_OK) {
        status = capture->unread ? read_first(owner, &site, &data, &size, diag)
                                 : read_again(capture, &site, &data, &size, diag);
    }
    if (status == KILN_OK) {
        status = keep_captured(owner, dev->cl->host, count, data, size, artifact);
    }
    free(data);
    kn_mutex_lock(&capture->lock);
    capture->failed = status != KILN_OK;
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        capture->held[i] = true;
    }
    kn_mutex_unlock(&capture->lock);
    return status;
}

/* Programs: one text, and a linked program for each work-group size. A size that the text leaves
 * open is set at the first launch that needs it, which is why the artifact is captured again after
 * such a launch; the next process then loads all sizes from their binaries. */
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/container.h"
#include "apis/opengl/backend/opengl.h"
#include "base/diag.h"
#include "base/text.h"

struct kn_gl_program {
    kn_gl_device *device;
    char *text, *names, *name; /* name: what messages call it */
    size_t text_size, head, names_size;
    bool local_open[3];
    kn_gl_variant *variants[KN_GL_MAX_VARIANTS];
    size_t variant_count;
    bool grew;
};

static const char *name_of(const kiln_source *source)
{
    return source != NULL && source->name != NULL ? source->name : "program";
}

static bool is_open(const kn_gl_program *program)
{
    return program->local_open[0] || program->local_open[1] || program->local_open[2];
}

static kiln_status create_program(kn_gl_device *device, const char *name,
                                  const kn_gl_container *from, kn_gl_program **out_program,
                                  kiln_diag *diag)
{
    kn_gl_program *program = (kn_gl_program *)calloc(1, sizeof(*program));
    *out_program = NULL;
    if (program == NULL) {
        return kn_no_memory(diag, name);
    }
    program->device = device;
    program->text = kn_text_copy_n(from->text, from->text_size);
    program->names = kn_text_copy_n(from->names, from->names_size);
    program->name = kn_text_copy(name);
    program->text_size = from->text_size;
    program->names_size = from->names_size;
    program->head = from->head;
    memcpy(program->local_open, from->local_open, sizeof(program->local_open));
    if (program->text == NULL || program->names == NULL || program->name == NULL) {
        kn_gl_program_unload(device, program);
        return kn_no_memory(diag, name);
    }
    *out_program = program;
    return KILN_OK;
}

void kn_gl_program_unload(void *opaque, void *handle)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    kn_gl_program *program = (kn_gl_program *)handle;
    if (program == NULL) {
        return;
    }
    const bool entered = kn_gl_enter(device->owner, device->unit, NULL) == KILN_OK;
    for (size_t i = 0; i < program->variant_count; i++) {
        if (entered) {
            device->unit->gl.glDeleteProgram(program->variants[i]->program);
        }
        free(program->variants[i]);
    }
    free(program->name);
    free(program->names);
    free(program->text);
    free(program);
}

/* --- variants --------------------------------------------------------------------------------- */

/* The text with the work-group size set; `link` false only asks whether it compiles. */
static kiln_status build_program(const kn_gl_program *program, const uint32_t local[3], bool link,
                                 GLuint *out_program, char **out_log, kiln_diag *diag)
{
    const kn_gl_api *gl = &program->device->unit->gl;
    const kn_gl_names names = {program->names, program->names_size};
    char macros[160];
    GLuint shader = 0;
    kn_text_putf(macros, sizeof(macros),
                 "#define KILN_LOCAL_SIZE_X %u\n#define KILN_LOCAL_SIZE_Y %u\n"
                 "#define KILN_LOCAL_SIZE_Z %u\n",
                 local[0], local[1], local[2]);
    const char *const pieces[] = {program->text, macros, program->text + program->head};
    const GLint lengths[] = {(GLint)program->head, (GLint)strlen(macros),
                             (GLint)(program->text_size - program->head)};
    *out_program = 0;
    kiln_status status = kn_gl_compile_shader(gl, GL_COMPUTE_SHADER, pieces, lengths, 3,
                                              program->name, names, &shader, out_log, diag);
    if (status != KILN_OK || !link) {
        gl->glDeleteShader(shader); /* of 0: nothing */
        return status;
    }
    const GLuint linked = gl->glCreateProgram();
    gl->glProgramParameteri(linked, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
    gl->glAttachShader(linked, shader);
    status = kn_gl_link(gl, linked, program->name, diag);
    gl->glDetachShader(linked, shader);
    gl->glDeleteShader(shader);
    if (status != KILN_OK) {
        gl->glDeleteProgram(linked);
        free(*out_log);
        *out_log = NULL;
        return status;
    }
    *out_program = linked;
    return KILN_OK;
}

/* Takes the linked program over, also on failure. */
static kiln_status add_variant(kn_gl_program *program, const uint32_t local[3], GLuint linked,
                               kn_gl_variant **out_variant, kiln_diag *diag)
{
    const kn_gl_api *gl = &program->device->unit->gl;
    kn_gl_variant *variant = (kn_gl_variant *)calloc(1, sizeof(*variant));
    kiln_status status = KILN_OK;
    if (variant == NULL || program->variant_count == KN_GL_MAX_VARIANTS) {
        status =
            kiln_diag_set(diag, KILN_E_NOMEM, NULL, program->name,
                          "out of memory, or more than %d work-group sizes", KN_GL_MAX_VARIANTS);
    } else {
        status = kn_gl_reflect(gl, linked, program->name, &variant->interface, diag);
    }
    if (status != KILN_OK) {
        gl->glDeleteProgram(linked);
        free(variant);
        return status;
    }
    memcpy(variant->local, local, sizeof(variant->local));
    variant->program = linked;
    program->variants[program->variant_count++] = variant;
    *out_variant = variant;
    return KILN_OK;
}

static kn_gl_variant *find_variant(const kn_gl_program *program, const uint32_t local[3])
{
    for (size_t i = 0; i < program->variant_count; i++) {
        if (memcmp(program->variants[i]->local, local, sizeof(program->variants[i]->local)) == 0) {
            return program->variants[i];
        }
    }
    return NULL;
}

kiln_status kn_gl_program_variant(kn_gl_program *program, const kiln_sys_launch *launch,
                                  const kn_gl_variant **out_variant, kiln_diag *diag)
{
    uint32_t local[3];
    char *log = NULL;
    GLuint linked = 0;
    *out_variant = NULL;
    if (strcmp(launch->entry, "main") != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use main", launch->entry,
                             "a GLSL program has the entry main and no other");
    }
    const kn_glsl_groups *groups = &program->device->unit->limits.groups;
    kiln_status status = kn_glsl_choose_local(groups, program->local_open, NULL, launch->local,
                                              launch->global, launch->entry, local, diag);
    kn_gl_variant *variant = status == KILN_OK ? find_variant(program, local) : NULL;
    if (status == KILN_OK && variant == NULL) {
        status = build_program(program, local, true, &linked, &log, diag);
        free(log); /* the same as the first time */
        if (status == KILN_OK) {
            status = add_variant(program, local, linked, &variant, diag);
            program->grew = program->grew || status == KILN_OK;
        }
    }
    if (status == KILN_OK) {
        status = kn_glsl_choose_local(groups, program->local_open, variant->interface.local,
                                      launch->local, launch->global, program->name, local, diag);
    }
    *out_variant = status == KILN_OK ? variant : NULL;
    return status;
}

/* --- making and loading ----------------------------------------------------------------------- */

/* A text whose size is fixed is linked now; one whose size is open is only checked. */
static kiln_status prepare_program(kn_gl_program *program, char **out_log, kiln_diag *diag)
{
    static const uint32_t one[3] = {1, 1, 1};
    static const uint32_t none[3] = {0, 0, 0};
    kn_gl_variant *variant = NULL;
    GLuint linked = 0;
    kiln_status status = build_program(program, one, !is_open(program), &linked, out_log, diag);
    if (status == KILN_OK && linked != 0) {
        status = add_variant(program, none, linked, &variant, diag);
    }
    return status;
}

static kiln_status create_from_source(kn_gl_device *device, const kiln_source *source,
                                      kn_gl_program **out_program, char **out_log, kiln_diag *diag)
{
    const char *name = name_of(source);
    kn_gl_text text;
    *out_program = NULL;
    *out_log = NULL;
    if (source->option_count > 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use #pragma and #extension in the source", name,
                             "an OpenGL driver takes no compiler options; '%.80s' was given",
                             source->options[0]);
    }
    kn_gl_text_init(&text);
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status == KILN_OK) {
        status = kn_gl_flatten(source, &text, diag);
    }
    if (status == KILN_OK) {
        kn_gl_container parts = {
            .text = text.text.data,
            .text_size = text.text.length,
            .head = text.head,
            .names = text.names.data,
            .names_size = text.names.length,
            .local_open = {text.local_open[0], text.local_open[1], text.local_open[2]},
        };
        status = create_program(device, name, &parts, out_program, diag);
    }
    if (status == KILN_OK) {
        status = prepare_program(*out_program, out_log, diag);
    }
    if (status != KILN_OK) {
        kn_gl_program_unload(device, *out_program);
        free(*out_log);
        *out_program = NULL;
        *out_log = NULL;
    }
    kn_gl_text_deinit(&text);
    return status;
}

static const char only_entry[] = "main\n"; /* of GLSL */

kiln_status kn_gl_compile(void *instance, const kiln_compile_request *request,
                          kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    const kn_gl *gl = (const kn_gl *)instance;
    kn_gl_device *device = (kn_gl_device *)request->device;
    const char *name = name_of(request->source);
    kn_gl_program *program = NULL;
    char *log = NULL;
    if (device == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "compile it where the device is", name,
                             "an OpenGL program needs a device");
    }
    kiln_status status = create_from_source(device, request->source, &program, &log, diag);
    if (status == KILN_OK) {
        status = kn_gl_program_capture(device, program, artifact, diag);
    }
    if (status == KILN_OK && log != NULL &&
        gl->host->artifact_set_log(artifact, log, strlen(log)) != KILN_OK) {
        status = kn_no_memory(diag, name);
    }
    if (status == KILN_OK && gl->host->artifact_set_fact(artifact, KILN_FACT_ENTRIES, only_entry,
                                                         strlen(only_entry)) != KILN_OK) {
        status = kn_no_memory(diag, name);
    }
    free(log);
    if (status == KILN_OK && request->want_live && out_live != NULL) {
        *out_live = program;
        return KILN_OK;
    }
    kn_gl_program_unload(device, program);
    return status;
}

static kiln_status load_parts(kn_gl_program *program, const kn_gl_container *parts, kiln_diag *diag)
{
    const kn_gl_unit *unit = program->device->unit;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < parts->part_count && status == KILN_OK; i++) {
        const kn_gl_part *part = &parts->parts[i];
        kn_gl_variant *variant = NULL;
        const GLuint linked = unit->gl.glCreateProgram();
        status = kn_gl_load_binary(&unit->gl, &unit->facts, linked, part->format, part->data,
                                   part->size, program->name, diag);
        if (status != KILN_OK) {
            unit->gl.glDeleteProgram(linked);
        } else {
            status = add_variant(program, part->local, linked, &variant, diag);
        }
    }
    return status;
}

kiln_status kn_gl_program_load(void *opaque, const kiln_load_request *request, void **out_program,
                               kiln_diag *diag)
{
    kn_gl_device *device = (kn_gl_device *)opaque;
    const char *name = name_of(request->source);
    kn_gl_program *program = NULL;
    kn_gl_container parts;
    kiln_status status = KILN_OK;
    if (request->artifact_count == 0) { /* the driver gives no binaries */
        char *log = NULL;
        status = create_from_source(device, request->source, &program, &log, diag);
        free(log);
        *out_program = program;
        return status;
    }
    const kiln_artifact *artifact = request->artifacts[request->artifact_count - 1];
    if (!kn_gl_container_read(artifact->data, artifact->size, &parts)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, name, "the artifact is damaged");
    }
    status = kn_gl_enter(device->owner, device->unit, diag);
    if (status == KILN_OK) {
        status = create_program(device, name, &parts, &program, diag);
    }
    if (status == KILN_OK) {
        status = load_parts(program, &parts, diag);
    }
    if (status == KILN_OK && !is_open(program) && program->variant_count == 0) {
        /* The driver gave no binary for this text when it was compiled. */
        char *log = NULL;
        status = prepare_program(program, &log, diag);
        free(log);
    }
    if (status != KILN_OK) {
        kn_gl_program_unload(device, program);
        return status;
    }
    *out_program = program;
    return KILN_OK;
}

bool kn_gl_program_grew(void *device, void *program)
{
    (void)device;
    return ((const kn_gl_program *)program)->grew;
}

kiln_status kn_gl_program_capture(void *opaque, void *handle, kiln_artifact *artifact,
                                  kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    kn_gl_program *program = (kn_gl_program *)handle;
    kn_gl_container parts = {
        .text = program->text,
        .text_size = program->text_size,
        .head = program->head,
        .names = program->names,
        .names_size = program->names_size,
        .local_open = {program->local_open[0], program->local_open[1], program->local_open[2]},
    };
    void *data[KN_GL_MAX_VARIANTS] = {0};
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, (size_t)1 << 30);
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    for (size_t i = 0; i < program->variant_count && status == KILN_OK; i++) {
        kn_gl_part *part = &parts.parts[parts.part_count];
        status = kn_gl_read_binary(&device->unit->gl, program->variants[i]->program, program->name,
                                   &part->format, &data[i], &part->size, diag);
        memcpy(part->local, program->variants[i]->local, sizeof(part->local));
        part->data = data[i];
        parts.part_count += status == KILN_OK && part->size > 0;
    }
    if (status == KILN_OK) {
        kn_gl_container_write(&parts, &bytes);
        program->grew = false;
        if (!kn_strbuf_ok(&bytes) ||
            device->owner->host->artifact_set(artifact, KILN_LANG_NONE, bytes.data, bytes.length) !=
                KILN_OK) {
            status = kn_no_memory(diag, program->name);
        }
    }
    for (size_t i = 0; i < program->variant_count; i++) {
        free(data[i]);
    }
    kn_strbuf_deinit(&bytes);
    return status;
}

const char *kn_gl_program_entry(void *device, void *program, size_t index)
{
    (void)device;
    (void)program;
    return index == 0 ? "main" : NULL;
}

kiln_status kn_gl_program_params(void *device, void *program, const char *entry,
                                 const kiln_param **out_params, size_t *out_count, kiln_diag *diag)
{
    (void)device;
    (void)program;
    *out_params = NULL;
    *out_count = 0;
    if (strcmp(entry, "main") != 0) {
        return kiln_diag_set(diag, KILN_MISS, "use main", entry,
                             "a GLSL program has the entry main and no other");
    }
    /* Buffers and values are two lists: how they interleave is up to the launch, which checks. */
    return KILN_E_UNSUPPORTED;
}

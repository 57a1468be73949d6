/* Level 2: OpenGL programs through the cache, in the context that is current on the calling thread.
 */
#include "kiln/unstable/opengl.h"

#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/api.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"
#include "core/runtime/target.h"
#include "engine/job.h"
#include "headers/include_scan.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "sys/dylib.h"
#include "sys/file.h"
#include "sys/fpstate.h"

static const char what[] = "an OpenGL program";

typedef struct request {
    kiln_cache *cache;
    kiln_cache *own_cache; /* opened for this call */
    const kiln_opengl_shader *shaders;
    size_t count;
    kiln_opengl_options options;
    kn_gl_api gl;
    kn_gl_facts facts;
    const char *bypass;  /* why it is not looked for in the cache */
    kiln_recipe *recipe; /* NULL with a bypass */
    GLuint program;      /* linked, or loaded */
} request;

/* --- the context ------------------------------------------------------------------------------ */

typedef struct mapped {
    bool egl, glx;
} mapped;

static kn_module_choice note_library(void *user, const char *path)
{
    mapped *found = (mapped *)user;
    const char *name = kn_path_name(path);
    found->egl = found->egl || kn_text_starts(name, "libEGL.so");
    found->glx =
        found->glx || kn_text_starts(name, "libGLX.so") || kn_text_starts(name, "libGL.so");
    return KN_MODULE_NO; /* its name is all that is wanted */
}

/* The function that finds OpenGL's, if this library has the current context. */
static kn_gl_get *get_of(const char *library, const char *current_name, const char *get_name)
{
    typedef void *current_function(void);
    const char *const names[] = {library, NULL};
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kn_dylib *lib = NULL;
    current_function *current = NULL;
    kn_gl_get *get = NULL;
    if (kn_dylib_open(names, &lib, &outcome, NULL) != KILN_OK) {
        return NULL;
    }
    void *symbol = kn_dylib_symbol(lib, current_name);
    memcpy(&current, &symbol, sizeof(current));
    if (current != NULL && current() != NULL) {
        symbol = kn_dylib_symbol(lib, get_name);
        memcpy(&get, &symbol, sizeof(get));
    }
    kn_dylib_retire(lib);
    return get;
}

/* Only libraries that the program has opened can have its context. */
static kn_gl_get *find_get(void)
{
    mapped found = {false, false};
    kn_gl_get *get = NULL;
    (void)kn_module_select(note_library, NULL, &found); /* out of memory: nothing found */
    if (found.egl) {
        get = get_of("libEGL.so.1", "eglGetCurrentContext", "eglGetProcAddress");
    }
    if (get == NULL && found.glx) {
        get = get_of("libGL.so.1", "glXGetCurrentContext", "glXGetProcAddressARB");
    }
    return get;
}

static kiln_status bind_context(request *r, kiln_diag *diag)
{
    kn_gl_get *get = (kn_gl_get *)r->options.get_proc_address;
    if (get == NULL) {
        get = find_get();
    }
    if (get == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "make a context current on this thread, or pass get_proc_address",
                             what, "no OpenGL context is current");
    }
    const char *missing = kn_gl_bind(get, KN_GL_PROGRAM, &r->gl);
    if (missing != NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "use OpenGL 4.1, ES 3.0, or newer", what,
                             "the context lacks %s", missing);
    }
    kn_gl_facts_query(&r->gl, &r->facts);
    return r->facts.version[0] != '\0'
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "make a context current on this thread",
                               what, "no OpenGL context is current");
}

/* --- the key ---------------------------------------------------------------------------------- */

static size_t length_of(const kiln_opengl_shader *shader)
{
    return shader->length > 0 ? shader->length : strlen(shader->text);
}

static void add_shaders(const request *r)
{
    const char *state = r->options.link_state;
    for (size_t i = 0; i < r->count; i++) {
        kiln_recipe_add_u64(r->recipe, "stage", r->shaders[i].stage);
        kiln_recipe_add_bytes(r->recipe, "text", r->shaders[i].text, length_of(&r->shaders[i]));
    }
    kiln_recipe_add_u64(r->recipe, "separable", r->options.separable);
    if (state != NULL) {
        kn_recipe_add_string(r->recipe, "link-state", state);
    }
}

static kiln_status make_recipe(request *r, kiln_diag *diag)
{
    char *modules = NULL;
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(opengl_linked), &r->recipe, diag);
    if (status == KILN_OK) {
        status = kn_gl_modules_find(&r->facts, &modules, diag);
    }
    if (status == KILN_OK) {
        const kiln_identity identity = kn_identity_to_recipe(r->recipe);
        kiln_recipe_set_target(r->recipe, r->facts.es ? "opengl-es" : "opengl");
        kn_gl_identify_context(&r->facts, modules, &identity);
        add_shaders(r);
        status = kiln_recipe_status(r->recipe, diag);
    }
    free(modules);
    return status;
}

static kiln_status note_include(void *user, const kn_scan_event *event)
{
    (void)event;
    *(bool *)user = true;
    return KILN_OK;
}

/* ARB_shading_language_include: what is included are strings of the context, which it cannot be
 * asked for by the text alone and which the program may replace. What the scan cannot read may
 * hide an include. */
static const char *find_include(const request *r)
{
    for (size_t i = 0; i < r->count; i++) {
        kn_scan_stop stop;
        bool includes = false;
        const kn_scan_reader reader = {.report = note_include, .user = &includes};
        const kn_span text = kn_span_of(r->shaders[i].text, length_of(&r->shaders[i]));
        if (kn_include_scan(text, false, &reader, &stop) != KILN_OK || includes ||
            stop.why != NULL) {
            return "a shader includes named strings, or holds text that cannot be followed";
        }
    }
    return NULL;
}

/* --- building --------------------------------------------------------------------------------- */

static kiln_status attach_shader(const request *r, GLuint program, size_t index, GLuint *out_shader,
                                 kiln_diag *diag)
{
    char name[64];
    char *log = NULL;
    const char *pieces[] = {r->shaders[index].text};
    const GLint lengths[] = {(GLint)length_of(&r->shaders[index])};
    kn_text_putf(name, sizeof(name), "shader %zu (stage 0x%04x)", index, r->shaders[index].stage);
    kiln_status status = kn_gl_compile_shader(&r->gl, r->shaders[index].stage, pieces, lengths, 1,
                                              name, (kn_gl_names){NULL, 0}, out_shader, &log, diag);
    free(log);
    if (status == KILN_OK) {
        r->gl.glAttachShader(program, *out_shader);
    }
    return status;
}

static void set_parameters(const request *r, GLuint program)
{
    r->gl.glProgramParameteri(program, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
    if (r->options.separable) { /* off by itself, and ES 3.0 does not know it */
        r->gl.glProgramParameteri(program, GL_PROGRAM_SEPARABLE, GL_TRUE);
    }
}

static kiln_status build_opengl(request *r, kiln_diag *diag)
{
    GLuint shaders[16] = {0};
    const GLuint program = r->gl.glCreateProgram();
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < r->count && status == KILN_OK; i++) {
        status = attach_shader(r, program, i, &shaders[i], diag);
    }
    if (status == KILN_OK) {
        set_parameters(r, program);
        if (r->options.before_link != NULL) {
            r->options.before_link(r->options.user, program);
        }
        status = kn_gl_link(&r->gl, program, what, diag);
    }
    for (size_t i = 0; i < r->count && shaders[i] != 0; i++) {
        r->gl.glDetachShader(program, shaders[i]);
        r->gl.glDeleteShader(shaders[i]);
    }
    if (status != KILN_OK) {
        r->gl.glDeleteProgram(program);
        return status;
    }
    r->program = program;
    return KILN_OK;
}

/* The payload is the driver's binary; its format, four bytes, is the entry's fact. */
static void compile_opengl(void *user, kn_output *output, kiln_diag *diag)
{
    request *r = (request *)user;
    uint32_t format = 0;
    char fact[4];
    void *data = NULL;
    size_t size = 0;
    output->outcome = KN_OUTCOME_FAILED;
    if (build_opengl(r, diag) != KILN_OK) {
        return;
    }
    output->outcome = KN_OUTCOME_PRIVATE;
    output->reason = "the driver returns no binary of it";
    if (r->bypass == NULL &&
        kn_gl_read_binary(&r->gl, r->program, what, &format, &data, &size, NULL) == KILN_OK &&
        size > 0) {
        kn_put_u32(fact, format);
        if (kiln_blob_create(data, size, fact, sizeof(fact), &output->blob, diag) == KILN_OK) {
            output->outcome = KN_OUTCOME_STORED;
        }
    }
    free(data);
}

static kn_loaded load_opengl(void *user, kiln_blob *blob, kiln_diag *diag)
{
    request *r = (request *)user;
    const uint32_t format = kiln_blob_facts_size(blob) == 4 ? kn_get_u32(kiln_blob_facts(blob)) : 0;
    const void *data = kiln_blob_data(blob);
    const size_t size = kiln_blob_size(blob);
    if (!kn_gl_binary_is_sound(&r->facts, format, data, size)) {
        return KN_LOAD_UNSOUND;
    }
    const GLuint program = r->gl.glCreateProgram();
    set_parameters(r, program);
    if (kn_gl_load_binary(&r->gl, &r->facts, program, format, data, size, what, diag) != KILN_OK) {
        r->gl.glDeleteProgram(program);
        return KN_LOAD_REFUSED;
    }
    r->program = program;
    return KN_LOADED;
}

static const kn_frontend programs = {
    .compile = compile_opengl, .load = load_opengl, .driver_loads = true};

static kiln_status get_opengl(request *r, kiln_diag *diag)
{
    r->bypass =
        r->facts.format_count == 0 ? "this driver gives no program binaries" : find_include(r);
    kiln_status status = r->bypass == NULL ? make_recipe(r, diag) : KILN_OK;
    if (status != KILN_OK) {
        return status;
    }
    const kn_request wanted = {.cache = r->cache,
                               .recipe = r->recipe,
                               .what = "opengl",
                               .name = what,
                               .bypass = r->bypass};
    kn_job job;
    (void)kn_job_run(&job, &programs, &wanted, r);
    status = job.status;
    if (status != KILN_OK) {
        kn_diag_move(diag, &job.why);
    }
    kn_job_deinit(&job);
    return status;
}

static kiln_status check_opengl_request(const kiln_opengl_shader *shaders, size_t count,
                                        const kiln_opengl_options *options, kiln_diag *diag)
{
    const char *why = NULL;
    if (shaders == NULL || count == 0 || count > 16) {
        why = "it has no shaders, or more than 16";
    } else if (options != NULL && options->before_link != NULL && options->link_state == NULL) {
        why = "there is a before_link and no link_state to say what it does";
    }
    for (size_t i = 0; why == NULL && i < count; i++) {
        why = shaders[i].text == NULL || shaders[i].length > INT32_MAX ? "a shader has no text"
                                                                       : NULL;
    }
    return why == NULL ? KILN_OK : kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "%s", why);
}

kiln_status kiln_opengl_build_program(kiln_cache *cache, const kiln_opengl_shader *shaders,
                                      size_t count, const kiln_opengl_options *options,
                                      uint32_t *out_program, kiln_diag *diag)
{
    request r = {.cache = cache, .shaders = shaders, .count = count};
    *out_program = 0;
    kiln_opengl_options room;
    if (options != NULL) {
        options = kn_sized_view(KN_SIZED(kiln_opengl_options), options, &room, diag);
        if (options == NULL) {
            return KILN_E_INVALID;
        }
        r.options = *options;
    }
    kiln_status status = check_opengl_request(shaders, count, options, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (cache == NULL) {
        status = kiln_cache_create(NULL, &r.own_cache, diag);
        r.cache = r.own_cache;
    }
    if (status == KILN_OK) {
        status = bind_context(&r, diag);
    }
    if (status == KILN_OK) {
        kn_fp_state fp;
        kn_fp_enter(&fp);
        status = get_opengl(&r, diag);
        kn_fp_leave(&fp);
    }
    if (status == KILN_OK) {
        *out_program = r.program;
    } else if (r.program != 0) { /* linked, and then no memory to hand it on */
        r.gl.glDeleteProgram(r.program);
    }
    kiln_recipe_destroy(r.recipe);
    kiln_cache_destroy(r.own_cache);
    return status;
}

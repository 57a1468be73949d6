/* Programs: built by the build, shared while a caller holds them. */
#include "core/build/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "core/build/background.h"
#include "core/build/capture.h"
#include "core/build/program_kernels.h"
#include "sized/sized.h"

/* Device and keys of all stages. 0 if the program cannot be shared: a stage bypassed the cache, or
 * there are none. */
static size_t make_share_key(const kiln_device *device, const kn_build *build, unsigned char *key)
{
    uintptr_t owner = (uintptr_t)device;
    size_t size = sizeof(owner);
    memcpy(key, &owner, sizeof(owner));
    for (size_t i = 0; i < build->stage_count; i++) {
        if (build->runs[i].bypass[0] != '\0') {
            return 0;
        }
        memcpy(key + size, build->runs[i].key.bytes, sizeof(build->runs[i].key.bytes));
        size += sizeof(build->runs[i].key.bytes);
    }
    return build->stage_count > 0 ? size : 0;
}

/* Under the runtime's mutex: a program that is in the map has a reference left. */
static kiln_program *find_locked(kiln_runtime *runtime, const unsigned char *key, size_t size)
{
    kiln_program *program = (kiln_program *)kn_map_find(&runtime->programs, key, size);
    return program != NULL ? kiln_program_retain(program) : NULL;
}

kiln_program *kn_program_find(kiln_device *device, const kn_build *build)
{
    unsigned char key[KN_SHARE_KEY_MAX];
    size_t size = make_share_key(device, build, key);
    if (size == 0) {
        return NULL;
    }
    kn_mutex_lock(&device->runtime->mutex);
    kiln_program *program = find_locked(device->runtime, key, size);
    kn_mutex_unlock(&device->runtime->mutex);
    return program;
}

void kn_program_expect(kn_build *build)
{
    if (build->on == NULL || build->expecting) {
        return;
    }
    kiln_runtime *runtime = build->on->runtime;
    kn_mutex_lock(&runtime->mutex);
    build->expecting = true;
    build->next_expecting = runtime->expecting;
    runtime->expecting = build;
    kn_mutex_unlock(&runtime->mutex);
}

void kn_program_expected(kn_build *build)
{
    if (!build->expecting) {
        return;
    }
    kiln_runtime *runtime = build->on->runtime;
    kn_mutex_lock(&runtime->mutex);
    kn_build **at = &runtime->expecting;
    while (*at != build) {
        at = &(*at)->next_expecting;
    }
    *at = build->next_expecting;
    build->expecting = false;
    kn_cond_broadcast(&runtime->adopted);
    kn_mutex_unlock(&runtime->mutex);
}

/* Under the runtime's mutex. */
static bool is_program_expected(const kiln_runtime *runtime, const unsigned char *key, size_t size)
{
    unsigned char other[KN_SHARE_KEY_MAX];
    const kn_build *build = runtime->expecting;
    while (build != NULL &&
           (make_share_key(build->on, build, other) != size || memcmp(other, key, size) != 0)) {
        build = build->next_expecting;
    }
    return build != NULL;
}

bool kn_program_is_made(const kn_build *build)
{
    unsigned char key[KN_SHARE_KEY_MAX];
    const size_t size = build->on != NULL ? make_share_key(build->on, build, key) : 0;
    if (size == 0) {
        return false;
    }
    kiln_runtime *runtime = build->on->runtime;
    kn_mutex_lock(&runtime->mutex);
    const bool made = kn_map_find(&runtime->programs, key, size) != NULL ||
                      is_program_expected(runtime, key, size);
    kn_mutex_unlock(&runtime->mutex);
    return made;
}

kiln_program *kn_program_await(const kn_build *build)
{
    unsigned char key[KN_SHARE_KEY_MAX];
    const size_t size = build->on != NULL ? make_share_key(build->on, build, key) : 0;
    if (size == 0) {
        return NULL;
    }
    kiln_runtime *runtime = build->on->runtime;
    kn_mutex_lock(&runtime->mutex);
    kiln_program *program = find_locked(runtime, key, size);
    while (program == NULL && is_program_expected(runtime, key, size)) {
        kn_cond_wait(&runtime->adopted, &runtime->mutex);
        program = find_locked(runtime, key, size);
    }
    kn_mutex_unlock(&runtime->mutex);
    return program;
}

static void destroy_program(kiln_program *program)
{
    if (program->background != NULL) {
        kn_background_release(program->background);
        free(program);
        return;
    }
    kn_hal_program_unload(&program->device->driver->in, program->device->handle, program->handle);
    kiln_blob_release(program->blob);
    kn_reflection *next = atomic_load(&program->reflections);
    while (next != NULL) {
        kn_reflection *reflection = next;
        next = reflection->next;
        free(reflection);
    }
    kiln_recipe_destroy(program->recipe);
    free(program->label);
    free(program->kernels);
    free(program->log);
    free(program);
}

static kiln_program *create_program(kiln_device *device, kn_build *build, void *handle)
{
    static const char no_log[] = "";
    kiln_program *program = (kiln_program *)calloc(1, sizeof(*program));
    if (program == NULL) {
        kn_hal_program_unload(&device->driver->in, device->handle, handle);
        return NULL;
    }
    atomic_init(&program->references, 1);
    program->device = device;
    program->handle = handle;
    program->info = build->info;
    program->share_key_size = make_share_key(device, build, program->share_key);
    const char *log = NULL;
    if (build->stage_count > 0) {
        kn_stage_run *last = &build->runs[build->stage_count - 1];
        program->blob = kn_instance_can(&device->driver->in, KILN_CAP_LENT_ARTIFACT)
                            ? kiln_blob_retain(last->blob)
                            : NULL;
        program->info.origin = last->origin;
        program->info.key = last->key;
        program->first_key =
            build->runs[0].bypass[0] == '\0' ? build->runs[0].key : program->first_key;
        program->kernels = kn_kernels_copy(kn_kernels_of(build), &program->kernels_size);
        program->compile_ns =
            last->blob != NULL ? kiln_blob_compile_ns(last->blob) : build->info.compile_ns;
        if (last->bypass[0] == '\0' && kn_instance_can(&device->driver->in, KILN_CAP_CAPTURE)) {
            program->recipe = last->recipe;
            last->recipe = NULL;
            char label[KN_LABEL_SIZE];
            kn_build_label(build, label);
            program->label = kn_text_copy(label); /* without memory it has none */
            atomic_store(&program->later, last->later);
        }
    }
    for (size_t i = 0; log == NULL && i < build->stage_count; i++) {
        log = build->runs[i].artifact.base.log; /* of the first stage that said something */
    }
    program->log = log != NULL ? kn_text_copy(log) : NULL;
    program->info.log = program->log != NULL ? program->log : no_log;
    if (log != NULL && program->log == NULL) {
        destroy_program(program);
        return NULL;
    }
    return program;
}

kiln_status kn_program_adopt(kiln_device *device, kn_build *build, void *handle,
                             kiln_program **out_program, kiln_diag *diag)
{
    kiln_runtime *runtime = device->runtime;
    kiln_program *program = create_program(device, build, handle);
    if (program == NULL) {
        return kn_no_memory(diag, "keeping a program");
    }
    kiln_program *other = NULL;
    if (program->share_key_size > 0) {
        kn_mutex_lock(&runtime->mutex);
        other = find_locked(runtime, program->share_key, program->share_key_size);
        if (other == NULL && !kn_map_put(&runtime->programs, program->share_key,
                                         program->share_key_size, program, NULL)) {
            program->share_key_size = 0; /* works as well, only unshared */
        }
        kn_mutex_unlock(&runtime->mutex);
    }
    if (other != NULL) {
        destroy_program(program);
        program = other;
    }
    *out_program = program;
    return KILN_OK;
}

static kiln_status unknown_entry(const kiln_program *program, const char *entry, kiln_diag *diag)
{
    kn_strbuf list;
    const char *name = NULL;
    kn_strbuf_init(&list, 0);
    for (size_t i = 0; (name = kiln_program_entry(program, i)) != NULL; i++) {
        kn_strbuf_printf(&list, "%s%s", i > 0 ? ", " : "", name);
    }
    (void)kiln_diag_set(diag, KILN_MISS, "use one of those", "finding an entry",
                        "the program has no \"%s\"; it has: %s", entry, kn_strbuf_text(&list));
    kn_strbuf_deinit(&list);
    return KILN_MISS;
}

kiln_status kn_program_check_entries(kiln_program **program, const kiln_source *source,
                                     kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; (*program)->kernels != NULL && i < source->entry_count; i++) {
        if (kn_kernels_attributes((*program)->kernels, (*program)->kernels_size,
                                  source->entries[i]) == NULL) {
            (void)unknown_entry(*program, source->entries[i], diag);
            status = KILN_E_INVALID;
        }
    }
    if (status != KILN_OK) {
        if (diag != NULL) {
            diag->status = status;
        }
        kiln_program_release(*program);
        *program = NULL;
    }
    return status;
}

const kiln_source *kn_source_taken(const kiln_device *device, const kiln_source *sources,
                                   size_t source_count)
{
    const kn_instance *in = &device->driver->in;
    for (size_t i = 0; i < source_count; i++) {
        size_t count = 0;
        if (kn_hal_stages(in, in->handle, &device->target, sources[i].language, &count) != NULL) {
            return &sources[i];
        }
    }
    return NULL;
}

static kiln_status refuse_languages(const kiln_device *device, const kiln_source *sources,
                                    size_t source_count, kiln_diag *diag)
{
    kn_strbuf list;
    kn_strbuf_init(&list, 0);
    for (size_t i = 0; i < source_count; i++) {
        kn_strbuf_printf(&list, "%s%s", i > 0 ? ", " : "", kiln_language_name(sources[i].language));
    }
    (void)kiln_diag_set(diag, KILN_E_UNSUPPORTED, "add a source in a language it takes",
                        "building a program", "%s takes none of: %s", device->info.backend,
                        source_count > 0 ? kn_strbuf_text(&list) : "(no source given)");
    kn_strbuf_deinit(&list);
    return KILN_E_UNSUPPORTED;
}

/* A build with a fallback that runs meanwhile. Source and options are this library's structs. */
static kiln_status build_in_background(kiln_device *device, const kiln_source *source,
                                       const kiln_build_options *options,
                                       kiln_program **out_program, kiln_diag *diag)
{
    const void *list = NULL;
    void *copy = NULL;
    kiln_build_options later = *options;
    kiln_status status = kn_sized_list(KN_SIZED(kiln_source), options->fallback,
                                       options->fallback_count, &list, &copy, diag);
    if (status == KILN_OK) {
        later.fallback = (const kiln_source *)list;
        status = kn_background_build(device, source, &later, out_program, diag);
    }
    free(copy);
    return status;
}

kiln_status kiln_program_build(kiln_device *device, const kiln_source *sources, size_t source_count,
                               const kiln_build_options *options, kiln_program **out_program,
                               kiln_diag *diag)
{
    static const kiln_build_options none = {.struct_size = sizeof(none)};
    kiln_build_options room;
    const void *list = NULL;
    void *copy = NULL;
    *out_program = NULL;
    kiln_status status = kn_driver_wake(device->runtime, device->driver, diag);
    if (status != KILN_OK) {
        return status;
    }
    options =
        kn_sized_view(KN_SIZED(kiln_build_options), options != NULL ? options : &none, &room, diag);
    status = options != NULL
                 ? kn_sized_list(KN_SIZED(kiln_source), sources, source_count, &list, &copy, diag)
                 : KILN_E_INVALID;
    const kiln_source *source = NULL;
    if (status == KILN_OK) {
        sources = (const kiln_source *)list;
        source = kn_source_taken(device, sources, source_count);
        status = source != NULL ? KILN_OK : refuse_languages(device, sources, source_count, diag);
    }
    if (status == KILN_OK && options->background && !options->cache_only) {
        status = build_in_background(device, source, options, out_program, diag);
    } else if (status == KILN_OK) {
        status = kn_build_program(device, source, options, NULL, out_program, diag);
    }
    free(copy);
    if (status == KILN_OK) {
        const kiln_program *program = *out_program;
        kn_uses_note(device->runtime, program->background != NULL
                                          ? kn_background_key(program->background)
                                          : &program->first_key);
    }
    return status;
}

kiln_program *kiln_program_retain(kiln_program *program)
{
    if (program != NULL) {
        (void)atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
    }
    return program;
}

void kiln_program_release(kiln_program *program)
{
    if (program == NULL) {
        return;
    }
    kiln_runtime *runtime = program->device->runtime;
    kn_mutex_lock(&runtime->mutex);
    bool last = atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) == 1;
    if (last && program->share_key_size > 0) {
        (void)kn_map_remove(&runtime->programs, program->share_key, program->share_key_size);
    }
    kn_mutex_unlock(&runtime->mutex);
    if (last) {
        destroy_program(program);
    }
}

const kiln_build_info *kiln_program_get_info(const kiln_program *program)
{
    return &kn_program_now(program)->info;
}

const char *kiln_program_entry(const kiln_program *program, size_t index)
{
    program = kn_program_now(program);
    const kn_instance *in = &program->device->driver->in;
    return kn_instance_can(in, KILN_CAP_REFLECT)
               ? kn_hal_program_entry(in, program->device->handle, program->handle, index)
               : NULL;
}

size_t kiln_program_entry_count(const kiln_program *program)
{
    size_t count = 0;
    while (kiln_program_entry(program, count) != NULL) {
        count++;
    }
    return count;
}

const char *kiln_program_attributes(const kiln_program *program, const char *entry)
{
    program = kn_program_now(program);
    return kn_kernels_attributes(program->kernels, program->kernels_size, entry);
}

const char *kiln_program_qualifiers(const kiln_program *program, const char *entry, size_t index)
{
    program = kn_program_now(program);
    return kn_kernels_qualifiers(program->kernels, program->kernels_size, entry, index);
}

/* One block: the reflection, the list, the parameters, the name. */
static kn_reflection *copy_reflection(const char *entry, const kiln_param *params, size_t count)
{
    const size_t length = strlen(entry) + 1;
    kn_reflection *copy = (kn_reflection *)calloc(
        1, sizeof(*copy) + count * (sizeof(kiln_param) + sizeof(kiln_param *)) + length);
    if (copy == NULL) {
        return NULL;
    }
    copy->list = (const kiln_param **)(copy + 1);
    copy->params = (kiln_param *)(copy->list + count);
    copy->count = count;
    for (size_t i = 0; i < count; i++) {
        copy->params[i] = params[i];
        copy->params[i].struct_size = sizeof(kiln_param);
        copy->list[i] = &copy->params[i];
    }
    copy->entry = memcpy(copy->params + count, entry, length);
    return copy;
}

kiln_status kn_program_reflect(kiln_program *program, const char *entry,
                               const kn_reflection **out_reflection, kiln_diag *diag)
{
    program = kn_program_now(program);
    const kn_instance *in = &program->device->driver->in;
    if (!kn_instance_can(in, KILN_CAP_REFLECT)) {
        return KILN_E_UNSUPPORTED;
    }
    kn_reflection *known = atomic_load_explicit(&program->reflections, memory_order_acquire);
    while (known != NULL && strcmp(known->entry, entry) != 0) {
        known = known->next;
    }
    if (known == NULL) {
        const kiln_param *params = NULL;
        size_t count = 0;
        kiln_status status = kn_hal_program_params(in, program->device->handle, program->handle,
                                                   entry, &params, &count, diag);
        if (status != KILN_OK) {
            return status == KILN_MISS ? unknown_entry(program, entry, diag) : status;
        }
        known = copy_reflection(entry, params, count);
        if (known == NULL) {
            return kn_no_memory(diag, "reading a program's parameters");
        }
        known->next = atomic_load(&program->reflections);
        while (!atomic_compare_exchange_weak(&program->reflections, &known->next, known)) {
        }
    }
    *out_reflection = known;
    return KILN_OK;
}

kiln_status kiln_program_get_params(kiln_program *program, const char *entry,
                                    const kiln_param *const **out_params, size_t *out_count,
                                    kiln_diag *diag)
{
    const kn_reflection *known = NULL;
    kiln_status status = kn_program_reflect(program, entry, &known, diag);
    *out_params = known != NULL ? known->list : NULL;
    *out_count = known != NULL ? known->count : 0;
    return status == KILN_E_UNSUPPORTED ? KILN_OK : status;
}

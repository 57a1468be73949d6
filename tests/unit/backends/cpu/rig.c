#include "unit/backends/cpu/rig.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/cmocka.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "support/tmpdir.h"

static kiln_status memo_get(void *memo, const char *name, void **out_data, size_t *out_size)
{
    rig_memo *m = memo;
    m->gets++;
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->names[i], name) == 0) {
            *out_data = kn_text_copy_n(m->data[i], m->sizes[i]);
            *out_size = m->sizes[i];
            return *out_data != NULL ? KILN_OK : KILN_MISS;
        }
    }
    return KILN_MISS;
}

static void memo_put(void *memo, const char *name, const void *data, size_t size)
{
    rig_memo *m = memo;
    size_t at = 0;
    while (at < m->count && strcmp(m->names[at], name) != 0) {
        at++;
    }
    assert_true(at < 16);
    if (at == m->count) {
        m->names[at] = kn_text_copy(name);
        m->count++;
    }
    free(m->data[at]);
    m->data[at] = kn_bytes_copy(data, size);
    m->sizes[at] = size;
    m->puts++;
}

void rig_memo_clear(rig_memo *memo)
{
    for (size_t i = 0; i < memo->count; i++) {
        free(memo->names[i]);
        free(memo->data[i]);
    }
    *memo = (rig_memo){.count = 0};
}

void rig_open(rig *r, rig_memo *memo)
{
    memset(r, 0, sizeof(*r));
    r->host = kn_host;
    if (memo != NULL) {
        r->host.memo = memo;
        r->host.memo_get = memo_get;
        r->host.memo_put = memo_put;
    }
    assert_int_equal(kn_backend_cpu.open(&r->host, &r->instance, &r->report, &r->diag), KILN_OK);
    assert_int_equal(r->report.outcome, KILN_PROBE_READY);
    const kiln_compiler_ops *compiler = kn_backend_cpu.compiler;
    const kiln_device_ops *device = kn_backend_cpu.device;
    assert_int_equal(compiler->target_of_device(r->instance, 0, &r->target, &r->diag), KILN_OK);
    assert_int_equal(device->device_open(r->instance, 0, &r->device, &r->diag), KILN_OK);
    assert_int_equal(device->queue_create(r->device, &r->queue, &r->diag), KILN_OK);
}

void rig_close(rig *r)
{
    kn_backend_cpu.device->queue_destroy(r->device, r->queue);
    kn_backend_cpu.device->device_close(r->device);
    kn_backend_cpu.compiler->target_destroy(r->instance, &r->target);
    kn_backend_cpu.close(r->instance);
    kiln_diag_clear(&r->diag);
}

cpu_instance *rig_cpu(rig *r)
{
    return r->instance;
}

static void put_text(void *sink, const char *name, const char *value)
{
    kn_strbuf_printf(sink, "%s=%s\n", name, value);
}

static void put_env(void *sink, const char *variable)
{
    const char *value = getenv(variable);
    kn_strbuf_printf(sink, "$%s%s%s\n", variable, value != NULL ? "=" : "",
                     value != NULL ? value : "");
}

char *rig_identity(rig *r, const kiln_target *target)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    const kiln_identity identity = {&text, put_text, put_env};
    size_t count = 0;
    const kiln_stage *stage =
        kn_backend_cpu.compiler->stages(r->instance, target, KILN_LANG_C, &count);
    assert_int_equal(count, 1);
    kiln_status status =
        kn_backend_cpu.compiler->identify(r->instance, stage, target, &identity, &r->diag);
    if (status != KILN_OK) {
        print_error("identify: %s\n", r->diag.why);
    }
    assert_int_equal(status, KILN_OK);
    return kn_strbuf_detach(&text, NULL);
}

kiln_source rig_source(const char *name, const char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_C;
    source.name = name;
    source.text = text;
    source.length = strlen(text);
    return source;
}

kiln_status rig_compile(rig *r, const kiln_source *source, kn_artifact *artifact)
{
    size_t count = 0;
    void *live = NULL;
    kiln_compile_request request = {.target = &r->target, .source = source, .device = r->device};
    request.stage = kn_backend_cpu.compiler->stages(r->instance, &r->target, KILN_LANG_C, &count);
    kn_artifact_init(artifact);
    kiln_diag_clear(&r->diag);
    return kn_backend_cpu.compiler->compile(r->instance, &request, &artifact->base, &live,
                                            &r->diag);
}

kiln_status rig_load(rig *r, const kiln_source *source, const kn_artifact *artifact,
                     void **out_program)
{
    const kiln_artifact *const list[] = {artifact != NULL ? &artifact->base : NULL};
    const kiln_load_request request = {.target = &r->target,
                                       .source = source,
                                       .artifacts = list,
                                       .artifact_count = artifact != NULL ? 1 : 0};
    *out_program = NULL;
    kiln_diag_clear(&r->diag);
    return kn_backend_cpu.device->program_load(r->device, &request, out_program, &r->diag);
}

void *rig_build(rig *r, const kiln_source *source)
{
    kn_artifact artifact;
    void *program = NULL;
    kiln_status status = rig_compile(r, source, &artifact);
    if (status == KILN_OK) {
        status = rig_load(r, source, &artifact, &program);
    }
    if (status != KILN_OK) {
        print_error("%s: %s\n%s\n", r->diag.what, r->diag.why,
                    r->diag.log != NULL ? r->diag.log : "");
    }
    assert_int_equal(status, KILN_OK);
    kn_artifact_deinit(&artifact);
    return program;
}

void *rig_buffer(rig *r, const void *data, size_t size)
{
    void *buffer = NULL;
    assert_int_equal(kn_backend_cpu.device->buffer_create(r->device, size, &buffer, &r->diag),
                     KILN_OK);
    if (data != NULL) {
        assert_int_equal(
            kn_backend_cpu.device->queue_write(r->queue, buffer, 0, data, size, NULL, &r->diag),
            KILN_OK);
    }
    return buffer;
}

void rig_read(rig *r, void *buffer, void *data, size_t size)
{
    assert_int_equal(
        kn_backend_cpu.device->queue_read(r->queue, buffer, 0, data, size, NULL, &r->diag),
        KILN_OK);
}

char *rig_script(const char *dir, const char *name, const char *text)
{
    char *path = kt_path(dir, name);
    kt_file_write(path, text, strlen(text));
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

size_t rig_loaded_size(const kn_artifact *artifact)
{
    const unsigned char *data = artifact->base.data;
    Elf64_Ehdr header;
    Elf64_Phdr program;
    size_t end = 0;
    memcpy(&header, data, sizeof(header));
    for (size_t i = 0; i < header.e_phnum; i++) {
        memcpy(&program, data + header.e_phoff + i * sizeof(program), sizeof(program));
        const size_t own = program.p_offset + program.p_filesz;
        end = program.p_type == PT_LOAD && own > end ? own : end;
    }
    return end;
}

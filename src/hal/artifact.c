/* Artifacts as backends make them: bytes, a log, and facts.
 * The list of facts is framed: name length (u32), value size (u64), name, value. */
#include "hal/artifact.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/text.h"

#define FRAME_SIZE 12
#define NAME_MAX_LENGTH 64
#define LOG_MAX ((size_t)1 << 20)

void kn_artifact_init(kn_artifact *artifact)
{
    memset(artifact, 0, sizeof(*artifact));
    kn_strbuf_init(&artifact->own, 0);
    artifact->base.facts = artifact;
}

void kn_artifact_deinit(kn_artifact *artifact)
{
    free(artifact->data);
    free(artifact->log);
    kn_strbuf_deinit(&artifact->own);
    kn_artifact_init(artifact);
}

void kn_artifact_borrow(kn_artifact *artifact, kiln_language language, kn_span data,
                        const char *log, kn_span facts)
{
    kn_artifact_deinit(artifact);
    artifact->base.language = language;
    artifact->base.data = data.data;
    artifact->base.size = data.length;
    artifact->base.log = log;
    artifact->facts = facts;
}

/* Takes the next fact off the front of `rest`. False at the end, or where the framing is broken. */
static bool next_fact(kn_span *rest, kn_span *out_name, kn_span *out_value)
{
    if (rest->length < FRAME_SIZE) {
        return false;
    }
    size_t name_length = kn_get_u32(rest->data);
    uint64_t value_size = kn_get_u64(rest->data + 4);
    size_t left = rest->length - FRAME_SIZE;
    if (name_length > left || value_size > left - name_length) {
        return false;
    }
    *out_name = kn_span_of(rest->data + FRAME_SIZE, name_length);
    *out_value = kn_span_of(rest->data + FRAME_SIZE + name_length, (size_t)value_size);
    size_t whole = FRAME_SIZE + name_length + (size_t)value_size;
    *rest = kn_span_of(rest->data + whole, rest->length - whole);
    return true;
}

bool kn_artifact_facts_sound(kn_span facts)
{
    kn_span name;
    kn_span value;
    while (next_fact(&facts, &name, &value)) {
    }
    return facts.length == 0;
}

static void append_fact(kn_strbuf *list, kn_span name, kn_span value)
{
    char frame[FRAME_SIZE];
    kn_put_u32(frame, (uint32_t)name.length);
    kn_put_u64(frame + 4, value.length);
    kn_strbuf_append(list, frame, sizeof(frame));
    kn_strbuf_append(list, name.data, name.length);
    kn_strbuf_append(list, value.data, value.length);
}

static kiln_status artifact_set(kiln_artifact *artifact, kiln_language language, const void *data,
                                size_t size)
{
    kn_artifact *own = (kn_artifact *)(void *)artifact;
    void *copy = NULL;
    if (size > 0) {
        copy = kn_bytes_copy(data, size);
        if (copy == NULL) {
            return KILN_E_NOMEM;
        }
    }
    free(own->data);
    own->data = copy;
    artifact->language = language;
    artifact->data = copy;
    artifact->size = size;
    return KILN_OK;
}

static kiln_status artifact_set_log(kiln_artifact *artifact, const char *log, size_t length)
{
    kn_artifact *own = (kn_artifact *)(void *)artifact;
    char *copy = NULL;
    /* A log ends at its first NUL (drivers count it in), and is kept up to a bound. */
    size_t used = length < LOG_MAX ? length : LOG_MAX;
    const char *end = log != NULL ? (const char *)memchr(log, 0, used) : log;
    used = log == NULL ? 0 : end != NULL ? (size_t)(end - log) : used;
    if (used > 0) {
        copy = kn_text_copy_n(log, used);
        if (copy == NULL) {
            return KILN_E_NOMEM;
        }
    }
    free(own->log);
    own->log = copy;
    artifact->log = copy;
    return KILN_OK;
}

static kiln_status artifact_set_fact(kiln_artifact *artifact, const char *name, const void *data,
                                     size_t size)
{
    kn_artifact *own = (kn_artifact *)(void *)artifact;
    kn_span wanted = kn_span_of_text(name);
    if (wanted.length == 0 || wanted.length > NAME_MAX_LENGTH) {
        return KILN_E_INVALID;
    }
    kn_strbuf list;
    kn_strbuf_init(&list, 0);
    kn_span rest = own->facts;
    kn_span other;
    kn_span value;
    while (next_fact(&rest, &other, &value)) {
        if (!kn_span_equal(other, wanted)) {
            append_fact(&list, other, value);
        }
    }
    append_fact(&list, wanted, kn_span_of(data, size));
    if (!kn_strbuf_ok(&list)) {
        kn_strbuf_deinit(&list);
        return KILN_E_NOMEM;
    }
    kn_strbuf_deinit(&own->own);
    own->own = list;
    own->facts = kn_span_of(list.data, list.length);
    return KILN_OK;
}

static const void *artifact_fact(const kiln_artifact *artifact, const char *name, size_t *out_size)
{
    const kn_artifact *own = (const kn_artifact *)(const void *)artifact;
    kn_span wanted = kn_span_of_text(name);
    kn_span rest = own->facts;
    kn_span other;
    kn_span value;
    *out_size = 0;
    while (next_fact(&rest, &other, &value)) {
        if (kn_span_equal(other, wanted)) {
            *out_size = value.length;
            return value.data;
        }
    }
    return NULL;
}

static void host_log(kiln_log_level level, const char *line)
{
    kn_log(level, "%s", line);
}

const kiln_host kn_host = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_host),
    .artifact_set = artifact_set,
    .artifact_set_log = artifact_set_log,
    .artifact_set_fact = artifact_set_fact,
    .artifact_fact = artifact_fact,
    .log = host_log,
};

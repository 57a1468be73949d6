/* The records: one file a backend and surroundings, among a few slots a backend. All numbers are
 * this machine's: a record is of no use to another one.
 *
 *     checksum over the rest | magic, size of the rest | SHA-256 of who made it | when |
 *     status, what was left out, report | devices | "path\0facts\0" of every mapped file
 *
 * A probe result of a child is a record with `provisional` set and no devices or files.
 */
#include "core/runtime/recall.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/runtime/surroundings.h"
#include "key/digest.h"
#include "kiln/version.h"
#include "store/cache/cache.h"
#include "store/format/checksum.h"
#include "sys/clock.h"
#include "sys/dylib.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/publish.h"

#define SLOTS 16u /* a backend */
#define RECORD_MAX ((size_t)1 << 20)
#define DEVICES_MAX 256u
#define FILES_MAX 4096u
#define LIFE_NS (INT64_C(86400) * 1000000000)
#define PROVISIONAL_LIFE_NS (INT64_C(30) * 1000000000)
#define MAGIC UINT64_C(0x0131424f52504e4b) /* "KNPROB1\1" */

typedef struct record {
    unsigned char checksum[KN_CHECKSUM_SIZE];
    uint64_t magic;
    uint64_t size; /* of the whole */
    uint8_t maker[KN_DIGEST_SIZE];
    int64_t made_ns;
    uint32_t status;
    uint32_t device_count;
    uint32_t file_count;
    uint32_t provisional; /* 1: of a child; no process has opened the driver yet */
    char left_out[KN_LEFT_OUT_SIZE];
    kiln_probe_report report;
} record;

/* --- whose record it is, and where ------------------------------------------------------------ */

static void own_build_id(char *id, size_t size)
{
    /* Any function of this library. */
    bool (*function)(const kiln_cache *, const kiln_backend *) = kn_recall_works;
    const void *address = NULL;
    memcpy(&address, &function, sizeof(address));
    if (!kn_module_of_address(address, NULL, 0, id, size)) {
        kn_text_put(id, size, "?");
    }
}

bool kn_recall_key(const kiln_backend *backend, uint8_t out_key[KN_DIGEST_SIZE])
{
    char id[160] = "";
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    own_build_id(id, sizeof(id));
    kn_strbuf_printf(&text, "%s %s %s %zu %zu%s\n", KILN_VERSION, id, backend->name, sizeof(record),
                     sizeof(kn_recalled_device),
                     kn_apart_is_preloaded(backend->name) ? " preloaded" : "");
    kn_surroundings_describe(&text, backend->basis);
    const bool good =
        kn_strbuf_ok(&text) && kn_digest_of(kn_strbuf_text(&text), text.length, out_key);
    kn_strbuf_deinit(&text);
    return good;
}

static char *slot_path(const kiln_cache *cache, const kiln_backend *backend,
                       const uint8_t maker[KN_DIGEST_SIZE])
{
    char name[64];
    kn_text_putf(name, sizeof(name), "probes/%s-%02u", backend->name, maker[0] % SLOTS);
    return kn_path_join(kiln_cache_root(cache), name);
}

bool kn_recall_works(const kiln_cache *cache, const kiln_backend *backend)
{
    return backend->basis != NULL && backend->basis->variables != NULL &&
           backend->basis->places != NULL && kn_cache_root_stands(cache);
}

/* --- mapped files ----------------------------------------------------------------------------- */

typedef struct mapping {
    kn_strbuf *out;
    uint32_t count;
    char *own;
} mapping;

/* Every library of the process: which of them a driver needed is unknown. The program itself is
 * left out (it comes first), and so is kiln, whose build id is in the digest. */
static void take_module(void *user, const char *path, const char *build_id)
{
    mapping *m = (mapping *)user;
    kn_strbuf line;
    (void)build_id;
    if (m->count == 0 || !kn_path_is_absolute(path) || m->count > FILES_MAX ||
        (m->own != NULL && strcmp(path, m->own) == 0)) {
        m->count += m->count == 0;
        return;
    }
    kn_strbuf_init(&line, 0);
    kn_surroundings_add_file(&line, path);
    kn_strbuf_append(m->out, path, strlen(path) + 1);
    kn_strbuf_append(m->out, kn_strbuf_text(&line), line.length + 1);
    m->out->failed = m->out->failed || !kn_strbuf_ok(&line);
    m->count++;
    kn_strbuf_deinit(&line);
}

static uint32_t add_mapped(kn_strbuf *out)
{
    mapping m = {out, 0, kn_paths_own_module()};
    out->failed = out->failed || !kn_module_each(take_module, &m);
    free(m.own);
    return m.count > 0 ? m.count - 1 : 0;
}

static bool files_hold(const char *at, const char *end, uint32_t count)
{
    kn_strbuf line;
    bool good = true;
    kn_strbuf_init(&line, 0);
    for (uint32_t i = 0; good && i < count; i++) {
        const char *path = at;
        const char *path_end = (const char *)memchr(path, '\0', (size_t)(end - path));
        const char *facts = path_end != NULL ? path_end + 1 : end;
        const char *facts_end = (const char *)memchr(facts, '\0', (size_t)(end - facts));
        good = facts_end != NULL;
        if (good) {
            kn_strbuf_clear(&line);
            kn_surroundings_add_file(&line, path);
            good = kn_strbuf_ok(&line) && strcmp(kn_strbuf_text(&line), facts) == 0;
            at = facts_end + 1;
        }
    }
    kn_strbuf_deinit(&line);
    return good;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool is_sound(const char *bytes, size_t size, const uint8_t maker[KN_DIGEST_SIZE],
                     record *out)
{
    unsigned char checksum[KN_CHECKSUM_SIZE];
    if (size < sizeof(*out)) {
        return false;
    }
    memcpy(out, bytes, sizeof(*out));
    const kn_span covered = kn_span_of(bytes + KN_CHECKSUM_SIZE, size - KN_CHECKSUM_SIZE);
    kn_checksum(&covered, 1, checksum);
    const int64_t age = kn_clock_wall() - out->made_ns;
    return out->magic == MAGIC && out->size == size &&
           memcmp(out->checksum, checksum, sizeof(checksum)) == 0 &&
           memcmp(out->maker, maker, KN_DIGEST_SIZE) == 0 && age >= 0 &&
           age < (out->provisional == 0 ? LIFE_NS : PROVISIONAL_LIFE_NS) &&
           out->device_count <= DEVICES_MAX && out->file_count <= FILES_MAX &&
           out->device_count * sizeof(kn_recalled_device) <= size - sizeof(*out);
}

/* What a record says of the backend: a provisional probe result, or a lasting record. */
static void take_report(const record *head, kiln_probe_report *out_report,
                        char left_out[KN_LEFT_OUT_SIZE])
{
    *out_report = head->report;
    memcpy(left_out, head->left_out, KN_LEFT_OUT_SIZE);
    left_out[KN_LEFT_OUT_SIZE - 1] = '\0';
}

static bool record_files_hold(const char *bytes, size_t size, const record *head)
{
    const size_t device_bytes = head->device_count * sizeof(kn_recalled_device);
    return files_hold(bytes + sizeof(*head) + device_bytes, bytes + size, head->file_count);
}

static bool read_record(const char *bytes, size_t size, const uint8_t maker[KN_DIGEST_SIZE],
                        kn_recall *out_recall)
{
    record head;
    if (!is_sound(bytes, size, maker, &head) || head.provisional != 0 ||
        !record_files_hold(bytes, size, &head)) {
        return false;
    }
    const size_t device_bytes = head.device_count * sizeof(kn_recalled_device);
    out_recall->status = (kiln_status)head.status;
    take_report(&head, &out_recall->report, out_recall->left_out);
    out_recall->report.remembered = true;
    out_recall->report.probe_ns = 0;
    out_recall->device_count = head.device_count;
    if (device_bytes > 0) {
        out_recall->devices =
            (kn_recalled_device *)kn_bytes_copy(bytes + sizeof(head), device_bytes);
    }
    return device_bytes == 0 || out_recall->devices != NULL;
}

bool kn_recall_get(const kiln_cache *cache, const kiln_backend *backend, kn_recall *out_recall)
{
    uint8_t maker[KN_DIGEST_SIZE];
    void *bytes = NULL;
    size_t size = 0;
    memset(out_recall, 0, sizeof(*out_recall));
    if (backend->basis == NULL || *kiln_cache_root(cache) == '\0' ||
        !kn_recall_key(backend, maker)) {
        return false;
    }
    char *path = slot_path(cache, backend, maker);
    const bool known = path != NULL &&
                       kn_file_read(path, RECORD_MAX, true, &bytes, &size, NULL, NULL) == KILN_OK &&
                       read_record((const char *)bytes, size, maker, out_recall);
    free(bytes);
    free(path);
    return known;
}

void kn_recall_deinit(kn_recall *recall)
{
    free(recall->devices);
    memset(recall, 0, sizeof(*recall));
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_record(const kiln_cache *cache, const kiln_backend *backend,
                         const uint8_t maker[KN_DIGEST_SIZE], const kn_strbuf *bytes)
{
    kn_publish publish;
    char *path = slot_path(cache, backend, maker);
    char *temporary = kn_path_join(kiln_cache_root(cache), "tmp");
    if (path != NULL && temporary != NULL && kn_file_make_dir(temporary, NULL) == KILN_OK &&
        kn_publish_begin_unnamed(&publish, temporary, path, NULL) == KILN_OK) {
        kn_publish_write(&publish, kn_strbuf_text(bytes), bytes->length);
        (void)kn_publish_commit(&publish, false, NULL); /* what is lost is probed again */
    }
    free(temporary);
    free(path);
}

/* What a person or the system may put right without a file changing is asked again each time. */
static bool outcome_lasts(kiln_probe_outcome outcome)
{
    return outcome != KILN_PROBE_NO_PERMISSION && outcome != KILN_PROBE_FAILED &&
           outcome != KILN_PROBE_SKIPPED;
}

static bool recall_lasts(const kn_recall *recall)
{
    return recall->status == KILN_OK ||
           (recall->status != KILN_E_NOMEM && outcome_lasts(recall->report.outcome));
}

static void seal_record(record *head, kn_strbuf *bytes)
{
    head->magic = MAGIC;
    head->made_ns = kn_clock_wall();
    head->size = bytes->length;
    memcpy(bytes->data, head, sizeof(*head));
    const kn_span covered =
        kn_span_of(bytes->data + KN_CHECKSUM_SIZE, bytes->length - KN_CHECKSUM_SIZE);
    kn_checksum(&covered, 1, head->checksum);
    memcpy(bytes->data, head->checksum, KN_CHECKSUM_SIZE);
}

void kn_recall_put(const kiln_cache *cache, const kiln_backend *backend, const kn_recall *recall)
{
    record head;
    kn_strbuf bytes;
    if (!kn_recall_works(cache, backend) || !recall_lasts(recall) ||
        recall->device_count > DEVICES_MAX) {
        return;
    }
    memset(&head, 0, sizeof(head));
    head.status = (uint32_t)recall->status;
    head.device_count = recall->device_count;
    kn_text_put(head.left_out, sizeof(head.left_out), recall->left_out);
    head.report = recall->report;
    kn_strbuf_init(&bytes, RECORD_MAX);
    kn_strbuf_append(&bytes, &head, sizeof(head));
    kn_strbuf_append(&bytes, recall->devices, recall->device_count * sizeof(kn_recalled_device));
    head.file_count = add_mapped(&bytes);
    if (head.file_count < FILES_MAX && kn_recall_key(backend, head.maker) && kn_strbuf_ok(&bytes)) {
        seal_record(&head, &bytes);
        write_record(cache, backend, head.maker, &bytes);
    }
    kn_strbuf_deinit(&bytes);
}

void kn_recall_forget(const kiln_cache *cache, const kiln_backend *backend)
{
    uint8_t maker[KN_DIGEST_SIZE];
    if (kn_recall_works(cache, backend) && kn_recall_key(backend, maker)) {
        char *path = slot_path(cache, backend, maker);
        if (path != NULL) {
            (void)kn_file_remove(path, NULL);
        }
        free(path);
    }
}

/* --- provisional probe results --------------------------------------------------------------- */

void kn_recall_put_result(const kiln_cache *cache, const kiln_backend *backend,
                          const uint8_t key[KN_DIGEST_SIZE], const kiln_probe_report *report,
                          const char left_out[KN_LEFT_OUT_SIZE])
{
    record head;
    kn_strbuf bytes;
    if (!kn_recall_works(cache, backend)) {
        return;
    }
    memset(&head, 0, sizeof(head));
    head.provisional = 1;
    head.report = *report;
    memcpy(head.maker, key, KN_DIGEST_SIZE);
    kn_text_put(head.left_out, sizeof(head.left_out), left_out);
    kn_strbuf_init(&bytes, RECORD_MAX);
    kn_strbuf_append(&bytes, &head, sizeof(head));
    if (kn_strbuf_ok(&bytes)) {
        seal_record(&head, &bytes);
        write_record(cache, backend, key, &bytes);
    }
    kn_strbuf_deinit(&bytes);
}

bool kn_recall_get_result(const kiln_cache *cache, const kiln_backend *backend,
                          const uint8_t key[KN_DIGEST_SIZE], bool lasting,
                          kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE])
{
    record head;
    void *bytes = NULL;
    size_t size = 0;
    char *path = slot_path(cache, backend, key);
    const bool known = path != NULL &&
                       kn_file_read(path, RECORD_MAX, true, &bytes, &size, NULL, NULL) == KILN_OK &&
                       is_sound((const char *)bytes, size, key, &head) &&
                       record_files_hold((const char *)bytes, size, &head) &&
                       (!lasting || outcome_lasts(head.report.outcome));
    if (known) {
        take_report(&head, out_report, left_out);
    }
    free(bytes);
    free(path);
    return known;
}

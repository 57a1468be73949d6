/* The records: one file a backend and surroundings, among a few slots a backend. All numbers are
 * this machine's: a record is of no use to another one.
 *
 *     checksum over the rest | magic | SHA-256 of who made it | when | status, what was left out,
 *     report | checksum over the mapped files' facts | devices | "path\0" of every mapped file */
#include "core/runtime/recall.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/runtime/surroundings.h"
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
#define LIFE_NS (INT64_C(86400) * 1000000000)
#define MAGIC UINT64_C(0x0232424f52504e4b) /* "KNPROB2\2" */

typedef struct record {
    unsigned char checksum[KN_CHECKSUM_SIZE];
    uint64_t magic;
    uint8_t maker[KN_DIGEST_SIZE];
    int64_t made_ns;
    uint32_t status;
    uint32_t device_count;
    char left_out[KN_LEFT_OUT_SIZE];
    kiln_probe_report report;
    unsigned char files[KN_CHECKSUM_SIZE];
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
    char *own;
    bool begun; /* past the program itself, which comes first */
} mapping;

/* Every library of the process: which of them a driver needed is unknown. Kiln is left out, whose
 * build id is in the digest. */
static void take_module(void *user, const char *path, const char *build_id)
{
    mapping *m = (mapping *)user;
    (void)build_id;
    if (m->begun && kn_path_is_absolute(path) && (m->own == NULL || strcmp(path, m->own) != 0)) {
        kn_strbuf_append(m->out, path, strlen(path) + 1);
    }
    m->begun = true;
}

static void add_mapped(kn_strbuf *out)
{
    mapping m = {.out = out, .own = kn_paths_own_module()};
    out->failed = out->failed || !kn_module_each(take_module, &m);
    free(m.own);
}

/* The checksum over the facts of files, whose paths end with a NUL each. */
static bool sum_files(const char *paths, size_t size, unsigned char out[KN_CHECKSUM_SIZE])
{
    kn_strbuf facts;
    kn_strbuf_init(&facts, 0);
    for (size_t at = 0; at < size; at += strlen(paths + at) + 1) {
        kn_surroundings_add_file(&facts, paths + at);
    }
    const kn_span covered = kn_span_of(kn_strbuf_text(&facts), facts.length);
    const bool good = kn_strbuf_ok(&facts);
    kn_checksum(&covered, 1, out);
    kn_strbuf_deinit(&facts);
    return good;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void sum_record(const char *bytes, size_t size, unsigned char out[KN_CHECKSUM_SIZE])
{
    const kn_span covered = kn_span_of(bytes + KN_CHECKSUM_SIZE, size - KN_CHECKSUM_SIZE);
    kn_checksum(&covered, 1, out);
}

static bool is_sound(const record *head, const char *bytes, size_t size,
                     const uint8_t maker[KN_DIGEST_SIZE])
{
    unsigned char sum[KN_CHECKSUM_SIZE];
    const int64_t age = kn_clock_wall() - head->made_ns;
    sum_record(bytes, size, sum);
    return memcmp(head->checksum, sum, sizeof(sum)) == 0 && head->magic == MAGIC &&
           memcmp(head->maker, maker, KN_DIGEST_SIZE) == 0 && age >= 0 && age < LIFE_NS &&
           head->device_count <= DEVICES_MAX &&
           head->device_count * sizeof(kn_recalled_device) <= size - sizeof(*head) &&
           head->left_out[KN_LEFT_OUT_SIZE - 1] == '\0';
}

static bool read_record(const char *bytes, size_t size, const uint8_t maker[KN_DIGEST_SIZE],
                        kn_recall *out_recall)
{
    record head;
    unsigned char files[KN_CHECKSUM_SIZE];
    if (size < sizeof(head)) {
        return false;
    }
    memcpy(&head, bytes, sizeof(head));
    if (!is_sound(&head, bytes, size, maker)) {
        return false;
    }
    const size_t device_bytes = head.device_count * sizeof(kn_recalled_device);
    const char *devices = bytes + sizeof(head);
    const char *paths = devices + device_bytes;
    const size_t path_bytes = size - sizeof(head) - device_bytes;
    if ((path_bytes > 0 && paths[path_bytes - 1] != '\0') || !sum_files(paths, path_bytes, files) ||
        memcmp(files, head.files, sizeof(files)) != 0) {
        return false;
    }
    out_recall->status = (kiln_status)head.status;
    out_recall->report = head.report;
    out_recall->report.remembered = true;
    out_recall->report.probe_ns = 0;
    memcpy(out_recall->left_out, head.left_out, sizeof(head.left_out));
    out_recall->device_count = head.device_count;
    if (device_bytes > 0) {
        out_recall->devices = (kn_recalled_device *)kn_bytes_copy(devices, device_bytes);
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

/* What a person or the system may put right without a file changing is asked again each time. */
static bool recall_lasts(const kn_recall *recall)
{
    const kiln_probe_outcome outcome = recall->report.outcome;
    return recall->status == KILN_OK ||
           (recall->status != KILN_E_NOMEM && outcome != KILN_PROBE_NO_PERMISSION &&
            outcome != KILN_PROBE_FAILED && outcome != KILN_PROBE_SKIPPED);
}

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

void kn_recall_put(const kiln_cache *cache, const kiln_backend *backend, const kn_recall *recall)
{
    record head;
    kn_strbuf bytes;
    if (!kn_recall_works(cache, backend) || !recall_lasts(recall) ||
        recall->device_count > DEVICES_MAX) {
        return;
    }
    memset(&head, 0, sizeof(head));
    head.magic = MAGIC;
    head.made_ns = kn_clock_wall();
    head.status = (uint32_t)recall->status;
    head.device_count = recall->device_count;
    kn_text_put(head.left_out, sizeof(head.left_out), recall->left_out);
    head.report = recall->report;
    kn_strbuf_init(&bytes, RECORD_MAX);
    kn_strbuf_append(&bytes, &head, sizeof(head));
    kn_strbuf_append(&bytes, recall->devices, recall->device_count * sizeof(kn_recalled_device));
    const size_t paths = bytes.length;
    add_mapped(&bytes);
    if (kn_strbuf_ok(&bytes) && kn_recall_key(backend, head.maker) &&
        sum_files(bytes.data + paths, bytes.length - paths, head.files)) {
        memcpy(bytes.data, &head, sizeof(head));
        sum_record(bytes.data, bytes.length, head.checksum);
        memcpy(bytes.data, head.checksum, KN_CHECKSUM_SIZE);
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

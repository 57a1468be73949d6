/* See recorder.h. What is where in a recording is object.h's and recording.h's matter. */
#include "record/recorder.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "record/object.h"
#include "record/recording.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/thread.h"

#define SECOND UINT64_C(1000000000)
#define STAMP_AGE_S UINT64_C(86400) /* a use is touched once a day */
#define RETRY_AFTER (60 * SECOND)   /* after a write that failed */
#define RECOUNT_SHARE 16            /* of the largest size: others write meanwhile */

static const char recording[] = "recording a program";

typedef struct kn_recorder {
    kn_cache_companion companion; /* first */
    char *root;
    uint64_t max_bytes;
    kn_mutex mutex;    /* guards what follows */
    kn_map seen;       /* keys of uses that are there, or that were tried */
    kn_map objects;    /* digests of objects that are there */
    bool told;         /* a failure was logged */
    bool closed;       /* it can never be written to */
    bool counted;      /* `bytes` is known */
    uint64_t bytes;    /* of the recording, as far as this process knows */
    uint64_t recount;  /* at how many of them the others' are counted, too */
    uint64_t retry_at; /* kn_clock_now: when writing is tried again */
} kn_recorder;

/* --- the recorder of a cache ------------------------------------------------------------------ */

static void destroy_recorder(kn_recorder *recorder)
{
    kn_map_deinit(&recorder->seen);
    kn_map_deinit(&recorder->objects);
    kn_mutex_deinit(&recorder->mutex);
    free(recorder->root);
    free(recorder);
}

static void end_recorder(kn_cache_companion *companion, kiln_cache *cache)
{
    (void)cache;
    destroy_recorder((kn_recorder *)(void *)companion);
}

/* The first one; the others are counted. */
static void log_recorder_failure(kn_recorder *recorder, const kiln_diag *diag)
{
    char line[1536];
    kn_mutex_lock(&recorder->mutex);
    const bool told = recorder->told;
    recorder->told = true;
    kn_mutex_unlock(&recorder->mutex);
    if (!told) {
        (void)kiln_diag_format(diag, line, sizeof line);
        kn_log(KILN_LOG_WARN, "programs are not recorded: %s", line);
    }
}

static kn_recorder *create_recorder(kiln_cache *cache)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL) {
        return NULL;
    }
    kn_mutex_init(&recorder->mutex);
    kn_map_init(&recorder->seen);
    kn_map_init(&recorder->objects);
    recorder->companion.end = end_recorder;
    recorder->root = kn_text_copy(cache->recording);
    recorder->max_bytes = cache->options.record_max_bytes;
    if (recorder->root == NULL) {
        destroy_recorder(recorder);
        return NULL;
    }
    if (kn_recording_prepare(recorder->root, &diag) != KILN_OK) {
        recorder->closed = true;
        log_recorder_failure(recorder, &diag);
    }
    kiln_diag_clear(&diag);
    kn_cache_companion *there =
        kn_cache_companion_set(cache, KN_COMPANION_RECORDER, &recorder->companion);
    if (there != &recorder->companion) {
        destroy_recorder(recorder);
    }
    return (kn_recorder *)(void *)there;
}

static kn_recorder *find_recorder(kiln_cache *cache)
{
    kn_recorder *recorder =
        (kn_recorder *)(void *)kn_cache_companion_of(cache, KN_COMPANION_RECORDER);
    return recorder != NULL ? recorder : create_recorder(cache);
}

/* --- what is there ---------------------------------------------------------------------------- */

/* Marks a key as seen; whether it was. */
static bool see_key(kn_recorder *recorder, const kiln_key *key)
{
    kn_mutex_lock(&recorder->mutex);
    const bool seen = kn_map_find(&recorder->seen, key->bytes, sizeof key->bytes) != NULL;
    if (!seen) {
        /* Without memory it is looked for again. */
        (void)kn_map_put(&recorder->seen, key->bytes, sizeof key->bytes, recorder, NULL);
    }
    kn_mutex_unlock(&recorder->mutex);
    return seen;
}

static bool has_seen(kn_recorder *recorder, const kiln_key *key)
{
    kn_mutex_lock(&recorder->mutex);
    const bool seen = kn_map_find(&recorder->seen, key->bytes, sizeof key->bytes) != NULL;
    kn_mutex_unlock(&recorder->mutex);
    return seen;
}

/* Whether something may be written, as far as is known before it is tried. */
static bool may_write(kn_recorder *recorder)
{
    kn_mutex_lock(&recorder->mutex);
    const bool may = !recorder->closed && kn_clock_now() >= recorder->retry_at;
    kn_mutex_unlock(&recorder->mutex);
    return may;
}

/* An object that is known to be there needs no look. One of no size was torn by a power failure. */
static bool has_object(kn_recorder *recorder, const uint8_t digest[KN_DIGEST_SIZE])
{
    kn_file_facts facts;
    kn_mutex_lock(&recorder->mutex);
    bool there = kn_map_find(&recorder->objects, digest, KN_DIGEST_SIZE) != NULL;
    kn_mutex_unlock(&recorder->mutex);
    if (there) {
        return true;
    }
    char *path = kn_object_path(recorder->root, "objects", digest);
    there = path != NULL && kn_file_stat(path, false, &facts, NULL) == KILN_OK && facts.size > 0;
    free(path);
    return there;
}

static void know_object(kn_recorder *recorder, const uint8_t digest[KN_DIGEST_SIZE])
{
    kn_mutex_lock(&recorder->mutex);
    (void)kn_map_put(&recorder->objects, digest, KN_DIGEST_SIZE, recorder, NULL);
    kn_mutex_unlock(&recorder->mutex);
}

/* --- the size --------------------------------------------------------------------------------- */

/* Whether so much more may be written. What other processes have written meanwhile is counted now
 * and then: a recording may become larger than its limit by what they write in between. */
static bool has_room(kn_recorder *recorder, uint64_t coming)
{
    kn_mutex_lock(&recorder->mutex);
    if (!recorder->counted || recorder->bytes >= recorder->recount) {
        recorder->bytes = kn_recording_bytes(recorder->root);
        recorder->recount = recorder->bytes + recorder->max_bytes / RECOUNT_SHARE;
        recorder->counted = true;
    }
    const bool room =
        recorder->bytes <= recorder->max_bytes && coming <= recorder->max_bytes - recorder->bytes;
    kn_mutex_unlock(&recorder->mutex);
    return room;
}

static void add_written(kn_draft *draft, uint64_t bytes)
{
    kn_mutex_lock(&draft->recorder->mutex);
    draft->recorder->bytes += bytes;
    kn_mutex_unlock(&draft->recorder->mutex);
}

/* Refuses what would pass the limit. */
static bool check_room(kn_draft *draft, uint64_t coming)
{
    if (!has_room(draft->recorder, coming)) {
        draft->failure =
            kiln_diag_set(&draft->diag, KILN_E_UNAVAILABLE,
                          "raise KILN_RECORD_MAX_SIZE, or record in another directory",
                          draft->recorder->root, "it would become larger than %llu bytes",
                          (unsigned long long)draft->recorder->max_bytes);
    }
    return draft->failure == KILN_OK;
}

/* --- drafts ----------------------------------------------------------------------------------- */

bool kn_draft_begin(kn_draft *draft, kiln_cache *cache, const kiln_key *key)
{
    uint64_t age_s = 0;
    if (cache == NULL || cache->recording == NULL) {
        return false;
    }
    kn_recorder *recorder = find_recorder(cache);
    if (recorder == NULL || has_seen(recorder, key)) {
        return false;
    }
    if (recorder->closed) {
        kn_cache_count(cache, KN_COUNT_unrecorded, see_key(recorder, key) ? 0 : 1);
        return false;
    }
    if (kn_object_has_use(recorder->root, key, &age_s)) {
        if (!see_key(recorder, key) && age_s >= STAMP_AGE_S) {
            (void)kn_object_stamp_use(recorder->root, key); /* it may be older than it is used */
        }
        return false;
    }
    if (!may_write(recorder)) {
        kn_cache_count(cache, KN_COUNT_unrecorded, 1);
        return false;
    }
    if (see_key(recorder, key)) {
        return false; /* another thread records it */
    }
    *draft = (kn_draft){.program = KN_RECORDED_INIT,
                        .key = *key,
                        .cache = cache,
                        .recorder = recorder,
                        .diag = KILN_DIAG_INIT};
    draft->use.first_ns = kn_clock_wall();
    kn_map_init(&draft->paths);
    return true;
}

/* Stores a text; false after a failure. */
static bool put_object(kn_draft *draft, const void *text, size_t length, kn_object *out_object)
{
    uint64_t written = 0;
    if (draft->failure != KILN_OK || !check_room(draft, length)) {
        return false;
    }
    draft->failure =
        kn_object_put(draft->recorder->root, text, length, out_object, &written, &draft->diag);
    if (draft->failure == KILN_OK) {
        add_written(draft, written);
        know_object(draft->recorder, out_object->digest);
    }
    return draft->failure == KILN_OK;
}

static kiln_status fail_without_memory(kn_draft *draft)
{
    draft->failure = kn_no_memory(&draft->diag, recording);
    return draft->failure;
}

void kn_draft_add_text(kn_draft *draft, const void *text, size_t length, const char *options,
                       const kiln_header *headers, size_t header_count)
{
    if (draft->failure != KILN_OK) {
        return;
    }
    const size_t count = draft->program.text_count;
    kn_recorded_text *texts = realloc(draft->texts, (count + 1) * sizeof *texts);
    kn_recorded_header *rows = calloc(header_count + 1, sizeof *rows);
    if (texts != NULL) {
        draft->texts = texts;
        draft->program.texts = texts;
    }
    if (texts == NULL || rows == NULL) {
        free(rows);
        (void)fail_without_memory(draft);
        return;
    }
    texts[count] =
        (kn_recorded_text){.options = options, .headers = rows, .header_count = header_count};
    draft->program.text_count++;
    bool stored = put_object(draft, text, length, &texts[count].text);
    for (size_t i = 0; i < header_count && stored; i++) {
        rows[i].name = headers[i].name;
        stored = put_object(draft, headers[i].text, headers[i].length, &rows[i].text);
    }
}

/* --- files ------------------------------------------------------------------------------------ */

static kiln_status refuse_changed(kn_draft *draft, const char *path)
{
    draft->failure = kiln_diag_set(&draft->diag, KILN_MISS, NULL, recording,
                                   "%s is no longer what it was when it was compiled", path);
    return draft->failure;
}

/* Stores the content of a file, which must be what the key says. */
static kiln_status put_file(kn_draft *draft, const kn_closure_file *file, kn_object *out_object)
{
    void *data = NULL;
    size_t size = 0;
    uint8_t digest[KN_DIGEST_SIZE];
    kiln_status status =
        kn_file_read(file->path, KN_CLOSURE_MAX_FILE_SIZE, false, &data, &size, NULL, NULL);
    if (status != KILN_OK || !kn_digest_of(data, size, digest) ||
        memcmp(digest, file->digest, sizeof digest) != 0) {
        status = refuse_changed(draft, file->path);
    } else {
        status = put_object(draft, data, size, out_object) ? KILN_OK : draft->failure;
    }
    free(data);
    return status;
}

static bool add_row(kn_draft *draft, const kn_closure_file *file, const kn_object *content)
{
    const size_t count = draft->program.file_count;
    if (count == draft->file_capacity) {
        const size_t wanted = count == 0 ? 16 : 2 * count;
        kn_recorded_file *grown = realloc(draft->files, wanted * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        draft->files = grown;
        draft->program.files = grown;
        draft->file_capacity = wanted;
    }
    char *path = kn_text_copy(file->path);
    if (path == NULL || !kn_map_put(&draft->paths, path, strlen(path), draft, NULL)) {
        free(path);
        return false;
    }
    draft->files[draft->program.file_count++] =
        (kn_recorded_file){.path = path, .content = *content, .system = file->system};
    return true;
}

static kiln_status add_closure_file(void *user, const kn_closure_file *file)
{
    kn_draft *draft = user;
    kn_object content = {.size = file->size};
    if (kn_map_find(&draft->paths, file->path, strlen(file->path)) != NULL) {
        return KILN_OK;
    }
    draft->needs_dir = draft->needs_dir || !kn_path_is_absolute(file->path);
    memcpy(content.digest, file->digest, sizeof content.digest);
    if (file->size == 0 || !has_object(draft->recorder, file->digest)) {
        kiln_status status = put_file(draft, file, &content);
        if (status != KILN_OK) {
            return status;
        }
    }
    know_object(draft->recorder, content.digest);
    return add_row(draft, file, &content) ? KILN_OK : fail_without_memory(draft);
}

void kn_draft_add_closure(kn_draft *draft, const kn_closure *closure)
{
    if (draft->failure != KILN_OK || closure == NULL) {
        return;
    }
    draft->needs_dir = draft->needs_dir || kn_closure_names_matter(closure);
    kiln_status status = kn_closure_files(closure, add_closure_file, draft);
    if (status != KILN_OK && draft->failure == KILN_OK) {
        (void)fail_without_memory(draft);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

static void write_program(kn_draft *draft)
{
    uint64_t written = 0;
    const char *root = draft->recorder->root;
    draft->failure =
        kn_object_put_program(root, &draft->program, draft->use.program, &written, &draft->diag);
    add_written(draft, written);
    if (draft->failure == KILN_OK) {
        draft->failure = kn_object_put_use(root, &draft->key, &draft->use, &written, &draft->diag);
        add_written(draft, draft->failure == KILN_OK ? written : 0);
    }
}

static void report_failure(kn_draft *draft)
{
    kn_recorder *recorder = draft->recorder;
    kn_cache_count(draft->cache, KN_COUNT_unrecorded, 1);
    if (draft->failure == KILN_MISS || draft->failure == KILN_E_UNSUPPORTED) {
        kn_log_diag(KILN_LOG_INFO, "not recorded", &draft->diag); /* this program alone */
        return;
    }
    log_recorder_failure(recorder, &draft->diag);
    kn_mutex_lock(&recorder->mutex);
    recorder->retry_at = kn_clock_now() + RETRY_AFTER;
    kn_mutex_unlock(&recorder->mutex);
}

void kn_draft_end(kn_draft *draft, const char *target, uint64_t compile_ns)
{
    draft->use.target = target;
    draft->use.compile_ns = compile_ns;
    if (draft->failure == KILN_OK && draft->needs_dir) {
        draft->dir = kn_path_resolve(".");
        draft->program.dir = draft->dir != NULL ? draft->dir : "";
    }
    if (draft->failure == KILN_OK) {
        write_program(draft);
    }
    if (draft->failure == KILN_OK) {
        kn_cache_count(draft->cache, KN_COUNT_recorded, 1);
    } else {
        report_failure(draft);
    }
    for (size_t i = 0; i < draft->program.text_count; i++) {
        free((void *)(uintptr_t)draft->texts[i].headers);
    }
    for (size_t i = 0; i < draft->program.file_count; i++) {
        free((void *)(uintptr_t)draft->files[i].path);
    }
    free(draft->texts);
    free(draft->files);
    free(draft->dir);
    kn_map_deinit(&draft->paths);
    kiln_diag_clear(&draft->diag);
}

/* Opening a recording and walking its uses. What is damaged is left out and counted. */
#include "record/recording.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/admin.h"

#include "base/diag.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/publish.h"

#define MARKER_LIMIT 64u
#define PROGRAM_LIMIT ((size_t)64 << 20)

static const char opening[] = "opening a recording";

/* --- the marker ------------------------------------------------------------------------------- */

static kiln_status refuse_dir(const char *root, const char *why, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID,
                         "name the directory that KILN_RECORD or kiln exec --record filled", root,
                         "%s", why);
}

/* "kiln-recording 1\n". KILN_MISS (no diag) where there is none. */
static kiln_status read_marker(const char *root, kiln_diag *diag)
{
    void *bytes = NULL;
    size_t size = 0;
    uint64_t version = 0;
    char *path = kn_path_join(root, KN_RECORDING_MARKER);
    kiln_status status = path != NULL
                             ? kn_file_read(path, MARKER_LIMIT, true, &bytes, &size, NULL, diag)
                             : kn_no_memory(diag, opening);
    free(path);
    if (status != KILN_OK) {
        return status;
    }
    char *text = (char *)bytes;
    const bool named = kn_text_starts(text, KN_RECORDING_MARKER " ");
    text[strcspn(text, "\r\n")] = '\0';
    if (!named || !kn_text_to_u64(text + strlen(KN_RECORDING_MARKER " "), &version) ||
        version == 0) {
        status = refuse_dir(root, "its file " KN_RECORDING_MARKER " is not one of kiln", diag);
    } else if (version > KN_RECORDING_VERSION) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, "update kiln", root,
                               "it was made by a newer kiln: version %llu, and this one reads %u",
                               (unsigned long long)version, KN_RECORDING_VERSION);
    }
    free(bytes);
    return status;
}

bool kn_recording_is(const char *root)
{
    kn_file_facts facts;
    char *path = kn_path_join(root, KN_RECORDING_MARKER);
    const bool is = path != NULL && kn_file_stat(path, true, &facts, NULL) == KILN_OK &&
                    facts.kind == KN_FILE_REGULAR;
    free(path);
    return is;
}

static kiln_status stop_at_any(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "tmp") == 0 ? KILN_OK : KILN_E_BUSY;
}

static kiln_status write_marker(const char *root, kiln_diag *diag)
{
    kn_publish publish;
    char *path = kn_path_join(root, KN_RECORDING_MARKER);
    char *dir = kn_path_join(root, "tmp");
    kiln_status status = path != NULL && dir != NULL
                             ? kn_publish_begin_unnamed(&publish, dir, path, diag)
                             : kn_no_memory(diag, opening);
    if (status == KILN_OK) {
        static const char text[] = KN_RECORDING_MARKER " 1\n";
        kn_publish_write(&publish, text, sizeof(text) - 1);
        status = kn_publish_commit(&publish, false, diag);
    }
    free(dir);
    free(path);
    return status;
}

kiln_status kn_recording_prepare(const char *root, kiln_diag *diag)
{
    kiln_status status = read_marker(root, diag);
    if (status != KILN_MISS) {
        return status;
    }
    status = kn_file_make_dir(root, diag);
    if (status == KILN_OK) {
        status = kn_file_list(root, stop_at_any, NULL, diag);
    }
    /* Another process may have begun it meanwhile. */
    if (status == KILN_E_BUSY) {
        status = read_marker(root, diag);
        return status == KILN_MISS ? refuse_dir(root, "there is something else in it", diag)
                                   : status;
    }
    return status == KILN_OK ? write_marker(root, diag) : status;
}

/* --- walking ---------------------------------------------------------------------------------- */

typedef kiln_status visit_file(void *user, const char *path, const char *name);

/* The files of one kind: root/kind/ab/NAME. */
typedef struct kind_walk {
    const char *dir; /* root/kind, then root/kind/ab */
    visit_file *visit;
    void *user;
    bool inner;
} kind_walk;

static kiln_status visit_name(void *user, const char *name)
{
    const kind_walk *walk = (const kind_walk *)user;
    char *path = kn_path_join(walk->dir, name);
    kiln_status status = path != NULL ? KILN_OK : KILN_E_NOMEM;
    if (status == KILN_OK && walk->inner) {
        status = walk->visit(walk->user, path, name);
    } else if (status == KILN_OK) {
        kind_walk inner = *walk;
        inner.dir = path;
        inner.inner = true;
        status = kn_file_list(path, visit_name, &inner, NULL);
        status = status == KILN_E_NOMEM ? status : KILN_OK; /* a file, or gone */
    }
    free(path);
    return status;
}

static kiln_status walk_kind(const char *root, const char *kind, visit_file *visit, void *user,
                             kiln_diag *diag)
{
    char *dir = kn_path_join(root, kind);
    if (dir == NULL) {
        return kn_no_memory(diag, opening);
    }
    kind_walk walk = {dir, visit, user, false};
    kiln_status status = kn_file_list(dir, visit_name, &walk, diag);
    free(dir);
    return status == KILN_MISS ? KILN_OK : status; /* nothing of that kind yet */
}

static kiln_status add_bytes(void *user, const char *path, const char *name)
{
    kn_file_facts facts;
    (void)name;
    if (kn_file_stat(path, false, &facts, NULL) == KILN_OK) {
        *(uint64_t *)user += facts.size;
    }
    return KILN_OK;
}

uint64_t kn_recording_bytes(const char *root)
{
    static const char *const kinds[] = {"objects", "programs", "uses"};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        (void)walk_kind(root, kinds[i], add_bytes, &bytes, NULL);
    }
    return bytes;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct use_list {
    kn_recording *recording;
    size_t capacity;
} use_list;

static void note_damage(kn_recording *recording, const char *path, const kiln_diag *diag)
{
    if (recording->damaged++ == 0) {
        const size_t root = strlen(recording->root);
        const char *short_path = strlen(path) > root ? path + root + 1 : path;
        kn_text_putf(recording->damage, sizeof(recording->damage), "%s: %s", short_path, diag->why);
    }
}

static kn_recording_use *add_use(use_list *list)
{
    kn_recording *recording = list->recording;
    if (recording->use_count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 256 : 2 * list->capacity;
        kn_recording_use *grown =
            (kn_recording_use *)realloc(recording->uses, capacity * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        recording->uses = grown;
        list->capacity = capacity;
    }
    return &recording->uses[recording->use_count];
}

static kiln_status keep_use(use_list *list, const kiln_key *key, const kn_recorded_use *use,
                            int64_t last_ns)
{
    kn_recording_use *kept = add_use(list);
    char *target = kept != NULL ? kn_text_copy(use->target) : NULL;
    if (target == NULL) {
        return KILN_E_NOMEM;
    }
    *kept = (kn_recording_use){.key = *key,
                               .target = target,
                               .first_ns = use->first_ns,
                               .last_ns = last_ns,
                               .compile_ns = use->compile_ns,
                               .days = use->days};
    memcpy(kept->program, use->program, sizeof(kept->program));
    list->recording->use_count++;
    return KILN_OK;
}

static kiln_status read_use(void *user, const char *path, const char *name)
{
    use_list *list = (use_list *)user;
    kiln_key key;
    kiln_diag own = KILN_DIAG_INIT;
    kn_recorded_use use;
    kn_file_facts facts;
    void *bytes = NULL;
    size_t size = 0;
    if (kiln_key_parse(name, &key, NULL) != KILN_OK) {
        return KILN_OK; /* not one of ours */
    }
    kiln_status status = kn_file_read(path, KN_OBJECT_USE_MAX, true, &bytes, &size, &facts, &own);
    if (status == KILN_OK) {
        status = kn_recorded_use_decode(kn_span_of(bytes, size), &use, &own);
    }
    if (status == KILN_OK) {
        status = keep_use(list, &key, &use, facts.mtime_ns);
    } else if (status != KILN_MISS && status != KILN_E_NOMEM) {
        note_damage(list->recording, path, &own);
        status = KILN_OK;
    }
    free(bytes);
    kiln_diag_clear(&own);
    return status == KILN_E_NOMEM ? status : KILN_OK;
}

static int compare_uses(const void *a, const void *b)
{
    const kn_recording_use *x = (const kn_recording_use *)a;
    const kn_recording_use *y = (const kn_recording_use *)b;
    return x->first_ns != y->first_ns ? (x->first_ns < y->first_ns ? -1 : 1)
                                      : memcmp(x->key.bytes, y->key.bytes, sizeof(x->key.bytes));
}

kiln_status kn_recording_open(const char *root, kn_recording *out_recording, kiln_diag *diag)
{
    *out_recording = (kn_recording){.root = kn_text_copy(root)};
    use_list list = {out_recording, 0};
    kiln_status status =
        out_recording->root != NULL ? read_marker(root, diag) : kn_no_memory(diag, opening);
    if (status == KILN_MISS) {
        status =
            refuse_dir(root, "it is not a recording: it has no file " KN_RECORDING_MARKER, diag);
    }
    if (status == KILN_OK) {
        status = walk_kind(root, "uses", read_use, &list, diag);
    }
    if (status == KILN_E_NOMEM) {
        status = kn_no_memory(diag, opening);
    }
    if (status != KILN_OK) {
        kn_recording_close(out_recording);
    } else if (out_recording->use_count > 0) {
        qsort(out_recording->uses, out_recording->use_count, sizeof(kn_recording_use),
              compare_uses);
    }
    return status;
}

void kn_recording_close(kn_recording *recording)
{
    for (size_t i = 0; i < recording->use_count; i++) {
        free(recording->uses[i].target);
    }
    free(recording->uses);
    free(recording->root);
    *recording = (kn_recording){.root = NULL};
}

static kiln_status decode_program(const uint8_t digest[KN_DIGEST_SIZE], kn_span bytes,
                                  kn_recorded *out_program, kiln_diag *diag)
{
    uint8_t own[KN_DIGEST_SIZE];
    if (!kn_digest_of(bytes.data, bytes.length, own)) {
        return kn_no_memory(diag, "reading a recorded program");
    }
    if (memcmp(own, digest, sizeof own) != 0) {
        return kiln_diag_set(diag, KILN_E_CORRUPT, "record it again", "reading a recorded program",
                             "it is not the program that its name says");
    }
    return kn_recorded_decode(bytes, out_program, diag);
}

kiln_status kn_recording_program(const kn_recording *recording,
                                 const uint8_t digest[KN_DIGEST_SIZE], char **out_bytes,
                                 kn_recorded *out_program, kiln_diag *diag)
{
    void *bytes = NULL;
    size_t size = 0;
    char *path = kn_object_path(recording->root, "programs", digest);
    *out_program = KN_RECORDED_INIT;
    *out_bytes = NULL;
    kiln_status status = path != NULL
                             ? kn_file_read(path, PROGRAM_LIMIT, true, &bytes, &size, NULL, diag)
                             : kn_no_memory(diag, "reading a recorded program");
    if (status == KILN_MISS) {
        (void)kiln_diag_set(diag, KILN_MISS, "record it again", "reading a recorded program",
                            "the recording lacks it");
    } else if (status == KILN_OK) {
        status = decode_program(digest, kn_span_of(bytes, size), out_program, diag);
    }
    if (status == KILN_OK) {
        *out_bytes = (char *)bytes;
    } else {
        free(bytes);
    }
    free(path);
    return status;
}

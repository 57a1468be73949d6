/* See recorder_world.h. */
#include "unit/record/recorder_world.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/counters.h>

#include "record/recording.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

int rw_setup(void **state)
{
    recorder_world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->root = kt_tmpdir_create();
    w->recording = kt_path(w->root, "recorded");
    *state = w;
    return 0;
}

int rw_teardown(void **state)
{
    recorder_world *w = *state;
    rw_close(w);
    free(w->recording);
    kt_tmpdir_remove(w->root);
    free(w);
    return 0;
}

kiln_cache *rw_open(recorder_world *w, uint64_t max_bytes)
{
    kiln_cache_options options;
    char *root = kt_path(w->root, "cache");
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    options.no_fsync = true;
    options.record = w->recording;
    options.record_max_bytes = max_bytes;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    free(root);
    return w->cache;
}

void rw_close(recorder_world *w)
{
    kiln_cache_destroy(w->cache);
    w->cache = NULL;
}

kiln_key rw_key(const char *text)
{
    kiln_key key;
    assert_true(kn_digest_of(text, strlen(text), key.bytes));
    return key;
}

bool rw_record(kiln_cache *cache, const char *key, const char *text, const char *header)
{
    static const char *const options[] = {"-O2", "-w"};
    const kiln_header row = {"h.h", header, strlen(header)};
    const kiln_key digest = rw_key(key);
    kn_draft draft;
    if (!kn_draft_begin(&draft, cache, &digest)) {
        return false;
    }
    draft.program.frontend = KN_FRONTEND_WALK;
    draft.program.language = KILN_LANG_OPENCL_C;
    draft.program.name = "a.cl";
    draft.program.options = options;
    draft.program.option_count = 2;
    kn_draft_add_text(&draft, text, strlen(text), "", &row, 1);
    kn_draft_add_closure(&draft, NULL);
    kn_draft_end(&draft, "opencl:test", 7);
    return true;
}

uint64_t rw_counter(const recorder_world *w, enum kiln_counter counter)
{
    return kiln_cache_counter(w->cache, counter);
}

static void read_object(const char *recording, const kn_object *object)
{
    char *text = NULL;
    assert_int_equal(kn_object_get(recording, object, &text, NULL), KILN_OK);
    free(text);
}

size_t rw_count_uses(const char *recording)
{
    kn_recording opened;
    assert_int_equal(kn_recording_open(recording, &opened, NULL), KILN_OK);
    assert_int_equal(opened.damaged, 0);
    const size_t count = opened.use_count;
    for (size_t i = 0; i < count; i++) {
        kn_recorded program;
        char *bytes = NULL;
        assert_int_equal(
            kn_recording_program(&opened, opened.uses[i].program, &bytes, &program, NULL), KILN_OK);
        for (size_t k = 0; k < program.text_count; k++) {
            read_object(recording, &program.texts[k].text);
            for (size_t j = 0; j < program.texts[k].header_count; j++) {
                read_object(recording, &program.texts[k].headers[j].text);
            }
        }
        for (size_t k = 0; k < program.file_count; k++) {
            read_object(recording, &program.files[k].content);
        }
        kn_recorded_deinit(&program);
        free(bytes);
    }
    kn_recording_close(&opened);
    return count;
}

size_t rw_count(const recorder_world *w, const char *kind)
{
    char *path = kt_at(w->recording, kind);
    const size_t count = kt_file_count(path);
    return count;
}

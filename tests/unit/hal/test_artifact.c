/* Artifacts: bytes, log, facts; and their way into an entry and back. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/label.h"
#include "core/build/stage_artifact.h"
#include "support/cmocka.h"

static void assert_fact(const kn_artifact *artifact, const char *name, const char *expected)
{
    size_t size = 0;
    const void *data = kn_host.artifact_fact(&artifact->base, name, &size);
    if (expected == NULL) {
        assert_null(data);
        assert_int_equal(size, 0);
        return;
    }
    assert_non_null(data);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(data, expected, size);
}

static void set_fact(kn_artifact *artifact, const char *name, const char *value)
{
    assert_int_equal(kn_host.artifact_set_fact(&artifact->base, name, value, strlen(value)),
                     KILN_OK);
}

static void facts_are_replaced_by_name(void **state)
{
    kn_artifact artifact;
    kn_artifact_init(&artifact);
    assert_fact(&artifact, "a", NULL);
    set_fact(&artifact, "a", "one");
    set_fact(&artifact, "b", "");
    set_fact(&artifact, "ab", "three");
    set_fact(&artifact, "a", "another");
    assert_fact(&artifact, "a", "another");
    assert_fact(&artifact, "b", "");
    assert_fact(&artifact, "ab", "three");
    assert_fact(&artifact, "c", NULL);
    assert_int_equal(kn_host.artifact_set_fact(&artifact.base, "", "x", 1), KILN_E_INVALID);
    assert_int_equal(kn_host.artifact_set_fact(&artifact.base, NULL, "x", 1), KILN_E_INVALID);
    kn_artifact_deinit(&artifact);
}

static void logs_end_at_their_nul(void **state)
{
    kn_artifact artifact;
    kn_artifact_init(&artifact);
    assert_null(artifact.base.log);
    assert_int_equal(kn_host.artifact_set_log(&artifact.base, "note\0\0\0", 7), KILN_OK);
    assert_string_equal(artifact.base.log, "note");
    assert_int_equal(kn_host.artifact_set_log(&artifact.base, "", 0), KILN_OK);
    assert_null(artifact.base.log);
    assert_int_equal(kn_host.artifact_set_log(&artifact.base, "notes", 4), KILN_OK);
    assert_string_equal(artifact.base.log, "note");
    kn_artifact_deinit(&artifact);
}

static void an_entry_gives_all_of_it_back(void **state)
{
    kn_artifact artifact;
    kn_artifact back;
    kiln_blob *blob = NULL;
    kn_artifact_init(&artifact);
    kn_artifact_init(&back);
    assert_int_equal(kn_host.artifact_set(&artifact.base, KILN_LANG_SPIRV, "code", 4), KILN_OK);
    assert_int_equal(kn_host.artifact_set_log(&artifact.base, "a warning", 9), KILN_OK);
    set_fact(&artifact, "entries", "main\n");
    set_fact(&artifact, "empty", "");
    assert_int_equal(kn_artifact_to_blob(&artifact, "a.cl: main", &blob, NULL), KILN_OK);
    kn_span label;
    assert_true(
        kn_label_find(kn_span_of(kiln_blob_facts(blob), kiln_blob_facts_size(blob)), &label));
    assert_true(kn_span_equal(label, kn_span_of_text("a.cl: main")));
    assert_int_equal(kn_artifact_of_blob(&back, blob), KILN_OK);
    assert_int_equal(back.base.language, KILN_LANG_SPIRV);
    assert_int_equal(back.base.size, 4);
    assert_memory_equal(back.base.data, "code", 4);
    assert_string_equal(back.base.log, "a warning");
    assert_true(kn_span_equal(back.facts, artifact.facts)); /* which the next stage's key has */
    assert_fact(&back, "entries", "main\n");
    assert_fact(&back, "empty", "");
    kn_artifact_deinit(&back);
    kn_artifact_deinit(&artifact);
    kiln_blob_release(blob);
}

/* An artifact without a log has none when it has a label. */
static void a_label_is_no_log(void **state)
{
    kn_artifact artifact, back;
    kiln_blob *blob = NULL;
    kn_span label;
    kn_artifact_init(&artifact);
    kn_artifact_init(&back);
    assert_int_equal(kn_host.artifact_set(&artifact.base, KILN_LANG_NONE, "code", 4), KILN_OK);
    assert_int_equal(kn_artifact_to_blob(&artifact, "a.cl", &blob, NULL), KILN_OK);
    assert_true(
        kn_label_find(kn_span_of(kiln_blob_facts(blob), kiln_blob_facts_size(blob)), &label));
    assert_int_equal(kn_artifact_of_blob(&back, blob), KILN_OK);
    assert_null(back.base.log);
    assert_int_equal(back.facts.length, 0);
    kn_artifact_deinit(&back);
    kn_artifact_deinit(&artifact);
    kiln_blob_release(blob);
}

/* Bytes from a file are checked before they are believed. */
static void damaged_facts_are_refused(void **state)
{
    kn_artifact artifact;
    kiln_blob *blob = NULL;
    kn_artifact_init(&artifact);
    assert_int_equal(kn_host.artifact_set(&artifact.base, KILN_LANG_NONE, "code", 4), KILN_OK);
    assert_int_equal(kn_host.artifact_set_log(&artifact.base, "log", 3), KILN_OK);
    set_fact(&artifact, "name", "value");
    assert_int_equal(kn_artifact_to_blob(&artifact, NULL, &blob, NULL), KILN_OK);
    kn_artifact_deinit(&artifact);
    size_t size = kiln_blob_facts_size(blob);
    unsigned char *facts = malloc(size);
    assert_non_null(facts);
    for (size_t cut = 0; cut < size; cut++) {
        kiln_blob *bad = NULL;
        memcpy(facts, kiln_blob_facts(blob), size);
        assert_int_equal(kiln_blob_create("code", 4, facts, cut, &bad, NULL), KILN_OK);
        kiln_status status = kn_artifact_of_blob(&artifact, bad);
        /* Cut behind the log it is an artifact without facts. */
        assert_int_equal(status, cut == 20 ? KILN_OK : KILN_E_CORRUPT);
        kn_artifact_deinit(&artifact);
        kiln_blob_release(bad);
    }
    static const size_t lengths[] = {8, 20, 24}; /* log size, name length, value size */
    for (size_t i = 0; i < 3; i++) {
        kiln_blob *bad = NULL;
        memcpy(facts, kiln_blob_facts(blob), size);
        memset(facts + lengths[i], 0xFF, 4);
        assert_int_equal(kiln_blob_create("code", 4, facts, size, &bad, NULL), KILN_OK);
        assert_int_equal(kn_artifact_of_blob(&artifact, bad), KILN_E_CORRUPT);
        kiln_blob_release(bad);
    }
    free(facts);
    kiln_blob_release(blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_replaced_by_name),    cmocka_unit_test(logs_end_at_their_nul),
        cmocka_unit_test(an_entry_gives_all_of_it_back), cmocka_unit_test(a_label_is_no_log),
        cmocka_unit_test(damaged_facts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

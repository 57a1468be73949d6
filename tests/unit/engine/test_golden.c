/* A cache directory of the state before the engine: its entries are found under their keys, and
 * what frontends keep in them is read. KILN_UPDATE=1 writes tests/golden/cache-v1 anew. */
#include <string.h>
#include <sys/stat.h>

#include "core/build/stage_artifact.h"
#include "interpose/parts.h"
#include "interpose/rtc_answer.h"
#include "support/suite.h"
#include "unit/store/support.h"

static const char golden[] = KILN_GOLDEN "/cache-v1";
static const char code[] = "code of a kernel";
static const char log_text[] = "a.cu(1): warning: look out\n";

static kn_span code_span(void)
{
    return kn_span_of(code, sizeof(code) - 1);
}

/* --- what frontends keep ---------------------------------------------------------------------- */

static kiln_blob *blob_of(kn_strbuf *payload)
{
    kiln_blob *blob = NULL;
    assert_true(kn_strbuf_ok(payload));
    assert_int_equal(kiln_blob_create(payload->data, payload->length, NULL, 0, &blob, NULL),
                     KILN_OK);
    kn_strbuf_deinit(payload);
    return blob;
}

static kiln_blob *make_answer(void)
{
    kn_strbuf payload;
    kn_strbuf_init(&payload, 0);
    kn_parts_append(&payload, KN_RTC_LOG, 0, kn_span_of(log_text, sizeof(log_text)));
    kn_parts_append(&payload, KN_RTC_PTX, 0, code_span());
    kn_parts_append(&payload, KN_RTC_NAME, 0, kn_span_of_text("a.cu"));
    kn_parts_append(&payload, KN_RTC_LOWERED, 0, kn_span_of("_Z1fIiEvPi", 11));
    return blob_of(&payload);
}

static void check_answer(const kiln_blob *blob)
{
    kn_rtc_answer answer;
    assert_int_equal(
        kn_rtc_answer_parse(kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)), &answer),
        KILN_OK);
    assert_true(answer.parts[KN_RTC_PTX].known);
    assert_int_equal(answer.parts[KN_RTC_PTX].bytes.length, sizeof(code) - 1);
    assert_memory_equal(answer.parts[KN_RTC_PTX].bytes.data, code, sizeof(code) - 1);
    assert_int_equal(answer.lowered_count, 1);
    assert_string_equal(answer.lowered[0].data, "_Z1fIiEvPi");
    kn_rtc_answer_deinit(&answer);
}

static kiln_blob *make_parts(void)
{
    kn_strbuf payload;
    kn_strbuf_init(&payload, 0);
    kn_parts_append(&payload, 0, 0, code_span());
    kn_parts_append(&payload, 2, 7, kn_span_of_text("ptxas info"));
    return blob_of(&payload);
}

static void check_parts(const kiln_blob *blob)
{
    const kn_span payload = kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob));
    kn_span bytes;
    uint32_t number = 0;
    assert_true(kn_parts_are_whole(payload));
    assert_true(kn_parts_get(payload, 0, NULL, &bytes));
    assert_memory_equal(bytes.data, code, sizeof(code) - 1);
    assert_true(kn_parts_get(payload, 2, &number, &bytes));
    assert_int_equal(number, 7);
}

static kiln_blob *make_artifact(void)
{
    kn_artifact artifact;
    kiln_blob *blob = NULL;
    kn_artifact_init(&artifact);
    kn_artifact_borrow(&artifact, KILN_LANG_PTX, code_span(), log_text, kn_span_of(NULL, 0));
    assert_int_equal(kn_artifact_to_blob(&artifact, "a.cu: f", &blob, NULL), KILN_OK);
    kn_artifact_deinit(&artifact);
    return blob;
}

static void check_artifact(const kiln_blob *blob)
{
    kn_artifact artifact;
    kn_artifact_init(&artifact);
    assert_int_equal(kn_artifact_of_blob(&artifact, blob), KILN_OK);
    assert_int_equal(artifact.base.language, KILN_LANG_PTX);
    assert_int_equal(artifact.base.size, sizeof(code) - 1);
    assert_string_equal(artifact.base.log, log_text);
    kn_artifact_deinit(&artifact);
}

static const struct {
    const char *stage;
    kiln_blob *(*make)(void);
    void (*check)(const kiln_blob *blob);
} rows[] = {
    {"nvrtc.program", make_answer, check_answer},
    {"ptxas.cubin", make_parts, check_parts},
    {"cuda.ptx", make_artifact, check_artifact},
};

static kiln_recipe *recipe_of(const char *stage)
{
    kiln_recipe *recipe = NULL;
    assert_int_equal(kiln_recipe_create(stage, 1, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, "cuda-sm_90");
    kiln_recipe_add_bytes(recipe, "source", code, sizeof(code) - 1);
    return recipe;
}

/* --- the directory ---------------------------------------------------------------------------- */

static void write_golden(void)
{
    kiln_cache *cache = ks_cache(golden);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_recipe *recipe = recipe_of(rows[i].stage);
        kiln_blob *blob = rows[i].make();
        assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    kiln_cache_destroy(cache);
}

/* The entry's file, at the same place below another root. */
static void copy_entry(const char *root, const kiln_key *key)
{
    char hex[KILN_KEY_TEXT_SIZE], from[1024], to[1024];
    size_t size = 0;
    kiln_key_format(key, hex);
    (void)snprintf(from, sizeof(from), "%s/v1/cuda-sm_90/%.2s/%s.kiln", golden, hex, hex + 2);
    (void)snprintf(to, sizeof(to), "%s/v1/cuda-sm_90/%.2s", root, hex);
    assert_true(mkdir(to, 0700) == 0 || kt_file_exists(to));
    (void)snprintf(to, sizeof(to), "%s/v1/cuda-sm_90/%.2s/%s.kiln", root, hex, hex + 2);
    char *bytes = kt_file_read(from, &size);
    assert_non_null(bytes);
    kt_file_write(to, bytes, size);
    assert_int_equal(chmod(to, 0600), 0);
    free(bytes);
}

KT_TEST_IN_DIR(entries_of_the_state_before_are_found_and_read)
{
    char *root = *state;
    if (getenv("KILN_UPDATE") != NULL) {
        write_golden();
    }
    kiln_recipe *other = recipe_of("cuda.cubin");
    kiln_blob *blob = make_artifact();
    kiln_cache *cache = ks_cache(root); /* makes the directories */
    assert_int_equal(kiln_cache_put(cache, other, blob, 1, NULL), KILN_OK);
    kiln_blob_release(blob);
    kiln_recipe_destroy(other);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_recipe *recipe = recipe_of(rows[i].stage);
        const kiln_key key = kiln_recipe_key(recipe);
        kiln_origin origin = KILN_ORIGIN_NONE;
        copy_entry(root, &key);
        assert_int_equal(kiln_cache_get(cache, &key, &blob, &origin, NULL), KILN_OK);
        assert_int_equal(origin, KILN_ORIGIN_DISK);
        rows[i].check(blob);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)

/* Recipes: what changes the key, what does not, and what their text looks like. */
#include "key/recipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/binding.h>

#include "base/text.h"
#include "key/digest.h"
#include "support/failalloc.h"
#include "support/suite.h"

static kiln_recipe *start(void)
{
    kiln_recipe *recipe = NULL;
    assert_int_equal(kiln_recipe_create("test.stage", 1, &recipe, NULL), KILN_OK);
    return recipe;
}

static void text(kiln_recipe *recipe, const char *name, const char *value)
{
    kiln_recipe_add_text(recipe, name, value, strlen(value));
}

/* The key of a recipe with a list of name, value, name, value ... NULL. */
static kiln_key key_of(const char *name, ...)
{
    kiln_recipe *recipe = start();
    va_list args;
    va_start(args, name);
    for (; name != NULL; name = va_arg(args, const char *)) {
        text(recipe, name, va_arg(args, const char *));
    }
    va_end(args);
    kiln_key key = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    return key;
}

static bool same(kiln_key a, kiln_key b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

KT_TEST(K3_options_are_framed)
{
    assert_false(same(key_of("o", "ab", "o", "c", NULL), key_of("o", "a", "o", "bc", NULL)));
    assert_false(same(key_of("o", "abc", NULL), key_of("o", "ab", "o", "c", NULL)));
    assert_false(same(key_of("o", "", NULL), key_of(NULL)));
    assert_false(same(key_of("o", "", "o", "", NULL), key_of("o", "", NULL)));
    assert_false(same(key_of("o", "a", "o", "b", NULL), key_of("o", "b", "o", "a", NULL)));
    assert_false(same(key_of("ab", "c", NULL), key_of("a", "bc", NULL)));
    /* A value that spells the end of its own line and another field. */
    assert_false(same(key_of("o", "a\"\no text \"b", NULL), key_of("o", "a", "o", "b", NULL)));
    assert_false(same(key_of("o", "a\\n", NULL), key_of("o", "a\n", NULL)));
    assert_false(same(key_of("o", "\\x00", NULL), key_of("o", "\\\\x00", NULL)));
    assert_true(same(key_of("o", "a", "o", "b", NULL), key_of("o", "a", "o", "b", NULL)));
}

KT_TEST(K3_types_are_part_of_the_key)
{
    kiln_key keys[4];
    for (int i = 0; i < 4; i++) {
        kiln_recipe *recipe = start();
        switch (i) {
        case 0:
            kiln_recipe_add_text(recipe, "v", "7", 1);
            break;
        case 1:
            kiln_recipe_add_bytes(recipe, "v", "7", 1);
            break;
        case 2:
            kiln_recipe_add_u64(recipe, "v", 7);
            break;
        default:
            kiln_recipe_set_target(recipe, "7");
        }
        assert_int_equal(kiln_recipe_status(recipe, NULL), KILN_OK);
        keys[i] = kiln_recipe_key(recipe);
        kiln_recipe_destroy(recipe);
        for (int j = 0; j < i; j++) {
            assert_false(same(keys[i], keys[j]));
        }
    }
}

KT_TEST(K3_bytes_that_look_like_a_digest_do_not_collide)
{
    char *large = malloc(5000);
    assert_non_null(large);
    memset(large, 'x', 5000);
    kiln_recipe *recipe = start();
    kiln_recipe_add_text(recipe, "s", large, 5000);
    kiln_key key = kiln_recipe_key(recipe);
    /* The same characters as the long text's value, given as short text. */
    const char *value = strstr(kiln_recipe_text(recipe), "s text 5000 ");
    assert_non_null(value);
    char copy[128] = {0};
    kn_text_put(copy, sizeof copy, value + strlen("s text "));
    copy[strcspn(copy, "\n")] = '\0';
    assert_false(same(key, key_of("s", copy, NULL)));
    kiln_recipe_destroy(recipe);
    free(large);
}

KT_TEST(K4_every_byte_of_a_value_counts)
{
    enum { SIZE = 4200 }; /* long enough to be kept as a digest at its full length */
    char *value = calloc(1, SIZE);
    assert_non_null(value);
    kiln_key seen[64];
    int count = 0;
    for (size_t length = 0; length <= SIZE; length += 600) {
        for (int bit = 0; bit < 8; bit++) {
            size_t at = length > 0 ? length - 1 : 0;
            value[at] ^= (char)(1 << bit);
            kiln_recipe *recipe = start();
            kiln_recipe_add_text(recipe, "s", value, length);
            kiln_key key = kiln_recipe_key(recipe);
            for (int i = 0; length > 0 && i < count; i++) {
                assert_false(same(key, seen[i]));
            }
            if (length > 0 || bit == 0) {
                seen[count++] = key;
            }
            kiln_recipe_destroy(recipe);
            value[at] ^= (char)(1 << bit);
        }
    }
    assert_int_equal(count, 57);
    free(value);
}

KT_TEST(stage_revision_and_target_are_part_of_the_key)
{
    kiln_recipe *a = NULL, *b = NULL, *c = NULL, *d = start();
    assert_int_equal(kiln_recipe_create("test.stage", 2, &a, NULL), KILN_OK);
    assert_int_equal(kiln_recipe_create("test.stag", 1, &b, NULL), KILN_OK);
    assert_int_equal(kiln_recipe_create("test.stage", 1, &c, NULL), KILN_OK);
    kiln_recipe_set_target(c, "cuda-sm_90");
    assert_string_equal(kn_recipe_target(c), "cuda-sm_90");
    assert_string_equal(kn_recipe_target(d), "any");
    kiln_key keys[] = {kiln_recipe_key(a), kiln_recipe_key(b), kiln_recipe_key(c),
                       kiln_recipe_key(d)};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++) {
            assert_false(same(keys[i], keys[j]));
        }
    }
    kiln_recipe_destroy(a);
    kiln_recipe_destroy(b);
    kiln_recipe_destroy(c);
    kiln_recipe_destroy(d);
}

KT_TEST(the_text_is_readable_and_proves_the_key)
{
    kiln_recipe *recipe = start();
    kiln_recipe_set_target(recipe, "cpu-x86_64");
    text(recipe, "option", "-O2 \"x\"\\\n\x01\xc3\xa9");
    kiln_recipe_add_u64(recipe, "level", UINT64_MAX);
    kiln_recipe_add_bytes(recipe, "blob", "abc", 3);
    assert_string_equal(
        kiln_recipe_text(recipe),
        "kiln-recipe 1\n"
        "stage text \"test.stage\"\n"
        "revision u64 1\n"
        "target target \"cpu-x86_64\"\n"
        "option text \"-O2 \\\"x\\\"\\\\\\n\\x01\\xc3\\xa9\"\n"
        "level u64 18446744073709551615\n"
        "blob bytes 3 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n");
    uint8_t digest[KN_DIGEST_SIZE];
    kn_span span = kn_recipe_span(recipe);
    assert_true(kn_digest_of(span.data, span.length, digest));
    kiln_key key = kiln_recipe_key(recipe);
    assert_memory_equal(digest, key.bytes, sizeof digest);
    kiln_recipe_destroy(recipe);
}

KT_TEST(the_key_follows_the_fields)
{
    kiln_recipe *recipe = start();
    kiln_key before = kiln_recipe_key(recipe);
    assert_true(same(before, kiln_recipe_key(recipe)));
    text(recipe, "o", "x");
    assert_false(same(before, kiln_recipe_key(recipe)));
    kiln_recipe_destroy(recipe);
}

/* Asked after each field or once at the end, it is that of the text. */
KT_TEST(a_key_that_was_asked_for_before_is_no_other)
{
    kiln_recipe *recipe = start();
    char value[201];
    memset(value, 'v', sizeof value);
    for (size_t i = 0; i < 20; i++) {
        uint8_t digest[KN_DIGEST_SIZE];
        kiln_recipe_add_text(recipe, "o", value, i * 10);
        const kn_span span = kn_recipe_span(recipe);
        assert_true(kn_digest_of(span.data, span.length, digest));
        assert_memory_equal(kiln_recipe_key(recipe).bytes, digest, sizeof digest);
        kiln_recipe_add_bytes(recipe, "b", value, i);
    }
    kiln_recipe_destroy(recipe);
}

/* What a field of one byte among plain ones must look like. */
static size_t quote_byte(unsigned char c, char out[8])
{
    static const char named[] = "\"\\\n\t\r", letters[] = "\"\\ntr";
    const char *at = c != 0 ? strchr(named, c) : NULL;
    if (at != NULL) {
        return (size_t)snprintf(out, 8, "\\%c", letters[at - named]);
    }
    return (size_t)(c >= 0x20 && c < 0x7f ? snprintf(out, 8, "%c", c)
                                          : snprintf(out, 8, "\\x%02x", c));
}

KT_TEST(every_byte_is_quoted_wherever_it_stands)
{
    enum { LENGTH = 19 };
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < LENGTH; at++) {
            char value[LENGTH], expected[2 * LENGTH + 32] = "o text \"", quoted[8];
            memset(value, 'p', sizeof value);
            value[at] = (char)c;
            size_t used = strlen(expected);
            memset(expected + used, 'p', at);
            used += at;
            const size_t size = quote_byte((unsigned char)c, quoted);
            memcpy(expected + used, quoted, size);
            used += size;
            memset(expected + used, 'p', LENGTH - at - 1);
            used += LENGTH - at - 1;
            memcpy(expected + used, "\"\n", 3);
            kiln_recipe *recipe = start();
            const size_t before = strlen(kiln_recipe_text(recipe));
            kiln_recipe_add_text(recipe, "o", value, LENGTH);
            assert_string_equal(kiln_recipe_text(recipe) + before, expected);
            kiln_recipe_destroy(recipe);
        }
    }
}

KT_TEST(sources_are_not_kept_readable)
{
    char *source = malloc(4097);
    assert_non_null(source);
    memset(source, 's', 4097);
    kiln_recipe *recipe = start();
    kiln_recipe_add_text(recipe, "short", source, 4096);
    size_t length = strlen(kiln_recipe_text(recipe));
    assert_true(length > 4096);
    kiln_recipe_add_text(recipe, "long", source, 4097);
    assert_true(strlen(kiln_recipe_text(recipe)) < length + 100);
    kiln_recipe_destroy(recipe);
    free(source);
}

KT_TEST(names_are_checked)
{
    const uint8_t none[KN_DIGEST_SIZE] = {0};
    const char *bad[] = {
        "",    "a b",      "a\n",
        "a/b", "\xc3\xa9", "0123456789012345678901234567890123456789012345678901234567890123x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kiln_recipe *recipe = NULL;
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(kiln_recipe_create(bad[i], 1, &recipe, &diag), KILN_E_INVALID);
        assert_null(recipe);
        assert_true(diag.why[0] != '\0');
        kiln_diag_clear(&diag);

        recipe = start();
        kiln_recipe_add_text(recipe, bad[i], "", 0);
        kiln_recipe_set_target(recipe, ".."); /* the first failure is the one that is told */
        assert_int_equal(kiln_recipe_status(recipe, &diag), KILN_E_INVALID);
        assert_non_null(strstr(diag.why, "name of a field"));
        assert_memory_equal(kiln_recipe_key(recipe).bytes, none, sizeof none);
        kiln_diag_clear(&diag);
        kiln_recipe_destroy(recipe);
    }
    kiln_recipe *recipe = start();
    kiln_recipe_set_target(recipe, "..");
    assert_int_equal(kiln_recipe_status(recipe, NULL), KILN_E_INVALID);
    kiln_recipe_destroy(recipe);
    recipe = start();
    kiln_recipe_set_target(recipe, "a");
    kiln_recipe_set_target(recipe, "b");
    assert_int_equal(kiln_recipe_status(recipe, NULL), KILN_E_INVALID);
    kiln_recipe_destroy(recipe);
    recipe = start(); /* what stands for none is a name like others */
    kiln_recipe_set_target(recipe, KN_TARGET_NONE);
    kiln_recipe_set_target(recipe, "b");
    assert_int_equal(kiln_recipe_status(recipe, NULL), KILN_E_INVALID);
    kiln_recipe_destroy(recipe);
}

KT_TEST(fields_can_be_read_back)
{
    kiln_recipe *recipe = start();
    text(recipe, "o", "a b");
    kn_span rest = kn_recipe_span(recipe);
    kn_recipe_field field;
    const char *expected[][3] = {{"kiln-recipe", "1", "1"},
                                 {"stage", "text", "\"test.stage\""},
                                 {"revision", "u64", "1"},
                                 {"o", "text", "\"a b\""}};
    for (size_t i = 0; i < 4; i++) {
        assert_true(kn_recipe_next(&rest, &field));
        assert_true(kn_span_equal(field.name, kn_span_of_text(expected[i][0])));
        assert_true(kn_span_equal(field.type, kn_span_of_text(expected[i][1])));
        assert_true(kn_span_equal(field.value, kn_span_of_text(expected[i][2])));
    }
    assert_false(kn_recipe_next(&rest, &field));
    assert_int_equal(rest.length, 0);
    kiln_recipe_destroy(recipe);

    const char *bad[] = {"name", "name\n", "\n", "a b c"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rest = kn_span_of_text(bad[i]);
        assert_false(kn_recipe_next(&rest, &field));
        assert_true(rest.length > 0);
    }
}

KT_TEST(keys_have_a_text_form)
{
    kiln_key key, back;
    char hex[KILN_KEY_TEXT_SIZE];
    for (size_t i = 0; i < sizeof key.bytes; i++) {
        key.bytes[i] = (uint8_t)(i * 9);
    }
    kiln_key_format(&key, hex);
    assert_int_equal(strlen(hex), 64);
    assert_int_equal(kiln_key_parse(hex, &back, NULL), KILN_OK);
    assert_true(same(key, back));

    kiln_diag diag = KILN_DIAG_INIT;
    hex[10] = 'g';
    assert_int_equal(kiln_key_parse(hex, &back, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "character 11 "));
    hex[10] = '\0';
    assert_int_equal(kiln_key_parse(hex, &back, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "after 10 "));
    char longer[80];
    memset(longer, 'a', sizeof longer);
    longer[70] = '\0';
    assert_int_equal(kiln_key_parse(longer, &back, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "goes on after 64 "));
    kiln_diag_clear(&diag);
}

static bool make_recipe(void *user)
{
    (void)user;
    kiln_recipe *recipe = NULL;
    char *large = calloc(1, 5000);
    kiln_status status = large != NULL ? KILN_OK : KILN_E_NOMEM;
    if (status == KILN_OK) {
        status = kiln_recipe_create("s", 1, &recipe, NULL);
    }
    if (status == KILN_OK) {
        kiln_recipe_add_text(recipe, "a", large, 4000);
        kiln_recipe_add_text(recipe, "b", large, 5000);
        status = kiln_recipe_status(recipe, NULL);
    }
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    kiln_recipe_destroy(recipe);
    free(large);
    return status == KILN_OK;
}

static bool copy_recipe(void *user)
{
    kiln_recipe *copy = NULL;
    const kiln_status status = kiln_recipe_copy(user, &copy, NULL);
    assert_true(status == KILN_OK || (status == KILN_E_NOMEM && copy == NULL));
    kiln_recipe_destroy(copy);
    return status == KILN_OK;
}

/* PYTHON_AND_DOCS P1: two owners of one recipe freed it twice. */
KT_TEST(a_copy_is_a_recipe_of_its_own)
{
    kiln_recipe *recipe = start(), *copy = NULL;
    kiln_recipe_set_target(recipe, "here");
    text(recipe, "source", "a");
    const kiln_key before = kiln_recipe_key(recipe);
    assert_int_equal(kiln_recipe_copy(recipe, &copy, NULL), KILN_OK);
    assert_string_equal(kiln_recipe_text(copy), kiln_recipe_text(recipe));
    assert_string_equal(kn_recipe_target(copy), "here");
    kiln_key key = kiln_recipe_key(copy);
    assert_memory_equal(&key, &before, sizeof key);
    text(copy, "x", "b");
    key = kiln_recipe_key(recipe);
    assert_memory_equal(&key, &before, sizeof key);
    text(recipe, "x", "b");
    key = kiln_recipe_key(recipe);
    const kiln_key copied = kiln_recipe_key(copy);
    assert_memory_equal(&key, &copied, sizeof key);
    kiln_recipe_set_target(copy, "there");
    assert_int_equal(kiln_recipe_status(copy, NULL), KILN_E_INVALID);
    kiln_recipe *broken = NULL;
    assert_int_equal(kiln_recipe_copy(copy, &broken, NULL), KILN_OK);
    assert_int_equal(kiln_recipe_status(broken, NULL), KILN_E_INVALID);
    assert_int_equal(kiln_recipe_status(recipe, NULL), KILN_OK);
    assert_true(kt_failalloc_each(copy_recipe, recipe) > 1);
    kiln_recipe_destroy(broken);
    kiln_recipe_destroy(copy);
    kiln_recipe_destroy(recipe);
}

KT_TEST(recipes_survive_failing_allocations)
{
    assert_true(kt_failalloc_each(make_recipe, NULL) > 3);
}

KT_MAIN(NULL, NULL)

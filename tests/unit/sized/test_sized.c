/* Structs that carry their own size, from programs that are older and newer than the library. */
#include "sized/sized.h"

#include <kiln/cuda.h>
#include <kiln/hip.h>
#include <kiln/kiln.h>
#include <kiln/opencl.h>
#include <kiln/sys/remote.h>
#include <kiln/unstable/admin.h>
#include <kiln/unstable/claim.h>
#include <kiln/unstable/executor.h>
#include <kiln/unstable/opengl.h>
#include <kiln/unstable/pack.h>
#include <kiln/unstable/probe.h>
#include <kiln/unstable/tune.h>
#include <kiln/unstable/warm.h>
#include <kiln/vulkan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/suite.h"

#define MORE ((size_t)24) /* what a newer caller's struct has besides */

/* How large each struct was in 0.1.0, with 8-byte pointers: what is published cannot change. */
#define PUBLISHED(X)                                                                               \
    X(kiln_runtime_options, 59, 64)                                                                \
    X(kiln_cache_options, 57, 96)                                                                  \
    X(kiln_claim_options, 32, 32)                                                                  \
    X(kiln_source, 136, 136)                                                                       \
    X(kiln_build_options, 56, 56)                                                                  \
    X(kiln_launch, 124, 128)                                                                       \
    X(kiln_variant, 160, 160)                                                                      \
    X(kiln_kernel, 64, 64)                                                                         \
    X(kiln_tune_options, 88, 88)                                                                   \
    X(kiln_warm_options, 32, 32)                                                                   \
    X(kiln_warm_state, 56, 56)                                                                     \
    X(kiln_executor_options, 24, 24)                                                               \
    X(kiln_work, 144, 144)                                                                         \
    X(kiln_executor_stats, 120, 120)                                                               \
    X(kiln_pack_writer_options, 24, 24)                                                            \
    X(kiln_nvrtc_request, 72, 72)                                                                  \
    X(kiln_hiprtc_request, 72, 72)                                                                 \
    X(kiln_opencl_unit, 56, 56)                                                                    \
    X(kiln_opencl_request, 80, 80)                                                                 \
    X(kiln_vulkan_device, 40, 40)                                                                  \
    X(kiln_opengl_options, 48, 48)                                                                 \
    X(kiln_remote_module_ops, 112, 112)                                                            \
    X(kiln_prune_options, 32, 32)                                                                  \
    X(kiln_prune_result, 48, 48)                                                                   \
    X(kiln_verify_result, 32, 32)                                                                  \
    X(kiln_probe_report, 1977, 1984)                                                               \
    X(kiln_build_info, 104, 104)                                                                   \
    X(kiln_pack_info, 65, 72)                                                                      \
    X(kiln_pack_copied, 32, 32)                                                                    \
    X(kiln_tune_row, 432, 432)                                                                     \
    X(kiln_tuning, 80, 80)

static const struct {
    kn_sized_facts now;
    size_t first, size;
} published[] = {
#define PUBLISHED_ROW(type, first, size) {KN_SIZED_FACTS(type, KN_SIZED_LAST_##type), first, size},
    PUBLISHED(PUBLISHED_ROW)
#undef PUBLISHED_ROW
};
enum { PUBLISHED_COUNT = sizeof published / sizeof published[0] };

KT_TEST(what_is_published_stays)
{
    for (int i = 0; i < PUBLISHED_COUNT; i++) {
        const kn_sized_facts *facts = &published[i].now;
        assert_true(facts->size >= facts->first);
        if (sizeof(void *) == 8) {
            assert_int_equal(facts->first, published[i].first);
            assert_true(facts->size >= published[i].size);
        }
    }
}

/* --- one -------------------------------------------------------------------------------------- */

typedef struct sample {
    const kn_sized_facts *facts;
    unsigned char *given; /* a caller's struct: malloc'ed, so that a read past it is found */
    unsigned char *room;
} sample;

static void put_size(const kn_sized_facts *facts, void *to, size_t size)
{
    memcpy((char *)to + facts->size_at, &size, sizeof size);
}

static size_t get_size(const kn_sized_facts *facts, const void *from)
{
    size_t size = 0;
    memcpy(&size, (const char *)from + facts->size_at, sizeof size);
    return size;
}

/* `size` bytes of something, what this library does not know of it zero. */
static sample sample_of(int kind, size_t size)
{
    sample s = {.facts = &published[kind].now};
    s.given = malloc(size);
    s.room = malloc(s.facts->size);
    assert_non_null(s.given);
    assert_non_null(s.room);
    memset(s.room, 0xee, s.facts->size);
    memset(s.given, 0, size);
    memset(s.given, 0x55, size < s.facts->size ? size : s.facts->size);
    put_size(s.facts, s.given, size);
    return s;
}

static void sample_end(sample *s)
{
    free(s->given);
    free(s->room);
}

/* What is expected at `i` of a view of a struct of `size`. */
static unsigned char byte_at(const kn_sized_facts *facts, size_t size, size_t i)
{
    const unsigned char *own = (const unsigned char *)&facts->size;
    if (i >= facts->size_at && i < facts->size_at + sizeof(size_t)) {
        return own[i - facts->size_at];
    }
    return i < size ? 0x55 : 0;
}

static void expect_view(int kind, size_t size)
{
    sample s = sample_of(kind, size);
    kiln_diag diag = KILN_DIAG_INIT;
    const unsigned char *view = kn_sized_view(&published[kind].now, s.given, s.room, &diag);
    assert_non_null(view);
    assert_true(size == s.facts->size ? view == s.given : view == s.room);
    for (size_t i = 0; i < s.facts->size; i++) {
        assert_int_equal(view[i], byte_at(s.facts, size, i));
    }
    assert_int_equal(diag.status, KILN_OK);
    sample_end(&s);
}

KT_TEST(both_directions_are_taken)
{
    for (int i = 0; i < PUBLISHED_COUNT; i++) {
        const kn_sized_facts *facts = &published[i].now;
        expect_view(i, facts->first);
        expect_view(i, facts->size);
        expect_view(i, facts->size + 1);
        expect_view(i, facts->size + MORE);
        expect_view(i, facts->size + KN_SIZED_GROWTH_MAX);
    }
}

static void expect_refused(int kind, sample *s, const char *why)
{
    kiln_diag diag = KILN_DIAG_INIT;
    assert_null(kn_sized_view(&published[kind].now, s->given, s->room, &diag));
    assert_int_equal(diag.status, KILN_E_INVALID);
    assert_string_equal(diag.what, s->facts->name);
    assert_true(diag.fix[0] != '\0');
    assert_non_null(strstr(diag.why, why));
    kiln_diag_clear(&diag);
    assert_null(kn_sized_view(&published[kind].now, s->given, s->room, NULL));
}

KT_TEST(sizes_that_nobody_set_are_refused)
{
    for (int i = 0; i < PUBLISHED_COUNT; i++) {
        const kn_sized_facts *facts = &published[i].now;
        const size_t sizes[] = {0, 1, facts->first - 1, facts->size + KN_SIZED_GROWTH_MAX + 1,
                                SIZE_MAX};
        sample s = sample_of(i, facts->size);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            put_size(facts, s.given, sizes[k]); /* and nothing behind the struct is looked at */
            expect_refused(i, &s, "struct_size");
        }
        sample_end(&s);
    }
}

KT_TEST(what_is_not_known_must_be_zero)
{
    for (int i = 0; i < PUBLISHED_COUNT; i++) {
        const kn_sized_facts *facts = &published[i].now;
        char both[64];
        for (size_t at = 0; at < MORE; at += MORE - 1) {
            sample s = sample_of(i, facts->size + MORE);
            s.given[facts->size + at] = 1;
            expect_refused(i, &s, "newer than this library");
            (void)snprintf(both, sizeof both, "%zu bytes", facts->size + MORE);
            expect_refused(i, &s, both);
            (void)snprintf(both, sizeof both, "knows %zu", facts->size);
            expect_refused(i, &s, both);
            assert_int_equal(s.room[0], 0xee); /* nothing was taken */
            sample_end(&s);
        }
    }
}

/* --- lists ------------------------------------------------------------------------------------ */

#define ITEMS ((size_t)3)

/* Lists of kiln_source: its text, say, is marked by its first byte after struct_size. */
static unsigned char *list_of(const kn_sized_facts *facts, size_t apart)
{
    unsigned char *list = calloc(ITEMS, apart);
    assert_non_null(list);
    for (size_t i = 0; i < ITEMS; i++) {
        put_size(facts, list + i * apart, apart);
        list[i * apart + sizeof(size_t)] = (unsigned char)(i + 1);
    }
    return list;
}

KT_TEST(a_list_lies_as_its_maker_laid_it)
{
    const kn_sized_facts *facts = KN_SIZED(kiln_source);
    const size_t sizes[] = {facts->first, facts->size, facts->size + MORE};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        unsigned char *given = list_of(facts, sizes[k]);
        const void *list = NULL;
        void *copy = NULL;
        assert_int_equal(kn_sized_list(KN_SIZED(kiln_source), given, ITEMS, &list, &copy, NULL),
                         KILN_OK);
        assert_true(sizes[k] == facts->size ? list == given && copy == NULL : list == copy);
        for (size_t i = 0; i < ITEMS; i++) {
            const unsigned char *item = (const unsigned char *)list + i * facts->size;
            assert_int_equal(get_size(facts, item), facts->size);
            assert_int_equal(item[sizeof(size_t)], i + 1);
        }
        free(copy);
        free(given);
    }
}

static void expect_no_list(const void *given, size_t count)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const void *list = given;
    void *copy = &diag;
    assert_int_equal(kn_sized_list(KN_SIZED(kiln_source), given, count, &list, &copy, &diag),
                     KILN_E_INVALID);
    assert_null(list);
    assert_null(copy);
    assert_string_equal(diag.what, "kiln_source");
    kiln_diag_clear(&diag);
}

KT_TEST(lists_that_make_no_sense_are_refused)
{
    const kn_sized_facts *facts = KN_SIZED(kiln_source);
    const void *list = NULL;
    void *copy = NULL;
    assert_int_equal(kn_sized_list(KN_SIZED(kiln_source), NULL, 0, &list, &copy, NULL), KILN_OK);
    expect_no_list(NULL, 1);
    for (size_t apart = facts->size; apart <= facts->size + MORE; apart += MORE) {
        unsigned char *given = list_of(facts, apart);
        put_size(facts, given + 2 * apart, apart + 8); /* not as far apart as the others */
        expect_no_list(given, ITEMS);
        put_size(facts, given + 2 * apart, 0);
        expect_no_list(given, ITEMS);
        put_size(facts, given, 0);
        expect_no_list(given, ITEMS);
        free(given);
    }
    unsigned char *given = list_of(facts, facts->size + MORE);
    given[2 * (facts->size + MORE) + facts->size] = 1;
    expect_no_list(given, ITEMS);
    free(given);
}

/* --- what the library fills ------------------------------------------------------------------- */

KT_TEST(nothing_is_written_past_the_callers_struct)
{
    for (int i = 0; i < PUBLISHED_COUNT; i++) {
        const kn_sized_facts *facts = &published[i].now;
        const size_t sizes[] = {facts->first, facts->size, facts->size + MORE};
        unsigned char *value = malloc(facts->size);
        assert_non_null(value);
        memset(value, 0x77, facts->size);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            unsigned char *out = malloc(sizes[k] + 8);
            assert_non_null(out);
            memset(out, 0xee, sizes[k] + 8);
            put_size(facts, out, sizes[k]);
            assert_int_equal(kn_sized_give(facts, value, out, NULL), KILN_OK);
            assert_int_equal(get_size(facts, out), sizes[k]);
            for (size_t b = facts->size_at + sizeof(size_t); b < sizes[k] + 8; b++) {
                const int expected = b >= sizes[k] ? 0xee : b >= facts->size ? 0 : 0x77;
                assert_int_equal(out[b], expected);
            }
            put_size(facts, out, facts->first - 1);
            assert_int_equal(kn_sized_give(facts, value, out, NULL), KILN_E_INVALID);
            assert_int_equal(get_size(facts, out), facts->first - 1);
            put_size(facts, out, sizes[k]);
            assert_int_equal(kn_sized_begin(facts, out, value, NULL), KILN_OK);
            for (size_t b = 0; b < sizes[k] + 8; b++) {
                const bool of_size = b - facts->size_at < sizeof(size_t);
                assert_true(of_size || out[b] == (b >= sizes[k] ? 0xee : 0));
                assert_true(of_size || b >= facts->size || value[b] == 0);
            }
            assert_int_equal(get_size(facts, value), facts->size);
            memset(value, 0x77, facts->size);
            free(out);
        }
        free(value);
    }
}

KT_MAIN(NULL, NULL)

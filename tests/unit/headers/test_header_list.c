/* The bytes of a header list: what is written is read, what is damaged is refused, and the rule by
 * which a stamp is trusted. */
#include "headers/header_list.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "base/checked.h"
#include "support/failalloc.h"

#define SECOND INT64_C(1000000000)

/* One header and two absent places, in two directories. */
static bool fill(kn_header_list *list)
{
    kn_header_list_init(list);
    list->recorded_ns = 1700000000 * SECOND;
    memset(list->graph, 0xAB, sizeof list->graph);
    kn_header_list_header header = {
        .place = {.base = KN_PLACE_INCLUDE, .index = 3, .name_length = 7},
        .written_length = 5,
        .stamp = {10, -20, 30, 40, 0, 0, 0},
        .digest = {1, 2, 3}};
    kn_place beside = {.base = KN_PLACE_DIR, .name_length = 5};
    kn_place ships = {.base = KN_PLACE_SHIPS, .name_length = 8};
    return kn_header_list_add_name(list, kn_span_of_text("sub/a.h"), &header.place.name) &&
           kn_header_list_add_name(list, kn_span_of_text("../a."), &header.written) &&
           kn_header_list_add_name(list, kn_span_of_text("../a."), &beside.name) &&
           kn_header_list_add_name(list, kn_span_of_text("stdlib.h"), &ships.name) &&
           kn_header_list_add_header(list, &header) && kn_header_list_add_absent(list, &beside) &&
           kn_header_list_add_absent(list, &ships) && kn_header_list_group(list);
}

static kn_strbuf sample(void)
{
    kn_header_list list;
    assert_true(fill(&list));
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    kn_header_list_write(&list, true, &bytes);
    assert_true(kn_strbuf_ok(&bytes));
    kn_header_list_deinit(&list);
    return bytes;
}

static void what_is_written_is_read(void **state)
{
    kn_strbuf bytes = sample();
    kn_header_list read;
    assert_int_equal(kn_header_list_parse(kn_span_of(bytes.data, bytes.length), &read), KILN_OK);
    assert_int_equal(read.recorded_ns, 1700000000 * SECOND);
    assert_int_equal(read.graph[31], 0xAB);
    assert_int_equal(read.header_count, 1);
    assert_int_equal(read.absent_count, 2);
    const kn_header_list_header *header = &read.headers[0];
    assert_int_equal(header->place.base, KN_PLACE_INCLUDE);
    assert_int_equal(header->place.index, 3);
    assert_string_equal(kn_header_list_name(&read, header->place.name), "sub/a.h");
    assert_string_equal(kn_header_list_name(&read, header->written), "../a.");
    assert_int_equal(header->stamp.size, 10);
    assert_int_equal(header->stamp.mtime_ns, -20);
    assert_int_equal(header->stamp.ctime_ns, 30);
    assert_int_equal(header->stamp.inode, 40);
    assert_int_equal(header->digest[2], 3);
    assert_int_equal(read.absent[1].base, KN_PLACE_SHIPS);
    assert_string_equal(kn_header_list_name(&read, read.absent[1].name), "stdlib.h");
    assert_int_equal(read.dir_count, 2);
    assert_int_equal(header->place.dir, 1);
    assert_int_equal(read.dirs[0].length, 4); /* "sub/" */
    assert_int_equal(read.dirs[0].first_header, 1);
    assert_int_equal(read.absent[0].dir, 2);
    assert_int_equal(read.dirs[1].length, 3); /* "../" */
    assert_int_equal(read.absent[1].dir, 0);  /* in no file system */
    kn_header_list_deinit(&read);
    kn_strbuf_deinit(&bytes);
}

static void rows_of_a_dir_are_joined(void **state)
{
    static const char *const names[] = {"a/x.h", "x.h", "a/y.h", "b/a/x.h", "y.h", "a/z.h", "a/"};
    static const uint32_t dirs[] = {1, 2, 1, 3, 2, 1, 0};
    static const uint32_t next[] = {3, 5, 6, 0, 0, 0, 0};
    kn_header_list list;
    kn_header_list_init(&list);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        kn_place place = {.base = KN_PLACE_INCLUDE, .name_length = (uint32_t)strlen(names[i])};
        assert_true(kn_header_list_add_name(&list, kn_span_of_text(names[i]), &place.name));
        assert_true(kn_header_list_add_absent(&list, &place));
    }
    assert_true(kn_header_list_group(&list));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(list.absent[i].dir, dirs[i]);
        assert_int_equal(list.absent[i].next, next[i]);
    }
    kn_header_list_deinit(&list);
}

/* Parses a copy of exactly `length` bytes and releases what came. */
static kiln_status parse_copy(const char *data, size_t length)
{
    char *copy = malloc(length + (length == 0));
    assert_non_null(copy);
    memcpy(copy, data, length);
    kn_header_list read;
    kiln_status status = kn_header_list_parse(kn_span_of(copy, length), &read);
    kn_header_list_deinit(&read);
    free(copy);
    return status;
}

static void a_header_list_of_any_other_length_is_refused(void **state)
{
    kn_strbuf bytes = sample();
    for (size_t length = 0; length < bytes.length; length++) {
        assert_int_equal(parse_copy(bytes.data, length), KILN_E_CORRUPT);
    }
    size_t whole = bytes.length;
    kn_strbuf_append_char(&bytes, '\0');
    assert_int_equal(parse_copy(bytes.data, whole + 1), KILN_E_CORRUPT);
    kn_strbuf_deinit(&bytes);
}

static void numbers_out_of_range_are_refused(void **state)
{
    /* offset of a 32-bit field, a value that must not pass */
    static const struct {
        size_t at;
        uint32_t value;
    } bad[] = {
        {0, 2}, /* version */
        {4, 2},     {4, 0xFFFFFFFF}, {8, 0},           {8, 0xFFFFFFFF},   {12, 0xFFFFFFFF},
        {56, 0},    {56, 1},         {56, 0xFFFFFFFF}, {60, 4}, /* flags */
        {64, 5},                                                /* a header that ships */
        {64, 6},                                                /* no such base */
        {64, 1},                                                /* not its directory's base */
        {68, 2},                                                /* nor its index */
        {72, 1},    {72, 28},        {72, 0xFFFFFFFF}, {76, 0},           {76, 4},
        {76, 6},    {76, 8},         {76, 0xFFFFFFFF}, {80, 2}, /* a directory that it is not in */
        {80, 3},                                                /* no such directory */
        {84, 1},                                                /* reserved */
        {88, 1000}, {92, 0},         {176, 6},         {184, 0x7FFFFFFF}, {188, 4},
        {192, 1},   {208, 9},        {216, 1},         {224, 0}, /* a directory in memory */
        {224, 5},   {224, 6},        {232, 100},       {236, 3},          {236, 0xFFFFFFFF},
    };
    kn_strbuf bytes = sample();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t good = kn_get_u32(bytes.data + bad[i].at);
        assert_int_not_equal(good, bad[i].value);
        kn_put_u32(bytes.data + bad[i].at, bad[i].value);
        assert_int_equal(parse_copy(bytes.data, bytes.length), KILN_E_CORRUPT);
        kn_put_u32(bytes.data + bad[i].at, good);
    }
    assert_int_equal(parse_copy(bytes.data, bytes.length), KILN_OK);
    kn_strbuf_deinit(&bytes);
}

static void any_flipped_bit_is_read_within_bounds(void **state)
{
    kn_strbuf bytes = sample();
    size_t refused = 0;
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ (1 << bit % 8));
        refused += parse_copy(bytes.data, bytes.length) == KILN_E_CORRUPT;
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ (1 << bit % 8));
    }
    assert_true(refused > 0);
    kn_strbuf_deinit(&bytes);
}

static bool fill_and_parse(void *user)
{
    kn_header_list list;
    bool filled = fill(&list);
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    kn_header_list_write(&list, true, &bytes);
    kn_header_list_deinit(&list);
    bool good = filled && kn_strbuf_ok(&bytes);
    if (good) {
        kn_header_list read;
        kiln_status status = kn_header_list_parse(kn_span_of(bytes.data, bytes.length), &read);
        assert_true(status == KILN_OK || status == KILN_E_NOMEM);
        kn_header_list_deinit(&read);
        good = status == KILN_OK;
    }
    kn_strbuf_deinit(&bytes);
    return good;
}

static void every_allocation_may_fail(void **state)
{
    assert_true(kt_failalloc_each(fill_and_parse, NULL) > 5);
}

static void K6_a_stamp_is_trusted_only_when_it_can_be(void **state)
{
    const int64_t now = 1700000000 * SECOND;
    const kn_stamp old = {100, now - 10 * SECOND, now - 9 * SECOND, 7, 8, 9, 0644};
    assert_true(kn_stamp_holds(&old, &old, now));

    kn_stamp other = old;
    other.size++;
    assert_false(kn_stamp_holds(&old, &other, now));
    other = old;
    other.device++; /* another image, with the same times and inodes */
    assert_false(kn_stamp_holds(&old, &other, now));
    other = old;
    other.owner++;
    assert_false(kn_stamp_holds(&old, &other, now));
    other = old;
    other.mode = 0600;
    assert_false(kn_stamp_holds(&old, &other, now));
    other = old;
    other.mtime_ns++;
    assert_false(kn_stamp_holds(&old, &other, now));
    other = old;
    other.ctime_ns++; /* mtime put back by hand: utimensat cannot set ctime */
    assert_false(kn_stamp_holds(&old, &other, now));
    other = old;
    other.inode++;
    assert_false(kn_stamp_holds(&old, &other, now));

    const int64_t bad[] = {0,
                           1,
                           SECOND,
                           SECOND + 999999999,
                           now,
                           now - SECOND,
                           now - 2 * SECOND,
                           now + 3600 * SECOND,
                           INT64_MAX,
                           INT64_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kn_stamp stamp = old;
        stamp.mtime_ns = bad[i];
        assert_false(kn_stamp_holds(&stamp, &stamp, now));
        stamp = old;
        stamp.ctime_ns = bad[i];
        assert_int_equal(kn_stamp_holds(&stamp, &stamp, now), bad[i] == 0);
    }
    assert_false(kn_stamp_holds(&old, &old, INT64_MIN));
    assert_false(kn_stamp_holds(&old, &old, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(rows_of_a_dir_are_joined),
        cmocka_unit_test(a_header_list_of_any_other_length_is_refused),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(any_flipped_bit_is_read_within_bounds),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(K6_a_stamp_is_trusted_only_when_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

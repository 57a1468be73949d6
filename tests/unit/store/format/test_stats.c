/* Counters and totals: that they add up over objects, and what happens to a damaged record. */
#include "unit/store/support.h"

#include "base/checked.h"
#include "store/format/stats.h"
#include "support/counters.h"
#include "support/suite.h"
#include "sys/clock.h"

static void fill(kn_record *record)
{
    *record = (kn_record){.files = 3,
                          .bytes = 12288,
                          .counted_ns = INT64_C(1700000000000000001),
                          .swept_ns = INT64_C(1700000000000000002),
                          .created_ns = INT64_C(1700000000000000003)};
    for (size_t i = 0; i < KN_RECORD_COUNTERS; i++) {
        record->counters[i] = i * i;
    }
    unsigned char tail[8 * 5];
    for (size_t i = 0; i < 5; i++) {
        const uint64_t at = KN_RECORD_COUNTERS + i;
        kn_put_u64(tail + 8 * i, at * at);
    }
    record->writer = kn_get_u32(tail);
    for (size_t i = 0; i < KN_RECORD_COPIES; i++) {
        record->copied[i] = kn_get_u32(tail + 4 + 4 * i);
    }
}

KT_TEST(the_golden_record_stays_readable_for_ever)
{
    kn_record record, back;
    unsigned char bytes[KN_RECORD_SIZE];
    char *path = kt_at(KILN_GOLDEN, "stats-v1");
    size_t size = 0;
    fill(&record);
    kn_record_write(&record, bytes);
    if (getenv("KILN_UPDATE") != NULL) {
        kt_file_write(path, bytes, sizeof bytes);
    }
    char *golden = kt_file_read(path, &size);
    assert_non_null(golden);
    assert_int_equal(size, sizeof bytes);
    assert_memory_equal(golden, bytes, sizeof bytes);
    assert_int_equal(kn_record_parse(kn_span_of(golden, size), &back), KILN_OK);
    assert_memory_equal(&record, &back, sizeof back);
    free(golden);
}

KT_TEST(every_flipped_bit_and_truncation_is_found)
{
    kn_record record;
    unsigned char bytes[KN_RECORD_SIZE];
    fill(&record);
    kn_record_write(&record, bytes);
    for (size_t at = 0; at < sizeof bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1 << bit);
            assert_int_equal(kn_record_parse(kn_span_of(bytes, sizeof bytes), &record),
                             KILN_E_CORRUPT);
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    for (size_t size = 0; size < sizeof bytes; size++) {
        assert_int_equal(kn_record_parse(kn_span_of(bytes, size), &record), KILN_E_CORRUPT);
    }
}

KT_TEST_IN_DIR(stats_add_up_over_objects)
{
    ks_compile compile = {0};
    kt_counters total;
    kiln_cache *a = ks_cache(*state), *b = ks_cache(*state);
    (void)ks_get(a, "x", &compile);
    (void)ks_get(a, "x", &compile);
    (void)ks_get(b, "x", &compile);
    (void)ks_get(b, "y", &compile);
    assert_int_equal(kt_counters_total(b, &total, NULL), KILN_OK);
    kiln_cache_destroy(a);
    kiln_cache_destroy(b);

    kiln_cache *c = ks_cache(*state);
    assert_int_equal(kt_counters_total(c, &total, NULL), KILN_OK);
    assert_int_equal(total.compiles, 2);
    assert_int_equal(total.misses, 2);
    assert_int_equal(total.puts, 2);
    assert_int_equal(total.hits_memory, 1);
    assert_int_equal(total.hits_disk, 1);
    assert_true(total.compile_ns > 0);
    assert_true(total.saved_ns > 0);
    kt_counters own;
    kt_counters_own(c, &own);
    assert_int_equal(own.compiles, 0);
    kiln_cache_destroy(c);
}

KT_TEST_IN_DIR(D6_hits_are_not_lost_with_a_process_that_never_ends_well)
{
    ks_compile compile = {0};
    kt_counters total;
    kiln_cache *a = ks_cache(*state);
    (void)ks_get(a, "x", &compile);
    (void)ks_get(a, "y", &compile);
    kiln_cache *b = ks_cache(*state); /* never destroyed before the look */
    (void)ks_get(b, "x", &compile);
    kn_clock_sleep(150 * 1000000ULL); /* a start is over by then; its hits go with the next one */
    (void)ks_get(b, "y", &compile);
    assert_int_equal(kt_counters_total(a, &total, NULL), KILN_OK);
    assert_int_equal(total.hits_disk, 2);
    kiln_cache_destroy(a);
    kiln_cache_destroy(b);
}

KT_TEST_IN_DIR(a_damaged_record_starts_again_and_is_counted)
{
    ks_compile compile = {0};
    kt_counters total;
    char *path = kt_at(*state, "stats");
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    kt_file_write(path, "garbage garbage garbage", 23);
    (void)ks_get(cache, "y", &compile);
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(total.compiles, 1);
    char bad[KN_RECORD_SIZE] = "still garbage";
    kt_file_write(path, bad, sizeof bad);
    (void)ks_get(cache, "z", &compile);
    assert_int_equal(ks_own(cache).io_errors, 1);
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(total.compiles, 1);
    assert_int_equal(total.io_errors, 1);
    kiln_cache_destroy(cache);

    /* Totals are known again: a process counted. */
    size_t size;
    kn_record record;
    char *bytes = kt_file_read(path, &size);
    assert_int_equal(kn_record_parse(kn_span_of(bytes, size), &record), KILN_OK);
    assert_int_equal(record.files, 3);
    assert_true(record.counted_ns > 0);
    free(bytes);
}

KT_MAIN(NULL, NULL)

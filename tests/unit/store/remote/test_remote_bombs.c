/* Answers of a remote that are small on the wire and large in memory, slow to unpack, damaged, or
 * not for this machine: what they cost, and what it costs the server. */
#include "unit/store/remote/memory_server.h"

#include <sys/resource.h>

#include "store/format/blob.h"
#include "store/format/entry.h"
#include "store/remote/packet.h"
#include "support/suite.h"

#define MIB ((size_t)1 << 20)

/* A packet of so many zeros: some kilobytes. */
static void serve_bomb(const kiln_key *key, size_t unpacked)
{
    size_t size = 0;
    char *zeros = calloc(1, unpacked); /* never touched: it takes no memory here */
    assert_non_null(zeros);
    void *packet = kn_packet_make(kn_span_of(zeros, unpacked), 0, &size);
    free(zeros);
    assert_non_null(packet);
    assert_true(size < MIB);
    serve(key, packet, size);
}

/* An entry whose payload is packed: `size` zeros. */
static kiln_key serve_entry(const char *stage, size_t size)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    void *data = NULL;
    size_t bytes = 0;
    char *zeros = calloc(1, size);
    assert_non_null(zeros);
    assert_int_equal(kiln_recipe_create(stage, 1, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, "test-target");
    assert_int_equal(kiln_blob_create(zeros, size, NULL, 0, &blob, NULL), KILN_OK);
    const kiln_key key = kiln_recipe_key(recipe);
    const kn_entry_request request = {
        .key = &key, .recipe = kn_recipe_span(recipe), .blob = blob, .compress = true};
    assert_int_equal(kn_entry_bytes(&request, 0, &data, &bytes, NULL), KILN_OK);
    serve(&key, data, bytes);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    free(zeros);
    return key;
}

static size_t most_memory(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (size_t)usage.ru_maxrss << 10;
}

#define TEST(name) KT_TEST_WITH(setup, teardown, name)

TEST(D4_no_room_is_made_for_more_than_the_limit)
{
    fixture *f = *state;
    const kiln_key key = {{1}};
    open_remote(f, "fake://h?timeout=20s&max-bytes=1M");
    serve_bomb(&key, 400 * MIB);
    const size_t before = most_memory();
    assert_int_equal(get_key(f, &key), KILN_MISS);
    assert_true(most_memory() - before < 32 * MIB);
    assert_int_equal(server.gets, 1);
    assert_int_equal(count(f, KN_COUNT_remote_errors), 1);
    assert_int_equal(count(f, KN_COUNT_corrupt), 0); /* an upload does not replace it */
}

TEST(D4_the_payload_counts_unpacked)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=20s&max-bytes=1M");
    kiln_key key = serve_entry("stage", 8 * MIB);
    assert_true(server.sizes[0] < 64 << 10);
    assert_int_equal(get_key(f, &key), KILN_MISS);
    assert_int_equal(count(f, KN_COUNT_remote_errors), 1);
    close_remotes(f);
    open_remote(f, "fake://h?timeout=20s&max-bytes=16M");
    assert_int_equal(get_key(f, &key), KILN_OK);
}

/* The same bound for both: what one takes, another gives. */
TEST(D4_what_is_given_is_within_the_limit_of_what_is_taken)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=20s&max-bytes=1M&flush=20s");
    for (size_t size = MIB - 4096; size <= MIB + 4096; size += 1024) {
        char *zeros = calloc(1, size);
        kiln_blob *blob = NULL;
        assert_non_null(zeros);
        assert_int_equal(kiln_blob_create(zeros, size, "facts", 5, &blob, NULL), KILN_OK);
        kiln_recipe *recipe = ks_recipe("one");
        const kiln_key key = kiln_recipe_key(recipe);
        const kn_tier_put what = {
            .key = &key, .target = "test-target", .recipe = kn_recipe_span(recipe), .blob = blob};
        const int puts = server.puts;
        assert_int_equal(kn_remote_tier(f->remote)->put(f->remote, &what, NULL), KILN_OK);
        kn_remote_flush(f->remote);
        kn_remote_forget_miss(f->remote, &key);
        if (server.puts > puts) {
            assert_int_equal(get_key(f, &key), KILN_OK);
            free(server.data[0]);
            server.data[0] = NULL;
        }
        assert_int_equal(server.puts > puts, size < MIB - 256);
        kiln_recipe_destroy(recipe);
        kiln_blob_release(blob);
        free(zeros);
    }
}

TEST(D4_what_takes_long_to_unpack_is_given_up)
{
    fixture *f = *state;
    const kiln_key key = {{1}}, another = {{2}};
    open_remote(f, "fake://h?timeout=4ms&connect-timeout=4ms&max-bytes=511M");
    serve_bomb(&key, 480 * MIB);
    const size_t before = most_memory();
    while (count(f, KN_COUNT_remote_bytes_in) == 0) { /* a busy machine may be late itself */
        kn_remote_forget_miss(f->remote, &key);
        kn_breaker_worked(&f->remote->reads);
        assert_int_equal(get_key(f, &key), KILN_MISS);
    }
    assert_true(most_memory() - before < 400 * MIB);
    assert_true(count(f, KN_COUNT_remote_timeouts) > 0);
    assert_int_equal(count(f, KN_COUNT_corrupt), 0);
    /* And the server is left alone. */
    assert_true(f->remote->answers.open);
    const int gets = server.gets;
    assert_int_equal(get_key(f, &another), KILN_MISS);
    assert_int_equal(server.gets, gets);
}

TEST(D4_a_server_of_bad_answers_is_left_alone)
{
    fixture *f = *state;
    kiln_key key = {{9}};
    open_remote(f, "fake://h?timeout=20s");
    for (int i = 0; i < 5; i++) {
        key.bytes[1] = (uint8_t)i;
        serve(&key, strdup("junk"), 5);
        assert_int_equal(get_key(f, &key), KILN_MISS);
    }
    assert_int_equal(server.gets, KN_BREAKER_TRIES);
    assert_int_equal(count(f, KN_COUNT_corrupt), KN_BREAKER_TRIES);
    /* One try when the pause is over; a good answer ends it. */
    f->remote->answers.due = kn_clock_now();
    assert_int_equal(get_key(f, &key), KILN_MISS);
    assert_int_equal(server.gets, KN_BREAKER_TRIES + 1);
    assert_true(f->remote->answers.open);
    assert_true(f->remote->answers.pause_ns == 2 * KN_BREAKER_FIRST_NS);
    key = serve_entry("stage", 100);
    f->remote->answers.due = kn_clock_now();
    assert_int_equal(get_key(f, &key), KILN_OK);
    assert_false(f->remote->answers.open);
    assert_int_equal(get_key(f, &key), KILN_OK);
}

TEST(S6_notes_are_not_taken_from_a_remote)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=20s");
    const kiln_key key = serve_entry("kiln.tuning", 100);
    assert_int_equal(get_key(f, &key), KILN_MISS);
    assert_int_equal(server.gets, 1);
    assert_int_equal(count(f, KN_COUNT_remote_refused), 1);
}

KT_MAIN(NULL, NULL)

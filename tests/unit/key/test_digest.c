/* SHA-256 against published vectors, in one piece and in many, and without memory. */
#include "key/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/suite.h"

static void assert_digest(const void *data, size_t size, const char *expected)
{
    uint8_t digest[KN_DIGEST_SIZE];
    char hex[2 * KN_DIGEST_SIZE + 1];
    assert_true(kn_digest_of(data, size, digest));
    kn_hex_encode(digest, sizeof digest, hex);
    assert_string_equal(hex, expected);
}

KT_TEST(published_vectors)
{
    assert_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

KT_TEST(pieces_and_reuse_change_nothing)
{
    char data[1000];
    uint8_t whole[KN_DIGEST_SIZE], pieces[KN_DIGEST_SIZE];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (char)(i * 7);
    }
    kn_digest digest;
    assert_true(kn_digest_init(&digest));
    assert_true(kn_digest_bytes(&digest, data, sizeof data, whole));
    for (size_t cut = 0; cut <= sizeof data; cut += 37) {
        kn_digest_begin(&digest);
        kn_digest_update(&digest, data, cut);
        kn_digest_update(&digest, data + cut, sizeof data - cut);
        assert_true(kn_digest_finish(&digest, pieces));
        assert_memory_equal(whole, pieces, sizeof whole);
    }
    kn_digest_deinit(&digest);
}

KT_TEST(a_look_at_a_digest_does_not_end_it)
{
    char data[300];
    uint8_t looked[KN_DIGEST_SIZE], whole[KN_DIGEST_SIZE];
    memset(data, 'x', sizeof data);
    kn_digest digest;
    assert_true(kn_digest_init(&digest));
    for (size_t length = 0; length <= sizeof data; length++) {
        assert_true(kn_digest_peek(&digest, looked));
        assert_true(kn_digest_of(data, length, whole));
        assert_memory_equal(looked, whole, sizeof whole);
        kn_digest_update(&digest, "x", 1);
    }
    kn_digest_deinit(&digest);
    assert_false(kn_digest_peek(&digest, looked));
}

KT_TEST(a_dead_digest_gives_zeros_and_says_so)
{
    kn_digest digest = {.failed = true};
    uint8_t out[KN_DIGEST_SIZE], zero[KN_DIGEST_SIZE] = {0};
    memset(out, 0xaa, sizeof out);
    assert_false(kn_digest_bytes(&digest, "abc", 3, out));
    assert_memory_equal(out, zero, sizeof out);
}

KT_MAIN(NULL, NULL)

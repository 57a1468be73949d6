/* Each build of the checksum gives the digests of libxxhash (XXH3_128bits of 0.8.1, canonical
 * form), in one piece and in many: what one processor stored is read by another. */
#include "unit/store/support.h"

#include "base/text.h"
#include "store/format/checksum.h"
#include "support/suite.h"
#include "sys/processor.h"

enum { SIZE = 70000 };

typedef void checksum_call(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE]);

static const struct {
    size_t size;
    const char *digest;
} known[] = {
    {0, "99aa06d3014798d86001c324468d497f"},     {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
    {3, "2012adb9c9d860b71729c78f56ec7369"},     {4, "845026b94ecb793b2494ffbfb3959765"},
    {8, "4132fb07c0432330ce0ff5563c3393fc"},     {9, "6cc3a7d0f308d91272ca3cbcd7ef6247"},
    {16, "e973c9785debe255c5db1599402c959c"},    {17, "8219c336c5babc21e9c20cd7156aac1e"},
    {128, "b7dc1a8e2a298c315ff0625c7e1e9d5f"},   {129, "b72d53d90720128de7c6328994fdd22c"},
    {240, "d379160924f79efe66cbbc5363497aa6"},   {241, "037fc7f5eb0e62df5f15f12e172b51fa"},
    {256, "7fcdf4a64774a6aa2d280775d960610d"},   {1024, "f71bd8197487cda16049adedbb22283e"},
    {1025, "97b196dd29fe16fb63c9fc3d4dc27985"},  {4096, "a1fec5f50b9d82404ac8c1382c1b7837"},
    {65536, "e64742d295d49e95901dc3afe8c07815"}, {69999, "7de40300748933cc1ae624d27a98915b"},
};

/* At four places, so that no build counts on alignment. */
static void check_build(checksum_call *call)
{
    char *room = malloc(SIZE + 4);
    assert_non_null(room);
    for (size_t at = 0; at < 4; at++) {
        for (size_t i = 0; i < SIZE; i++) {
            room[at + i] = (char)(i * i * 31 + i * 7 + (i >> 8));
        }
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            const size_t size = known[i].size;
            const kn_span whole = kn_span_of(room + at, size);
            const kn_span parts[] = {kn_span_of(room + at, size / 3), kn_span_of(NULL, 0),
                                     kn_span_of(room + at + size / 3, size - size / 3)};
            unsigned char sum[KN_CHECKSUM_SIZE];
            char text[2 * KN_CHECKSUM_SIZE + 1];
            call(&whole, 1, sum);
            kn_hex_encode(sum, sizeof(sum), text);
            assert_string_equal(text, known[i].digest);
            call(parts, 3, sum);
            kn_hex_encode(sum, sizeof(sum), text);
            assert_string_equal(text, known[i].digest);
        }
    }
    free(room);
}

KT_TEST(the_one_that_is_chosen)
{
    check_build(kn_checksum);
}

KT_TEST(the_plain_one)
{
    check_build(kn_checksum_plain);
}

KT_TEST(those_for_wider_vectors)
{
#ifdef KILN_CHECKSUM_X86
    const kn_vectors vectors = kn_processor_vectors();
    if (vectors >= KN_VECTORS_256) {
        check_build(kn_checksum_avx2);
    }
    if (vectors >= KN_VECTORS_512) {
        check_build(kn_checksum_avx512);
    }
    if (vectors >= KN_VECTORS_256) {
        return;
    }
#endif
    skip();
}

KT_MAIN(NULL, NULL)

/* Recorded programs and uses as bytes: round trips, and bytes that must never be accepted. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "record/file_frame.h"
#include "record/request.h"
#include "support/cmocka.h"
#include "support/failalloc.h"
#include "unit/record/program.h"

static kn_span encode_program(const kn_recorded *program, kn_strbuf *room)
{
    kn_strbuf_init(room, 0);
    assert_true(kn_recorded_encode(program, room));
    assert_true(kn_strbuf_ok(room));
    return kn_span_of(kn_strbuf_text(room), room->length);
}

static void programs_round_trip(void **state)
{
    kn_strbuf room, again;
    kn_recorded back;
    const kn_recorded program = ks_recorded();
    const kn_span bytes = encode_program(&program, &room);
    assert_int_equal(kn_recorded_decode(bytes, &back, NULL), KILN_OK);
    ks_assert_same_program(&program, &back);
    const kn_span second = encode_program(&back, &again);
    assert_true(kn_span_equal(bytes, second));
    kn_recorded_deinit(&back);
    kn_strbuf_deinit(&again);
    kn_strbuf_deinit(&room);
}

static void a_program_without_name_and_lists_round_trips(void **state)
{
    kn_strbuf room;
    kn_recorded back;
    const kn_recorded_text text = {.options = ""};
    kn_recorded program = KN_RECORDED_INIT;
    program.frontend = KN_FRONTEND_WALK;
    program.language = KILN_LANG_GLSL;
    program.texts = &text;
    program.text_count = 1;
    const kn_span bytes = encode_program(&program, &room);
    assert_int_equal(kn_recorded_decode(bytes, &back, NULL), KILN_OK);
    ks_assert_same_program(&program, &back);
    kn_recorded_deinit(&back);
    kn_strbuf_deinit(&room);
}

static void uses_round_trip(void **state)
{
    kn_strbuf room;
    kn_recorded_use back;
    const kn_recorded_use use = {
        .program = {1, 2, 3}, .target = "cuda:sm_90", .first_ns = -5, .compile_ns = 77};
    kn_strbuf_init(&room, 0);
    assert_true(kn_recorded_use_encode(&use, &room));
    assert_int_equal(
        kn_recorded_use_decode(kn_span_of(kn_strbuf_text(&room), room.length), &back, NULL),
        KILN_OK);
    assert_memory_equal(back.program, use.program, sizeof back.program);
    assert_string_equal(back.target, "cuda:sm_90");
    assert_int_equal(back.first_ns, -5);
    assert_int_equal(back.compile_ns, 77);
    kn_strbuf_deinit(&room);
}

static void what_no_reader_would_take_is_not_written(void **state)
{
    kn_strbuf room;
    kn_recorded program = ks_recorded();
    kn_strbuf_init(&room, 0);
    kn_strbuf_append_text(&room, "before");
    program.dir = NULL;
    assert_false(kn_recorded_encode(&program, &room));
    assert_true(kn_strbuf_ok(&room));
    assert_string_equal(kn_strbuf_text(&room), "before");
    kn_strbuf_deinit(&room);
}

/* Each cut, and each bit: the checksum finds them, or a length does. */
static void damage_is_found(void **state)
{
    kn_strbuf room;
    kn_recorded back;
    kiln_diag diag = KILN_DIAG_INIT;
    const kn_recorded program = ks_recorded();
    const kn_span bytes = encode_program(&program, &room);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_int_equal(kn_recorded_decode(kn_span_of(bytes.data, i), &back, &diag),
                         KILN_E_CORRUPT);
        room.data[i] = (char)(room.data[i] ^ 0x10);
        assert_int_equal(kn_recorded_decode(bytes, &back, &diag), KILN_E_CORRUPT);
        room.data[i] = (char)(room.data[i] ^ 0x10);
    }
    assert_string_not_equal(diag.why, "");
    kiln_diag_clear(&diag);
    kn_strbuf_deinit(&room);
}

/* Under a right checksum, too: each word of the body as a huge number, each byte as another one. */
static void lies_under_a_right_checksum_end_in_bounds(void **state)
{
    kn_strbuf room;
    kn_recorded back;
    const kn_recorded program = ks_recorded();
    const kn_span bytes = encode_program(&program, &room);
    for (size_t i = KN_FRAME_HEADER; i + 4 <= bytes.length; i++) {
        char kept[4];
        memcpy(kept, room.data + i, 4);
        kn_put_u32(room.data + i, UINT32_MAX - 1);
        kn_frame_seal(room.data, room.length, KN_FRAME_PROGRAM);
        if (kn_recorded_decode(bytes, &back, NULL) == KILN_OK) {
            kn_recorded_deinit(&back);
        }
        memcpy(room.data + i, kept, 4);
    }
    kn_strbuf_deinit(&room);
}

static void a_newer_kilns_file_is_refused_with_that_reason(void **state)
{
    kn_strbuf room;
    kn_recorded back;
    kiln_diag diag = KILN_DIAG_INIT;
    const kn_recorded program = ks_recorded();
    const kn_span bytes = encode_program(&program, &room);
    kn_frame_seal(room.data, room.length, KN_FRAME_USE);
    assert_int_equal(kn_recorded_decode(bytes, &back, &diag), KILN_E_CORRUPT);
    assert_non_null(strstr(diag.why, "another kind"));
    kn_frame_seal_as(room.data, room.length, KN_FRAME_PROGRAM, KN_FRAME_VERSION + 1);
    assert_int_equal(kn_recorded_decode(bytes, &back, &diag), KILN_E_UNSUPPORTED);
    assert_non_null(strstr(diag.why, "newer kiln"));
    kiln_diag_clear(&diag);
    kn_strbuf_deinit(&room);
}

static bool encode_and_decode(void *user)
{
    kn_strbuf room;
    kn_recorded back = KN_RECORDED_INIT;
    const kn_recorded *program = user;
    kn_strbuf_init(&room, 0);
    const bool written = kn_recorded_encode(program, &room) && kn_strbuf_ok(&room);
    kiln_status status = KILN_E_NOMEM;
    if (written) {
        status = kn_recorded_decode(kn_span_of(kn_strbuf_text(&room), room.length), &back, NULL);
        assert_true(status == KILN_OK || status == KILN_E_NOMEM);
        kn_recorded_deinit(&back);
    }
    kn_strbuf_deinit(&room);
    return status == KILN_OK;
}

static void programs_survive_failing_allocations(void **state)
{
    kn_recorded program = ks_recorded();
    assert_true(kt_failalloc_each(encode_and_decode, &program) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_round_trip),
        cmocka_unit_test(a_program_without_name_and_lists_round_trips),
        cmocka_unit_test(uses_round_trip),
        cmocka_unit_test(what_no_reader_would_take_is_not_written),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(lies_under_a_right_checksum_end_in_bounds),
        cmocka_unit_test(a_newer_kilns_file_is_refused_with_that_reason),
        cmocka_unit_test(programs_survive_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

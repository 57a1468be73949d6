/* Code objects: a good one for its target and no other, and every way to be damaged. */
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/code_object.h"
#include "base/checked.h"
#include "support/cmocka.h"

enum { NOTE_AT = 64 + 56, ROOM = 1024 };

typedef struct image {
    unsigned char bytes[ROOM];
    size_t size;
} image;

static void put_text(image *to, const char *text)
{
    const size_t length = strlen(text);
    assert_true(length < 256 && to->size + length + 2 < ROOM);
    if (length < 32) {
        to->bytes[to->size++] = (unsigned char)(0xa0 | length);
    } else {
        to->bytes[to->size++] = 0xd9;
        to->bytes[to->size++] = (unsigned char)length;
    }
    memcpy(to->bytes + to->size, text, length);
    to->size += length;
}

static void put_bytes(image *to, const char *bytes, size_t size)
{
    assert_true(to->size + size < ROOM);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

/* A pointer, a structure of 300 bytes and what the compiler adds, each in another form. */
static void put_args(image *to)
{
    put_bytes(to, "\x93\x83", 2);
    put_text(to, ".address_space");
    put_text(to, "global");
    put_text(to, ".size");
    put_bytes(to, "\x08", 1);
    put_text(to, ".value_kind");
    put_text(to, "global_buffer");
    put_bytes(to, "\x82", 1);
    put_text(to, ".value_kind");
    put_text(to, "by_value");
    put_text(to, ".size");
    put_bytes(to, "\xcd\x01\x2c", 3);
    put_bytes(to, "\x82", 1);
    put_text(to, ".size");
    put_bytes(to, "\xcf\0\0\0\0\0\0\0\x08", 9);
    put_text(to, ".value_kind");
    put_text(to, "hidden_global_offset_x");
}

/* One kernel, with a value of every form before its name. */
static void put_metadata(image *to, const char *target)
{
    static const char values[] =
        "\x9c\xc0\xc2\xc4\x02xy\xc7\x01Zx\xca....\xcc.\xcd..\xd0.\xd4Z.\xdc"
        "\x00\x02\x01\xff\x82\x01\x02\x03\x91\xa1x\xdb\x00\x00\x00\x01x";
    put_bytes(to, "\x83", 1);
    put_text(to, "amdhsa.kernels");
    put_bytes(to, "\x91\xde\x00\x04", 4);
    put_text(to, ".args");
    put_args(to);
    put_text(to, ".others");
    put_bytes(to, values, sizeof(values) - 1);
    put_text(to, ".name");
    put_text(to, "saxpy");
    put_text(to, ".symbol");
    put_text(to, "saxpy.kd");
    put_text(to, "amdhsa.target");
    put_text(to, target);
    put_text(to, "amdhsa.version");
    put_bytes(to, "\x92\x01\x01", 3);
}

static void make_image(image *out, uint32_t flags, const char *target)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->bytes,
           "\x7f"
           "ELF\x02\x01\x01\x40\x02",
           9);
    out->bytes[18] = 224;
    kn_put_u64(out->bytes + 32, 64);
    kn_put_u32(out->bytes + 48, flags);
    out->bytes[54] = 56;
    out->bytes[56] = 1;
    out->bytes[58] = 64;
    kn_put_u32(out->bytes + 64, 4);
    kn_put_u64(out->bytes + 64 + 8, NOTE_AT);
    /* A note of others' comes first. */
    static const char other[] = "\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0ab\0\0";
    memcpy(out->bytes + NOTE_AT, other, sizeof(other) - 1);
    const size_t note = NOTE_AT + sizeof(other) - 1;
    kn_put_u32(out->bytes + note, 7);
    kn_put_u32(out->bytes + note + 8, 32);
    memcpy(out->bytes + note + 12, "AMDGPU", 7);
    out->size = note + 20;
    put_metadata(out, target);
    kn_put_u32(out->bytes + note + 4, (uint32_t)(out->size - note - 20));
    while (out->size % 4 != 0) {
        out->size++;
    }
    kn_put_u64(out->bytes + 64 + 32, out->size - NOTE_AT);
    kn_put_u64(out->bytes + 40, out->size); /* no sections */
    /* The table of names, at the end. */
    put_bytes(out, "\0saxpy\0factor\0", 14);
}

static kn_hip_target target_of(const char *name, char sramecc, char xnack)
{
    kn_hip_target target = {{0}, {0}, sramecc, xnack};
    strcpy(target.name, name);
    memcpy(target.processor, name, strcspn(name, ":"));
    return target;
}

/* What its arguments are, hidden ones too. */
static void add_arg(void *user, kn_metadata_arg arg)
{
    size_t *sum = (size_t *)user;
    *sum += arg.size;
}

/* From the heap and of the exact size, so that a sanitizer sees what lies past it. */
static bool check(const unsigned char *bytes, size_t size, const kn_hip_target *target, char *why)
{
    unsigned char *copy = (unsigned char *)malloc(size + (size == 0));
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const bool good = kn_code_object_check(copy, size, target, why);
    if (good) {
        (void)kn_code_object_has(copy, size, "saxpy");
        (void)kn_code_object_has(copy, size, "nothing");
        size_t sum = 0;
        (void)kn_code_object_params(copy, size, "saxpy", add_arg, &sum);
    }
    free(copy);
    return good;
}

static const char gfx90a[] = "amdgcn-amd-amdhsa--gfx90a";

static void a_code_object_is_for_its_target_alone(void **state)
{
    const struct {
        uint32_t flags;
        const char *named;
        kn_hip_target target;
        bool good;
    } rows[] = {
        {0x53f, gfx90a, target_of("gfx90a", 0, 0), true},
        {0x53f, "amdgcn-amd-amdhsa-unknown-gfx90a", target_of("gfx90a", 0, 0), true},
        {0x63f, "amdgcn-amd-amdhsa--gfx90a:xnack-", target_of("gfx90a:xnack-", 0, '-'), true},
        {0xf3f, "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+",
         target_of("gfx90a:sramecc+:xnack+", '+', '+'), true},
        {0x36, "amdgcn-amd-amdhsa--gfx1030", target_of("gfx1030", 0, 0), true},
        {0x99, "amdgcn-amd-amdhsa--gfx9999", target_of("gfx9999", 0, 0), true}, /* a newer one */
        {0x530, gfx90a, target_of("gfx90a", 0, 0), false},
        {0x53f, "amdgcn-amd-amdhsa--gfx908", target_of("gfx90a", 0, 0), false},
        {0x53f, "amdgcn-amd-amdhsa--xgfx90a", target_of("gfx90a", 0, 0), false},
        {0x63f, gfx90a, target_of("gfx90a", 0, 0), false},
        {0x53f, "amdgcn-amd-amdhsa--gfx90a:xnack-", target_of("gfx90a:xnack-", 0, '-'), false},
        {0x73f, "amdgcn-amd-amdhsa--gfx90a:xnack-", target_of("gfx90a:xnack-", 0, '-'), false},
        {0x63f, "amdgcn-amd-amdhsa--gfx90a:xnack+", target_of("gfx90a:xnack-", 0, '-'), false},
        {0x99, "amdgcn-amd-amdhsa--gfx9998", target_of("gfx9999", 0, 0), false},
    };
    char why[KN_CODE_OBJECT_WHY];
    image made;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make_image(&made, rows[i].flags, rows[i].named);
        if (check(made.bytes, made.size, &rows[i].target, why) != rows[i].good) {
            fail_msg("row %zu: %s", i, rows[i].good ? why : "taken");
        }
    }
}

static void names_of_kernels_and_variables_are_found(void **state)
{
    image made;
    make_image(&made, 0x53f, gfx90a);
    assert_true(kn_code_object_has(made.bytes, made.size, "saxpy"));
    assert_true(kn_code_object_has(made.bytes, made.size, "factor"));
    assert_false(kn_code_object_has(made.bytes, made.size, "saxp"));
    assert_false(kn_code_object_has(made.bytes, made.size, "axpy"));
    assert_false(kn_code_object_has(made.bytes, made.size, ""));
}

typedef struct arg_list {
    size_t count, sizes[4];
    char kinds[4][32];
} arg_list;

static void take_arg(void *user, kn_metadata_arg arg)
{
    arg_list *list = (arg_list *)user;
    assert_true(list->count < 4 && arg.kind.length < 32);
    memcpy(list->kinds[list->count], arg.kind.data, arg.kind.length);
    list->sizes[list->count++] = arg.size;
}

static void the_arguments_of_a_kernel_are_read(void **state)
{
    arg_list list = {.count = 0};
    image made;
    make_image(&made, 0x53f, gfx90a);
    assert_true(kn_code_object_params(made.bytes, made.size, "saxpy", take_arg, &list));
    assert_int_equal(list.count, 3);
    assert_int_equal(list.sizes[0], 8);
    assert_string_equal(list.kinds[0], "global_buffer");
    assert_int_equal(list.sizes[1], 300);
    assert_string_equal(list.kinds[1], "by_value");
    assert_int_equal(list.sizes[2], 8);
    assert_string_equal(list.kinds[2], "hidden_global_offset_x");
    assert_false(kn_code_object_params(made.bytes, made.size, "axpy", take_arg, &list));
    assert_int_equal(list.count, 3);
}

static void what_is_not_a_code_object_is_named(void **state)
{
    const kn_hip_target target = target_of("gfx90a", 0, 0);
    char why[KN_CODE_OBJECT_WHY];
    image made;
    assert_false(check((const unsigned char *)"", 0, &target, why));
    assert_false(check((const unsigned char *)"BC\xC0\xDE....", 8, &target, why));
    assert_non_null(strstr(why, "bitcode"));
    make_image(&made, 0x53f, gfx90a);
    made.bytes[18] = 62;
    assert_false(check(made.bytes, made.size, &target, why));
    assert_non_null(strstr(why, "another machine"));
    make_image(&made, 0x53f, gfx90a);
    made.bytes[56] = 0;
    assert_false(check(made.bytes, made.size, &target, why));
    assert_non_null(strstr(why, "metadata"));
}

static void a_code_object_that_was_cut_off_is_refused(void **state)
{
    const kn_hip_target target = target_of("gfx90a", 0, 0);
    char why[KN_CODE_OBJECT_WHY];
    image made;
    make_image(&made, 0x53f, gfx90a);
    const size_t table = made.size - 14;
    for (size_t size = 0; size < table; size++) {
        if (check(made.bytes, size, &target, why)) {
            fail_msg("%zu of %zu bytes are taken", size, table);
        }
    }
    assert_true(check(made.bytes, table, &target, why));
}

/* Nothing is asserted of the answers but that they come. */
static void damaged_bytes_are_read_within_their_bounds(void **state)
{
    static const unsigned char patterns[] = {0x00, 0x01, 0x7f, 0x80, 0x9f,
                                             0xc1, 0xdb, 0xdd, 0xdf, 0xff};
    const kn_hip_target target = target_of("gfx90a", 0, 0);
    char why[KN_CODE_OBJECT_WHY];
    image made;
    make_image(&made, 0x53f, gfx90a);
    for (size_t at = 0; at < made.size; at++) {
        const unsigned char before = made.bytes[at];
        for (size_t i = 0; i < sizeof(patterns); i++) {
            made.bytes[at] = patterns[i];
            (void)check(made.bytes, made.size, &target, why);
        }
        made.bytes[at] = before;
    }
    assert_true(check(made.bytes, made.size, &target, why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_object_is_for_its_target_alone),
        cmocka_unit_test(names_of_kernels_and_variables_are_found),
        cmocka_unit_test(the_arguments_of_a_kernel_are_read),
        cmocka_unit_test(what_is_not_a_code_object_is_named),
        cmocka_unit_test(a_code_object_that_was_cut_off_is_refused),
        cmocka_unit_test(damaged_bytes_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

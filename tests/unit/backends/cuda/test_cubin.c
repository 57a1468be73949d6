/* The number of a kernel's parameters out of a CUBIN: what is certain is returned, anything else is
 * not.
 */
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/cubin.h"
#include "base/checked.h"
#include "support/cmocka.h"

enum { NAMES = 64, INFO = 128, TABLE = 384, SIZE = TABLE + 3 * 64 };

/* A file with a section of names and one of attributes, as NVRTC 13.0 writes it. */
typedef struct cubin {
    unsigned char bytes[SIZE];
    size_t used; /* of the attributes */
} cubin;

static void put_u16(unsigned char *to, unsigned value)
{
    to[0] = (unsigned char)value;
    to[1] = (unsigned char)(value >> 8);
}

static void put_u64(unsigned char *to, uint64_t value)
{
    kn_put_u32(to, (uint32_t)value);
    kn_put_u32(to + 4, (uint32_t)(value >> 32));
}

static void put_section(cubin *c, size_t index, uint32_t name, uint64_t offset, uint64_t size)
{
    unsigned char *section = c->bytes + TABLE + 64 * index;
    kn_put_u32(section, name);
    put_u64(section + 24, offset);
    put_u64(section + 32, size);
}

static void finish(cubin *c)
{
    put_section(c, 2, 1, INFO, c->used);
}

static void begin(cubin *c, const char *kernel)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    memset(c, 0, sizeof(*c));
    memcpy(c->bytes, magic, sizeof(magic));
    put_u16(c->bytes + 18, 190);
    put_u64(c->bytes + 40, TABLE);
    put_u16(c->bytes + 58, 64);
    put_u16(c->bytes + 60, 3);
    put_u16(c->bytes + 62, 1);
    (void)strcpy((char *)c->bytes + NAMES + 1, ".nv.info.");
    (void)strcat((char *)c->bytes + NAMES + 1, kernel);
    put_section(c, 1, 0, NAMES, 64);
    finish(c);
}

static void add_plain(cubin *c, unsigned format, unsigned kind, unsigned value)
{
    unsigned char *at = c->bytes + INFO + c->used;
    at[0] = (unsigned char)format;
    at[1] = (unsigned char)kind;
    put_u16(at + 2, value);
    c->used += 4;
    finish(c);
}

static void add_param(cubin *c, unsigned ordinal, unsigned offset, unsigned size)
{
    add_plain(c, 4, 0x17, 12);
    unsigned char *at = c->bytes + INFO + c->used;
    put_u16(at + 4, ordinal);
    put_u16(at + 6, offset);
    kn_put_u32(at + 8, size << 18 | 0x1f000);
    c->used += 12;
    finish(c);
}

static size_t count(const cubin *c)
{
    return kn_cubin_param_count(c->bytes, sizeof(c->bytes), "run");
}

/* Last to first, as the toolkit writes them, among attributes of other kinds. */
static void make_three(cubin *c)
{
    begin(c, "run");
    add_plain(c, 3, 0x1b, 255);
    add_param(c, 2, 16, 4);
    add_param(c, 1, 8, 8);
    add_param(c, 0, 0, 8);
    add_plain(c, 2, 0x4a, 0);
    add_plain(c, 3, 0x19, 20);
}

static void parameters_are_counted(void **state)
{
    cubin c;
    make_three(&c);
    assert_int_equal(count(&c), 3);
    assert_int_equal(kn_cubin_param_count(c.bytes, sizeof(c.bytes), "runs"), SIZE_MAX);
    assert_int_equal(kn_cubin_param_count(c.bytes, sizeof(c.bytes), "ru"), SIZE_MAX);
    begin(&c, "run");
    add_plain(&c, 3, 0x1b, 255);
    assert_int_equal(count(&c), 0);
}

static void what_does_not_add_up_is_not_told(void **state)
{
    cubin c;
    make_three(&c);
    put_u16(c.bytes + INFO + 4 + 4 + 4, 1); /* ordinal 1 twice */
    assert_int_equal(count(&c), SIZE_MAX);
    make_three(&c);
    put_u16(c.bytes + INFO + c.used - 2, 24); /* more bytes than the parameters have */
    assert_int_equal(count(&c), SIZE_MAX);
    make_three(&c);
    c.used -= 1; /* ends within an attribute */
    finish(&c);
    assert_int_equal(count(&c), SIZE_MAX);
    make_three(&c);
    put_u16(c.bytes + INFO + 4 + 2, 4000); /* longer than the section */
    assert_int_equal(count(&c), SIZE_MAX);
    make_three(&c);
    put_u16(c.bytes + 18, 62); /* another machine's */
    assert_int_equal(count(&c), SIZE_MAX);
    assert_int_equal(kn_cubin_param_count(".version 8.0", 12, "run"), SIZE_MAX);
    assert_int_equal(kn_cubin_param_count(NULL, 0, "run"), SIZE_MAX);
}

/* In memory of just that size, so that ASan sees a step too far. */
static void a_file_cut_short_is_not_read_past(void **state)
{
    cubin c;
    make_three(&c);
    for (size_t size = 1; size < sizeof(c.bytes); size++) {
        unsigned char *cut = malloc(size);
        assert_non_null(cut);
        memcpy(cut, c.bytes, size);
        assert_int_equal(kn_cubin_param_count(cut, size, "run"), SIZE_MAX);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_counted),
        cmocka_unit_test(what_does_not_add_up_is_not_told),
        cmocka_unit_test(a_file_cut_short_is_not_read_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

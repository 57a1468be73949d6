/* Windows' DLLs, read on any system: what is in one, and one that is cut or damaged at each byte.
 */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/pe.h"
#include "base/checked.h"
#include "base/text.h"
#include "support/cmocka.h"

enum {
    HEADERS = 64,
    OPTIONAL = HEADERS + 24,
    SECTIONS = OPTIONAL + 128,
    CONTENTS = 512,
    ADDRESS = 0x1000, /* of the section in memory */
    SIZE = 1024,
};

static void put_u16(unsigned char *to, unsigned value)
{
    to[0] = (unsigned char)value;
    to[1] = (unsigned char)(value >> 8);
}

static void put_u32(unsigned char *to, unsigned value)
{
    put_u16(to, value & 0xffff);
    put_u16(to + 2, value >> 16);
}

/* A DLL with one section: two exports and two imports. */
static void make_dll(unsigned char *dll)
{
    memset(dll, 0, SIZE);
    memcpy(dll, "MZ", 2);
    put_u32(dll + 60, HEADERS);
    memcpy(dll + HEADERS, "PE", 2);
    put_u16(dll + HEADERS + 4, 0x8664);
    put_u16(dll + HEADERS + 6, 1);
    put_u16(dll + HEADERS + 20, 128);
    put_u16(dll + HEADERS + 22, 0x2000);
    put_u16(dll + OPTIONAL, 0x20b);
    put_u32(dll + OPTIONAL + 108, 2);
    put_u32(dll + OPTIONAL + 112, ADDRESS);      /* exports */
    put_u32(dll + OPTIONAL + 120, ADDRESS + 64); /* imports */
    put_u32(dll + SECTIONS + 12, ADDRESS);
    put_u32(dll + SECTIONS + 16, SIZE - CONTENTS);
    put_u32(dll + SECTIONS + 20, CONTENTS);
    unsigned char *at = dll + CONTENTS;
    put_u32(at + 24, 2);
    put_u32(at + 32, ADDRESS + 48);
    put_u32(at + 48, ADDRESS + 200);
    put_u32(at + 52, ADDRESS + 210);
    put_u32(at + 64 + 12, ADDRESS + 220);
    put_u32(at + 84 + 12, ADDRESS + 232);
    memcpy(at + 200, "first", 5);
    memcpy(at + 210, "second", 6);
    memcpy(at + 220, "msvcrt.dll", 10);
    memcpy(at + 232, "other.dll", 9);
}

static void tables_are_read(void **state)
{
    unsigned char dll[SIZE];
    kn_pe pe;
    make_dll(dll);
    assert_true(kn_pe_read(&pe, dll, sizeof dll));
    assert_int_equal(pe.machine, 0x8664);
    assert_int_equal(pe.flags, 0x2000);
    assert_string_equal(kn_pe_export(&pe, 0), "first");
    assert_string_equal(kn_pe_export(&pe, 1), "second");
    assert_null(kn_pe_export(&pe, 2));
    assert_null(kn_pe_export(&pe, UINT32_MAX));
    assert_string_equal(kn_pe_import(&pe, 0), "msvcrt.dll");
    assert_string_equal(kn_pe_import(&pe, 1), "other.dll");
    assert_null(kn_pe_import(&pe, 2));
    assert_null(kn_pe_import(&pe, UINT32_MAX));
}

/* Every name that is found ends within the bytes. */
static void walk_tables(const unsigned char *bytes, size_t size)
{
    kn_pe pe;
    const char *name = NULL;
    if (!kn_pe_read(&pe, bytes, size)) {
        return;
    }
    for (uint32_t i = 0; i < 8; i++) {
        name = kn_pe_export(&pe, i);
        assert_true(name == NULL || name + strlen(name) < (const char *)bytes + size);
        name = kn_pe_import(&pe, i);
        assert_true(name == NULL || name + strlen(name) < (const char *)bytes + size);
    }
}

static void what_is_cut_is_refused(void **state)
{
    unsigned char dll[SIZE];
    kn_pe pe;
    make_dll(dll);
    for (size_t size = 0; size < SIZE; size++) {
        unsigned char *copy = malloc(size + 1); /* exactly as long, for a sanitizer to see */
        assert_non_null(copy);
        memcpy(copy, dll, size);
        assert_false(kn_pe_read(&pe, copy, size));
        free(copy);
    }
}

static void no_byte_leads_out_of_the_file(void **state)
{
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    unsigned char *dll = malloc(SIZE);
    assert_non_null(dll);
    for (size_t at = 0; at < SIZE; at++) {
        for (size_t i = 0; i < sizeof values; i++) {
            make_dll(dll);
            dll[at] = values[i];
            walk_tables(dll, SIZE);
            memset(dll + (at & ~(size_t)3), values[i], 4);
            walk_tables(dll, SIZE);
        }
    }
    free(dll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_read),
        cmocka_unit_test(what_is_cut_is_refused),
        cmocka_unit_test(no_byte_leads_out_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Reflection of SPIR-V: what a sound module says, and that no damaged one does harm (sanitizer
 * builds are the judges of the latter). */
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/spirv.h"
#include "base/checked.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

static char *module;
static size_t module_size;

/* The file has the byte order of the machine that made it; a driver takes its own machine's. */
static int load(void **state)
{
    module = kt_file_read(KILN_SPIRV_MODULE, &module_size);
    assert_non_null(module);
    for (size_t at = 0; at + 4 <= module_size; at += 4) {
        const uint32_t word = kn_get_u32(module + at);
        memcpy(module + at, &word, sizeof(word));
    }
    return 0;
}

static int unload(void **state)
{
    free(module);
    return 0;
}

static void a_module_is_described(void **state)
{
    kn_spirv facts;
    assert_int_equal(kn_spirv_reflect(module, module_size, "module", &facts, NULL), KILN_OK);
    assert_int_equal(facts.entry_count, 1);
    assert_string_equal(facts.entries[0].name, "main");
    assert_true(facts.entries[0].specialised[0]);
    assert_int_equal(facts.entries[0].spec_id[0], 3);
    assert_false(facts.entries[0].specialised[1]);
    assert_int_equal(facts.entries[0].local[1], 2);
    assert_int_equal(facts.entries[0].local[2], 1);
    assert_int_equal(facts.binding_count, 3);
    static const uint32_t bindings[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(facts.bindings[i].binding, bindings[i]);
        assert_int_equal(facts.bindings[i].uniform, i == 1);
    }
    assert_int_equal(facts.push_size, 8);
    assert_int_equal(facts.member_count, 2);
    assert_string_equal(facts.members[0].name, "a");
    assert_string_equal(facts.members[0].type, "f32");
    assert_int_equal(facts.members[1].offset, 4);
}

/* In a block of its own of just that size, so that a read past it is seen. */
static kiln_status reflect_copy(const char *bytes, size_t size, kiln_diag *diag)
{
    kn_spirv facts;
    char *copy = (char *)malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    kiln_status status = kn_spirv_reflect(copy, size, "damaged", &facts, diag);
    free(copy);
    return status;
}

static void a_truncated_module_does_no_harm(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    for (size_t size = 0; size < module_size; size++) {
        kiln_status status = reflect_copy(module, size, &diag);
        assert_true(status == KILN_OK || status == KILN_E_INVALID);
        assert_true(size % 4 == 0 || status == KILN_E_INVALID);
        assert_true(status == KILN_OK || diag.why[0] != '\0');
        kiln_diag_clear(&diag);
    }
    assert_int_equal(reflect_copy(module, 20, NULL), KILN_E_INVALID);
}

static void a_flipped_bit_does_no_harm(void **state)
{
    size_t refused = 0;
    for (size_t bit = 0; bit < module_size * 8; bit++) {
        module[bit / 8] = (char)(module[bit / 8] ^ (1 << bit % 8));
        kiln_status status = reflect_copy(module, module_size, NULL);
        assert_true(status == KILN_OK || status == KILN_E_INVALID || status == KILN_E_NOMEM);
        assert_true(bit >= 32 || status == KILN_E_INVALID); /* the magic number */
        refused += status != KILN_OK;
        module[bit / 8] = (char)(module[bit / 8] ^ (1 << bit % 8));
    }
    assert_true(refused > 100);
    assert_int_equal(reflect_copy(module, module_size, NULL), KILN_OK);
}

/* --- modules put together word by word -------------------------------------------------------- */

typedef struct words {
    uint32_t data[512];
    size_t count;
} words;

static void put(words *w, uint32_t opcode, size_t count, const uint32_t *operands)
{
    w->data[w->count++] = (uint32_t)(count + 1) << 16 | opcode;
    for (size_t i = 0; i < count; i++) {
        w->data[w->count++] = operands[i];
    }
}
#define PUT(w, opcode, ...)                                                                        \
    put(w, opcode, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                     \
        (const uint32_t[]){__VA_ARGS__})

/* An entry point `id` of that name. */
static void put_entry(words *w, uint32_t id, const char *name)
{
    uint32_t operands[130] = {5, id};
    for (size_t i = 0; name[i] != '\0'; i++) { /* the first octet is a word's lowest */
        operands[2 + i / 4] |= (uint32_t)(unsigned char)name[i] << (8 * (i % 4));
    }
    put(w, 15, 3 + strlen(name) / 4, operands);
}

static void begin(words *w)
{
    static const uint32_t header[] = {0x07230203, 0x00010000, 0, 100, 0};
    memset(w, 0, sizeof(*w));
    memcpy(w->data, header, sizeof(header));
    w->count = 5;
}

/* A module of one shader of that name, in groups of 1 x 1 x 1. */
static void begin_shader(words *w, const char *name)
{
    begin(w);
    put_entry(w, 1, name);
    PUT(w, 16, 1, 17, 1, 1, 1);
}

/* A variable `id` of a block in set 0; `class` 12: a storage buffer, 2: a uniform block. */
static void put_buffer(words *w, uint32_t id, uint32_t class, uint32_t binding, bool array)
{
    PUT(w, 71, id, 34, 0);
    PUT(w, 71, id, 33, binding);
    PUT(w, 30, id + 1, 99);
    if (array) {
        PUT(w, 28, id + 2, id + 1, 98);
    }
    PUT(w, 32, id + 3, class, array ? id + 2 : id + 1);
    PUT(w, 59, id + 3, id, class);
}

static kiln_status reflect(const words *w, kn_spirv *facts, kiln_diag *diag)
{
    return kn_spirv_reflect(w->data, w->count * sizeof(uint32_t), "made", facts, diag);
}

/* Two views of one buffer, as quantised weights are often read: one argument, one binding. */
static void variables_of_one_binding_are_one_buffer(void **state)
{
    words w;
    kn_spirv facts;
    kiln_diag diag = KILN_DIAG_INIT;
    begin_shader(&w, "main");
    put_buffer(&w, 10, 12, 1, false);
    put_buffer(&w, 20, 12, 0, false);
    put_buffer(&w, 30, 12, 1, false);
    assert_int_equal(reflect(&w, &facts, &diag), KILN_OK);
    assert_int_equal(facts.binding_count, 2);
    assert_int_equal(facts.bindings[0].binding, 0);
    assert_int_equal(facts.bindings[1].binding, 1);
    put_buffer(&w, 40, 2, 0, false); /* of another kind: no layout has both */
    assert_int_equal(reflect(&w, &facts, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "share a binding"));
    kiln_diag_clear(&diag);
}

static void an_array_of_buffers_is_refused(void **state)
{
    words w;
    kn_spirv facts;
    kiln_diag diag = KILN_DIAG_INIT;
    begin_shader(&w, "main");
    put_buffer(&w, 10, 12, 0, true);
    assert_int_equal(reflect(&w, &facts, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "array of buffers"));
    kiln_diag_clear(&diag);
}

/* A driver gets the whole name, or nothing. */
static void names_of_entries_are_not_cut(void **state)
{
    words w;
    kn_spirv facts;
    kiln_diag diag = KILN_DIAG_INIT;
    char name[257];
    memset(name, 'k', sizeof(name));
    for (size_t length = 60; length <= 256; length += 65) { /* 60, 125, 190, 255 */
        name[length] = '\0';
        begin_shader(&w, name);
        assert_int_equal(reflect(&w, &facts, &diag), KILN_OK);
        assert_string_equal(facts.entries[0].name, name);
        name[length] = 'k';
    }
    name[256] = '\0';
    begin(&w);
    put_entry(&w, 1, name);
    assert_int_equal(reflect(&w, &facts, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
}

/* LocalSizeId belongs to one entry; the constant that is WorkgroupSize to all. */
static void each_entry_has_its_own_size(void **state)
{
    words w;
    kn_spirv facts;
    begin(&w);
    put_entry(&w, 1, "fixed");
    put_entry(&w, 2, "by_id");
    put_entry(&w, 3, "open");
    PUT(&w, 16, 1, 17, 64, 1, 1);
    PUT(&w, 331, 2, 38, 10, 11, 11);
    PUT(&w, 331, 3, 38, 12, 11, 11);
    PUT(&w, 71, 12, 1, 7);
    PUT(&w, 21, 9, 32, 0);
    PUT(&w, 43, 9, 10, 8);
    PUT(&w, 43, 9, 11, 1);
    PUT(&w, 50, 9, 12, 16);
    assert_int_equal(reflect(&w, &facts, NULL), KILN_OK);
    assert_int_equal(facts.entries[0].local[0], 64);
    assert_int_equal(facts.entries[1].local[0], 8);
    assert_int_equal(facts.entries[2].local[0], 16);
    assert_false(facts.entries[0].specialised[0]);
    assert_false(facts.entries[1].specialised[0]);
    assert_true(facts.entries[2].specialised[0]);
    assert_int_equal(facts.entries[2].spec_id[0], 7);
    PUT(&w, 71, 13, 11, 25);
    PUT(&w, 44, 8, 13, 10, 10, 11);
    assert_int_equal(reflect(&w, &facts, NULL), KILN_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(facts.entries[i].local[1], 8);
        assert_false(facts.entries[i].specialised[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_is_described),
        cmocka_unit_test(a_truncated_module_does_no_harm),
        cmocka_unit_test(a_flipped_bit_does_no_harm),
        cmocka_unit_test(variables_of_one_binding_are_one_buffer),
        cmocka_unit_test(an_array_of_buffers_is_refused),
        cmocka_unit_test(names_of_entries_are_not_cut),
        cmocka_unit_test(each_entry_has_its_own_size),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

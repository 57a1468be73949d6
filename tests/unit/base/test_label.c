/* What people call an entry. */
#include "base/label.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "support/suite.h"

KT_TEST(files_and_kernels_are_named)
{
    static const struct {
        const char *file, *source, *label;
    } rows[] = {
        {NULL, "", ""},
        {"/data/secret/scale.cl", "", "scale.cl"},
        {"a\nb\033[1m.cl", "", "a b [1m.cl"},
        {"scale.cl", "__kernel void scale(__global float *x) {}", "scale.cl: scale"},
        {NULL, "kernel void a(int x) {}\nkernel void b(int x) {}", "a, b"},
        {NULL, "void kernel(int x) {} kernel", ""},
        {NULL, "extern \"C\" __global__ void add(float *x) {}", "add"},
        {NULL, "__global__ void __launch_bounds__(256, 2) add(float *x) {}", "add"},
        {NULL, "__kernel __attribute__((reqd_work_group_size(8, 8, 1))) void mul(int x) {}", "mul"},
        {NULL, "template <class T> __global__ void t(T x);\n__global__ void t(int x) {}", "t"},
        {NULL, ".visible .entry _Z3addPf(\n.param .u64 x\n)", "_Z3addPf"},
        {NULL, "my__global__ x(); __global__", ""},
        {NULL, "__global__ void broken(", "broken"},
        {NULL, "__kernel __attribute__((never_closed(", ""},
        {NULL, "__kernel struct { int x; } a(int);", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char label[KN_LABEL_SIZE];
        kn_label_make(label, rows[i].file, kn_span_of_text(rows[i].source));
        assert_string_equal(label, rows[i].label);
    }
}

KT_TEST(labels_are_bounded)
{
    char label[KN_LABEL_SIZE], file[2 * KN_LABEL_SIZE], source[8192];
    memset(file, 'f', sizeof file - 1);
    file[sizeof file - 1] = '\0';
    source[0] = '\0';
    for (size_t i = 0; i < 100; i++) {
        const size_t used = strlen(source);
        (void)snprintf(source + used, sizeof source - used, "__kernel void kernel_%zu(int x) {}\n",
                       i);
    }
    kn_label_make(label, file, kn_span_of_text(source));
    assert_true(strlen(label) < sizeof label);
    assert_string_equal(label + strlen(label) - 5, ", ...");
    kn_label_make(label, NULL, kn_span_of_text(source));
    assert_true(strlen(label) < sizeof label);
    assert_int_equal(memcmp(label, "kernel_0, kernel_1, ", 20), 0);
}

/* Facts are any program's bytes: what is not whole is not taken for a label. */
KT_TEST(a_label_is_found_in_facts)
{
    kn_strbuf facts;
    kn_span label;
    kn_strbuf_init(&facts, 0);
    kn_label_append(&facts, "");
    assert_int_equal(facts.length, 0);
    kn_strbuf_append(&facts, "before", 6);
    kn_label_append(&facts, "scale.cl");
    assert_true(kn_strbuf_ok(&facts));
    assert_true(kn_label_find(kn_span_of(facts.data, facts.length), &label));
    assert_true(kn_span_equal(label, kn_span_of_text("scale.cl")));
    const size_t whole = facts.length;
    kn_strbuf_append(&facts, "behind", 6);
    assert_true(kn_label_find(kn_span_of(facts.data, facts.length), &label));
    assert_true(kn_span_equal(label, kn_span_of_text("scale.cl")));
    for (size_t cut = 0; cut < whole; cut++) {
        assert_false(kn_label_find(kn_span_of(facts.data, cut), &label));
    }
    const size_t foot = whole - strlen(KN_LABEL_MARK) - 4;
    static const uint32_t lengths[] = {0, 15, KN_LABEL_SIZE, UINT32_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        kn_put_u32(facts.data + foot, lengths[i]);
        assert_false(kn_label_find(kn_span_of(facts.data, facts.length), &label));
    }
    kn_strbuf_deinit(&facts);
}

KT_MAIN(NULL, NULL)

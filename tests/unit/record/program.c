/* See program.h. */
#include "unit/record/program.h"

#include <string.h>

#include "support/cmocka.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const options[] = {"-cl-fast-relaxed-math", "", "-D A=\"b c\""};
static const char *const dirs[] = {"include", "/usr/local/x"};
static const char *const entries[] = {"f", "g<int>"};
static const kiln_define defines[] = {{"A", "1"}, {"B", NULL}, {"C", ""}};
static kn_recorded_header headers[] = {{.name = "n.h"}};
static kn_recorded_text texts[] = {
    {.options = "-I include -w", .headers = headers, .header_count = COUNT(headers)},
    {.options = ""},
};
static kn_recorded_file files[] = {{.path = "include/a.h"},
                                   {.path = "/usr/include/b.h", .system = true}};

static kn_object describe(const char *text)
{
    kn_object object = {.size = strlen(text)};
    assert_true(kn_digest_of(text, strlen(text), object.digest));
    return object;
}

kn_recorded ks_recorded(void)
{
    texts[0].text = describe(KS_PROGRAM_TEXT);
    texts[1].text = describe("");
    headers[0].text = describe(KS_PROGRAM_HEADER);
    files[0].content = describe("a");
    files[1].content = describe("b");
    return (kn_recorded){.frontend = KN_FRONTEND_OPENCL,
                         .flags = KN_RECORDED_LINK,
                         .language = KILN_LANG_OPENCL_C,
                         .name = "dir/f.cl",
                         .dir = "/srv/app",
                         .texts = texts,
                         .text_count = COUNT(texts),
                         .defines = defines,
                         .define_count = COUNT(defines),
                         .options = options,
                         .option_count = COUNT(options),
                         .include_dirs = dirs,
                         .include_dir_count = COUNT(dirs),
                         .entries = entries,
                         .entry_count = COUNT(entries),
                         .link_options = "-cl-no-signed-zeros",
                         .files = files,
                         .file_count = COUNT(files)};
}

static void assert_same_text(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL && b != NULL) {
        assert_string_equal(a, b);
    }
}

static void assert_same_list(const char *const *a, size_t a_count, const char *const *b,
                             size_t b_count)
{
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; i++) {
        assert_same_text(a[i], b[i]);
    }
}

static void assert_same_object(const kn_object *a, const kn_object *b)
{
    assert_memory_equal(a->digest, b->digest, sizeof a->digest);
    assert_int_equal(a->size, b->size);
}

static void assert_same_texts(const kn_recorded_text *a, const kn_recorded_text *b)
{
    assert_same_object(&a->text, &b->text);
    assert_same_text(a->options, b->options);
    assert_int_equal(a->header_count, b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        assert_same_text(a->headers[i].name, b->headers[i].name);
        assert_same_object(&a->headers[i].text, &b->headers[i].text);
    }
}

void ks_assert_same_program(const kn_recorded *a, const kn_recorded *b)
{
    assert_int_equal(a->frontend, b->frontend);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->language, b->language);
    assert_same_text(a->name, b->name);
    assert_same_text(a->dir, b->dir);
    assert_same_text(a->link_options, b->link_options);
    assert_int_equal(a->text_count, b->text_count);
    for (size_t i = 0; i < a->text_count; i++) {
        assert_same_texts(&a->texts[i], &b->texts[i]);
    }
    assert_int_equal(a->define_count, b->define_count);
    for (size_t i = 0; i < a->define_count; i++) {
        assert_same_text(a->defines[i].name, b->defines[i].name);
        assert_same_text(a->defines[i].value, b->defines[i].value);
    }
    assert_same_list(a->options, a->option_count, b->options, b->option_count);
    assert_same_list(a->include_dirs, a->include_dir_count, b->include_dirs, b->include_dir_count);
    assert_same_list(a->entries, a->entry_count, b->entries, b->entry_count);
    assert_int_equal(a->file_count, b->file_count);
    for (size_t i = 0; i < a->file_count; i++) {
        assert_same_text(a->files[i].path, b->files[i].path);
        assert_same_object(&a->files[i].content, &b->files[i].content);
        assert_int_equal(a->files[i].system, b->files[i].system);
    }
}

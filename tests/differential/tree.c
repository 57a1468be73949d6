/* See tree.h. */
#include "differential/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "support/tmpdir.h"

static const char *const places[] = {"src", "src/sub", "one", "one/sub", "two", "two/sub"};
static const char *const names[] = {"a.h", "b.h", "c.h", "A.h", "deep.h"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

uint32_t tree_draw(tree_random *random, uint32_t below)
{
    random->state += 0x9E3779B97F4A7C15u;
    uint64_t z = random->state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) % below);
}

static bool one_in(tree_random *random, uint32_t times)
{
    return tree_draw(random, times) == 0;
}

static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...)
{
    const size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + length, size - length, format, args);
    va_end(args);
}

/* A name as an include may spell it: plain, below a directory, through "..". */
static void draw_name(tree_random *random, char *name, size_t size)
{
    static const char *const ways[] = {"",        "",        "",     "",        "sub/",
                                       "../one/", "../two/", "./",   "sub/../", "../sub/",
                                       "link/",   "../src/", "one/", "sub//",   "sub/./"};
    name[0] = '\0';
    append(name, size, "%s%s", ways[tree_draw(random, COUNT(ways))],
           names[tree_draw(random, COUNT(names))]);
    if (one_in(random, 12)) {
        (void)snprintf(name, size, "%s", one_in(random, 2) ? "linked.h" : "none.h");
    }
}

/* One directive in one of the spellings that a preprocessor takes. */
static void append_include(char *text, size_t size, const char *word, const char *what,
                           tree_random *random)
{
    static const char *const spellings[] = {
        "#%s %s\n",      "#%s %s\n",     "#%s %s\n",    "# %s\t%s\n",   "/* c */ #%s %s\n",
        "#%s %s // c\n", "#\\\n%s %s\n", "  #  %s%s\n", "#%s\\\n %s\n", "#%s /* c */%s\n"};
    append(text, size, spellings[tree_draw(random, COUNT(spellings))], word, what);
}

/* A name by which a header that is there is found in an include directory, as a rule. */
static void draw_known_name(const tree *t, tree_random *random, char *name, size_t size)
{
    if (t->file_count > 0) {
        const char *path = t->files[tree_draw(random, (uint32_t)t->file_count)].path;
        const char *inner = path + strlen(t->root) + 1;
        (void)snprintf(name, size, "%.60s", inner + strcspn(inner, "/") + 1);
    }
}

static void append_statement(const tree *t, char *text, size_t size, tree_language language,
                             tree_random *random)
{
    char name[64];
    char what[80];
    const bool quoted = !one_in(random, 3);
    draw_name(random, name, sizeof(name));
    if (!one_in(random, language == TREE_GLSL ? 8 : 2)) {
        draw_known_name(t, random, name, sizeof(name));
    }
    (void)snprintf(what, sizeof(what), quoted ? "\"%s\"" : "<%s>", name);
    if (language == TREE_GLSL) {
        append(text, size, "#include %s\n", what);
        return;
    }
    switch (tree_draw(random, 12)) {
    case 0:
        append_include(text, size, "include", what, random);
        break;
    case 1: /* computed, from here or from wherever NAME is defined */
        if (one_in(random, 2)) {
            append(text, size, "#undef NAME\n#define NAME %s\n", what);
        }
        append(text, size, "#ifndef NAME\n#define NAME <a.h>\n#endif\n#include NAME\n");
        break;
    case 2: /* computed from an option's definition */
        append(text, size, "#ifndef GIVEN\n#define GIVEN %s\n#endif\n#include GIVEN\n", what);
        break;
    case 3:
        append(text, size, "#if 0\n#include %s\n#endif\n", what);
        break;
    case 4:
        append(text, size, "#ifdef SWITCH\n");
        append(text, size, "#if __has_include(%s)\n#include %s\n#endif\n#endif\n", what, what);
        break;
    case 5:
        append(text, size, "#if defined(__has_include_next) && __has_include_next(%s)\n", what);
        append(text, size, "#include_next %s\n#endif\n", what);
        break;
    case 6: /* parameters, and names that are put together */
        append(text, size, "#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n");
        append(text, size, "#if __has_include(\"%s\")\n#include TEXT(%s)\n#endif\n", name, name);
        break;
    default: /* what is there, so that most trees compile */
        append(text, size, "#if __has_include(%s)\n", what);
        append_include(text, size, "include", what, random);
        append(text, size, "#endif\n");
        break;
    }
}

static void append_statements(const tree *t, char *text, size_t size, tree_language language,
                              uint32_t most, tree_random *random)
{
    for (uint32_t i = tree_draw(random, most + 1); i > 0; i--) {
        append_statement(t, text, size, language, random);
    }
}

static void write_text(const char *path, const char *text)
{
    kt_file_write(path, text, strlen(text));
}

static void add_header(tree *t, const char *place, const char *name, tree_language language,
                       tree_random *random)
{
    tree_file *file = &t->files[t->file_count];
    char text[4096] = "";
    char *path = kt_at(t->root, place);
    (void)snprintf(file->path, sizeof(file->path), "%s/%s", path, name);
    append(text, sizeof(text), "#ifndef G%zu\n#define G%zu 1\n", t->file_count, t->file_count);
    if (language != TREE_GLSL || one_in(random, 3)) {
        append_statements(t, text, sizeof(text), language, 2, random);
    }
    if (one_in(random, 3)) {
        append(text, sizeof(text), "#define SWITCH\n");
    }
    append(text, sizeof(text), "#endif\n");
    write_text(file->path, text);
    file->text = strdup(text);
    assert_non_null(file->text);
    t->file_count++;
}

static void make_places(tree *t, tree_random *random)
{
    char path[512];
    assert_int_equal(mkdir(t->root, 0700), 0);
    for (size_t i = 0; i < COUNT(places); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", t->root, places[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    if (one_in(random, 2)) { /* a directory and a file by another name */
        char from[512];
        (void)snprintf(from, sizeof(from), "%s/%s/link", t->root, places[tree_draw(random, 4)]);
        assert_int_equal(symlink("../two", from), 0);
        (void)snprintf(from, sizeof(from), "%s/one/linked.h", t->root);
        assert_int_equal(symlink("../two/a.h", from), 0);
    }
}

static void choose_dirs(tree *t, tree_random *random)
{
    static const char *const orders[][TREE_DIRS] = {{"one", "two"},
                                                    {"two", "one"},
                                                    {"one"},
                                                    {"two/sub", "one", "two"},
                                                    {"one", "src"},
                                                    {"one/../two", "one/."},
                                                    {"missing", "two", "one"}};
    const char *const *order = orders[tree_draw(random, COUNT(orders))];
    for (size_t i = 0; i < TREE_DIRS && order[i] != NULL; i++) {
        (void)snprintf(t->dirs[i], sizeof(t->dirs[i]), "%s/%s", t->root, order[i]);
        t->dir_list[i] = t->dirs[i];
        t->dir_count = i + 1;
    }
}

static const char *body_of(tree_language language)
{
    switch (language) {
    case TREE_C:
        return "#include <kiln_kernel.h>\nKILN_KERNEL(k, KILN_INOUT(float, x))\n"
               "{\n    KILN_ITEMS_X(i)\n    {\n        x[i] += 1;\n    }\n}\n";
    case TREE_OPENCL:
        return "__kernel void k(__global int *x) { x[0] += 1; }\n";
    case TREE_CUDA:
        return "extern \"C\" __global__ void k(int *x) { x[0] += 1; }\n";
    default:
        return "layout(local_size_x = 1) in;\n"
               "layout(std430, binding = 0) buffer B { int x[]; };\nvoid main() { x[0] += 1; }\n";
    }
}

void tree_create(tree *t, const char *root, tree_language language, tree_random *random)
{
    memset(t, 0, sizeof(*t));
    (void)snprintf(t->root, sizeof(t->root), "%s", root);
    make_places(t, random);
    for (size_t i = 0; i < COUNT(places); i++) {
        for (size_t j = 0; j < COUNT(names) && t->file_count < TREE_FILES - 1; j++) {
            if (one_in(random, 2)) {
                add_header(t, places[i], names[j], language, random);
            }
        }
    }
    if (t->file_count == 0) {
        add_header(t, "one", "a.h", language, random);
    }
    choose_dirs(t, random);
    (void)snprintf(t->any_file, sizeof(t->any_file), "%s",
                   t->files[tree_draw(random, (uint32_t)t->file_count)].path);
    if (one_in(random, 2)) {
        (void)snprintf(t->name, sizeof(t->name), "%s/src/k.c", t->root);
    } else {
        (void)snprintf(t->name, sizeof(t->name), "k.c");
    }
    if (language == TREE_GLSL) {
        append(t->source, sizeof(t->source),
               "#version 450\n#extension GL_GOOGLE_include_directive : require\n");
    }
    append_statements(t, t->source, sizeof(t->source), language, 4, random);
    append(t->source, sizeof(t->source), "%s", body_of(language));
}

void tree_edit(const tree_file *file)
{
    char text[4300] = "";
    append(text, sizeof(text), "%s// edited\n", file->text);
    write_text(file->path, text);
}

void tree_restore(const tree_file *file)
{
    write_text(file->path, file->text);
}

void tree_destroy(tree *t)
{
    for (size_t i = 0; i < t->file_count; i++) {
        free(t->files[i].text);
    }
    char *root = strdup(t->root);
    assert_non_null(root);
    kt_tmpdir_remove(root);
}

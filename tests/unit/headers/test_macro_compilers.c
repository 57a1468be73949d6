/* Against real preprocessors: trees of headers with macros, conditions and computed includes made
 * at random, and every file that `cc -M -MG` names, there or missing, is one that kiln found or
 * looked for. It may find more, and it may say that it cannot know; not often, or the test would
 * show nothing. */
#include "closure_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/cmocka.h"

#include "base/strbuf.h"
#include "support/skip.h"
#include "support/tmpdir.h"

#define ROUNDS 40u
#define DIRS 2u
#define FILES 3u
#define OPTIONS_MAX 8

typedef struct compiler {
    const char *command;
    kiln_language language;
} compiler;

static const compiler compilers[] = {
    {"gcc -x c", KILN_LANG_C},
    {"g++ -x c++", KILN_LANG_CUDA},
    {"clang -x c", KILN_LANG_C},
    {"clang -x cl", KILN_LANG_OPENCL_C},
};

/* What came of the rounds. */
typedef struct tally {
    size_t compared, files, refused, bypassed;
} tally;

static uint64_t random_state;

static unsigned pick(unsigned below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

static bool chance(unsigned percent)
{
    return pick(100) < percent;
}

/* --- texts made at random --------------------------------------------------------------------- */

static void put_blank(kn_strbuf *out)
{
    if (chance(3)) {
        kn_strbuf_append_text(out, chance(70) ? " " : "/* a \"comment\" */");
    }
}

/* A part of a path: plain, a macro, or one that is made with ##. */
static void put_part(kn_strbuf *out, char kind, unsigned count)
{
    put_blank(out);
    switch (pick(6)) {
    case 0:
    case 1:
        kn_strbuf_printf(out, "%c%u", kind, pick(count));
        break;
    case 2:
        kn_strbuf_printf(out, "CAT(%c, %u)", kind, pick(count));
        break;
    case 3:
        kn_strbuf_printf(out, "XCAT(%c,N%u)", kind, pick(2));
        break;
    case 4:
        kn_strbuf_printf(out, "SAME(%c%u)", kind, pick(count));
        break;
    default:
        kn_strbuf_printf(out, "%s%u", kind == 'd' ? "DIR" : "FILE", pick(2));
        break;
    }
    put_blank(out);
}

static void put_path(kn_strbuf *out)
{
    if (chance(10)) {
        kn_strbuf_append_text(out, "NONE");
    }
    put_part(out, 'd', DIRS);
    kn_strbuf_append_char(out, '/');
    put_part(out, 'f', FILES);
    kn_strbuf_append_text(out, ".h");
}

/* What can follow an #include. */
static void put_name(kn_strbuf *out)
{
    static const char *const before[] = {"XSTR(", "STR(",        "<",       "ALL(",
                                         "LESS ", "SAME(XSTR)(", "SAME(\"", "<"};
    static const char *const after[] = {")", ")", ">", ")", ">", ")", "\")", ">"};
    if (chance(15)) {
        kn_strbuf_printf(out, "WHOLE%u", pick(2));
        return;
    }
    const unsigned form = pick(sizeof before / sizeof before[0]);
    kn_strbuf_append_text(out, before[form]);
    if (form == 1 || form == 6) { /* nothing in it is expanded */
        kn_strbuf_printf(out, "d%u/f%u.h", pick(DIRS), pick(FILES));
    } else {
        put_path(out);
    }
    kn_strbuf_append_text(out, after[form]);
}

/* A definition of one of the macros that the paths use, or one less. */
static void put_definition(kn_strbuf *out)
{
    switch (pick(6)) {
    case 0:
        kn_strbuf_printf(out, "#define N%u %u\n", pick(2), pick(FILES));
        break;
    case 1:
        kn_strbuf_printf(out, "#define DIR%u d%u\n", pick(2), pick(DIRS));
        break;
    case 2:
        kn_strbuf_printf(out, "# define FILE%u \\\n XCAT(f, N%u)\n", pick(2), pick(2));
        break;
    case 3:
        kn_strbuf_printf(out, "#undef %s%u\n", chance(50) ? "DIR" : "N", pick(2));
        break;
    case 4:
        kn_strbuf_printf(out, "#define DIR%u DIR%u\n", pick(2), pick(2));
        break;
    default:
        kn_strbuf_printf(out, "#define WHOLE%u ", pick(2));
        put_name(out);
        kn_strbuf_append_char(out, '\n');
        break;
    }
}

static void put_lines(kn_strbuf *out, unsigned includes)
{
    for (unsigned i = 2 + pick(4); i > 0; i--) {
        const bool condition = chance(40);
        if (condition) {
            kn_strbuf_printf(out, "#if%sdef %s\n", chance(50) ? "n" : "",
                             chance(50) ? "FLAG" : "DIR0");
        }
        put_definition(out);
        if (condition && chance(50)) {
            kn_strbuf_append_text(out, "#else\n");
            put_definition(out);
        }
        if (condition) {
            kn_strbuf_append_text(out, "#endif\n");
        }
        if (includes > 0 && chance(50)) {
            includes--;
            kn_strbuf_append_text(out, "#include ");
            put_name(out);
            kn_strbuf_append_char(out, '\n');
        }
    }
}

static void write_text(const char *root, const char *name, const kn_strbuf *text)
{
    char *path = kt_at(root, name);
    kt_file_write(path, text->data, text->length);
}

static void write_headers(const char *root)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    for (unsigned i = 0; i < DIRS * FILES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "d%u/f%u.h", i / FILES, i % FILES);
        kn_strbuf_clear(&text);
        kn_strbuf_printf(&text, "#ifndef GUARD%u\n#define GUARD%u\n", i, i);
        if (chance(40)) {
            put_lines(&text, 1);
        }
        kn_strbuf_append_text(&text, "#endif\n");
        write_text(root, name, &text);
    }
    kn_strbuf_deinit(&text);
}

static const char basics[] =
    "#define STR(x) #x\n#define XSTR(x) STR(x)\n#define CAT(a, b) a##b\n#define XCAT(a,b) "
    "CAT(a,b)\n"
    "#define SAME(x) x\n#define ALL(...) XSTR(__VA_ARGS__)\n#define LESS <\n#define NONE\n"
    "#ifndef N0\n#define N0 0\n#endif\n#ifndef FILE0\n#define FILE0 f1\n#endif\n";

static void write_source(const char *root, kn_strbuf *text)
{
    kn_strbuf_append_text(text, basics);
    kn_strbuf_append_text(text, "#define DIR1 d1\n#define N1 2\n#define FILE1 XCAT(f,N0)\n");
    put_lines(text, 1);
    kn_strbuf_append_text(text, "#include ");
    put_name(text);
    kn_strbuf_append_char(text, '\n');
    write_text(root, "source", text);
}

/* --- comparing -------------------------------------------------------------------------------- */

/* Cuts the next name off a make rule and takes its escapes away; NULL at the end. */
static char *next_name(char **rule)
{
    char *p = *rule;
    while (*p == ' ' || *p == '\n' || (*p == '\\' && p[1] == '\n')) {
        p++;
    }
    if (*p == '\0') {
        return NULL;
    }
    char *name = p, *to = p;
    while (*p != '\0' && *p != ' ' && *p != '\n') {
        p += (*p == '\\' && (p[1] == ' ' || p[1] == '#')) || (*p == '$' && p[1] == '$');
        *to++ = *p++;
    }
    *rule = *p != '\0' ? p + 1 : p;
    *to = '\0';
    return name;
}

/* Whether the walk reached the file, or looked for it and found nothing. */
static bool is_known(const kn_header_list *list, const char *root, const char *name)
{
    const size_t length = strlen(root);
    if (strncmp(name, root, length) == 0 && name[length] == '/') {
        name += length + 1;
    }
    for (size_t i = 0; i < list->header_count; i++) {
        if (strcmp(kn_header_list_name(list, list->headers[i].place.name), name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < list->absent_count; i++) {
        if (strcmp(kn_header_list_name(list, list->absent[i].name), name) == 0) {
            return true;
        }
    }
    return false;
}

/* What a compiler opens before the source's first line. */
static bool is_implicit(const char *name)
{
    return strstr(name, "stdc-predef.h") != NULL || strstr(name, "/opencl-c") != NULL;
}

/* The rule that the compiler prints; NULL where it refuses the source. */
static char *ask_compiler(const compiler *with, const char *root, const char *const *options,
                          size_t count)
{
    char command[1024];
    size_t length =
        (size_t)snprintf(command, sizeof command, "%s -w -M -MG -I'%s'", with->command, root);
    for (size_t i = 0; i < count; i++) {
        length += (size_t)snprintf(command + length, sizeof command - length, " '%s'", options[i]);
    }
    (void)snprintf(command + length, sizeof command - length, " '%s/source' 2>'%s/log'", root,
                   root);
    return cw_run_command(command);
}

static void compare_round(const compiler *with, const char *root, const kn_strbuf *text,
                          const char *const *options, size_t count, tally *sum)
{
    char *rule = ask_compiler(with, root, options, count);
    const char *dirs[] = {root};
    kiln_source source = KILN_SOURCE_INIT;
    source.language = with->language;
    source.text = text->data;
    source.length = text->length;
    source.options = options;
    source.option_count = count;
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    const kiln_include_rules complete = {.complete = true};
    kn_closure_request request = {.source = &source, .dir = root, .rules = &complete};
    kn_header_list list;
    char reason[256];
    (void)cw_walk(&request, &list, reason);
    char *rest = rule;
    if (rule == NULL) {
        sum->refused++;
    } else if (reason[0] != '\0') {
        sum->bypassed++;
    } else {
        (void)next_name(&rest); /* the target */
        (void)next_name(&rest); /* the source */
        sum->compared++;
        for (char *name; (name = next_name(&rest)) != NULL;) {
            sum->files += !is_implicit(name);
            if (!is_implicit(name) && !is_known(&list, root, name)) {
                print_error("%s: %s is not known\n%s", with->command, name, text->data);
                fail();
            }
        }
    }
    free(rule);
    kn_header_list_deinit(&list);
}

static void make_dirs(const char *root)
{
    for (unsigned i = 0; i < DIRS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "d%u", i);
        char *path = kt_at(root, name);
        (void)mkdir(path, 0700);
    }
}

static void compare_with(const compiler *with, const char *root)
{
    static const char *const possible[] = {"-DFLAG", "-DN0=2",  "-DDIR0=d1", "-DFILE0=f2",
                                           "-UN1",   "-DNONE=", "-DDIR1=d0"};
    tally sum = {0};
    for (unsigned round = 0; round < ROUNDS; round++) {
        const char *options[OPTIONS_MAX];
        size_t count = 0;
        random_state = round * 7919u + 1;
        for (size_t i = 0; i < sizeof possible / sizeof possible[0]; i++) {
            if (chance(30)) {
                options[count++] = possible[i];
            }
        }
        kn_strbuf text;
        kn_strbuf_init(&text, 0);
        write_headers(root);
        write_source(root, &text);
        compare_round(with, root, &text, options, count, &sum);
        kn_strbuf_deinit(&text);
    }
    print_message("%s: %zu compared (%zu files), %zu refused by the compiler, %zu bypassed\n",
                  with->command, sum.compared, sum.files, sum.refused, sum.bypassed);
    assert_true(sum.compared >= ROUNDS / 4);
    assert_true(sum.bypassed <= sum.compared);
}

static void K1_what_preprocessors_compute_is_found(void **state)
{
    make_dirs(*state);
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
        char probe[64];
        (void)snprintf(probe, sizeof probe, "%s -E /dev/null >/dev/null 2>&1",
                       compilers[i].command);
        if (system(probe) == 0) {
            compare_with(&compilers[i], *state);
        }
    }
}

int main(void)
{
    if (system("gcc --version >/dev/null 2>&1") != 0) {
        kn_test_skip("gcc", "no gcc to compare with");
    }
    const struct CMUnitTest tests[] = {
        kt_dir_test(K1_what_preprocessors_compute_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

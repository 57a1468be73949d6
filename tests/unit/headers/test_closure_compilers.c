/* Against real compilers: whatever `cc -M` says that the compiler opens, kiln has found too (it
 * finds more: branches not taken). The system's headers are the hardest text at hand. */
#include "closure_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/cmocka.h"

#include "base/map.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/file.h"

#define SYSTEM_DIRS 32

/* A header of the compiler's own that brings many. */
#if defined(__x86_64__)
#define VECTORS "immintrin.h"
#elif defined(__s390x__)
#define VECTORS "s390intrin.h"
#else
#define VECTORS "arm_acle.h"
#endif

static const char c_text[] =
    "#include <stdio.h>\n#include <math.h>\n#include <limits.h>\n#include <stdint.h>\n"
    "#include <stdatomic.h>\n#include <string.h>\n#include <time.h>\n#include <" VECTORS ">\n"
    "#include <unistd.h>\n#include <sys/socket.h>\n#include <pthread.h>\n#include <tgmath.h>\n"
    "#include \"own.h\"\n";
static const char cpp_text[] = "#include <vector>\n#include <map>\n#include <string>\n"
                               "#include <atomic>\n#include <cmath>\n#include \"own.h\"\n";

typedef struct compiler {
    const char *command;
    const char *language; /* for -x */
    const char *text;
} compiler;

static const compiler compilers[] = {
    {"gcc", "c", c_text},
    {"clang", "c", c_text},
    {"g++", "c++", cpp_text},
};

/* Cuts the list of dirs out of what `cc -v` prints. */
static size_t parse_dirs(char *text, const char *dirs[SYSTEM_DIRS])
{
    size_t count = 0;
    char *line = strstr(text, "#include <...> search starts here:\n");
    assert_non_null(line);
    line = strchr(line, '\n') + 1;
    while (*line == ' ' && count < SYSTEM_DIRS) {
        char *end = strchr(line, '\n');
        *end = '\0';
        dirs[count++] = line + 1;
        line = end + 1;
    }
    return count;
}

/* Real paths of all headers of a header list. */
static void note_found(const kn_closure_request *request, const kn_header_list *list, kn_map *found)
{
    for (size_t i = 0; i < list->header_count; i++) {
        const kn_place *place = &list->headers[i].place;
        const char *dir =
            place->base == KN_PLACE_SYSTEM ? request->system_dirs[place->index] : request->dir;
        char *path = kt_at(dir, kn_header_list_name(list, place->name));
        char *real = realpath(path, NULL);
        assert_non_null(real);
        assert_true(kn_map_put(found, real, strlen(real), (void *)list, NULL));
        free(real);
    }
}

/* Every file of a make rule but the first must have been found. */
static size_t compare(char *rule, const kn_map *found)
{
    size_t count = 0, missing = 0;
    char *save = NULL;
    (void)strtok_r(rule, " \\\n", &save); /* the target */
    (void)strtok_r(NULL, " \\\n", &save); /* the source */
    for (char *name; (name = strtok_r(NULL, " \\\n", &save)) != NULL; count++) {
        char *real = realpath(name, NULL);
        assert_non_null(real);
        /* gcc opens stdc-predef.h before the source's first line. */
        if (kn_map_find(found, real, strlen(real)) == NULL &&
            strstr(real, "/stdc-predef.h") == NULL) {
            print_error("not found by kiln: %s\n", real);
            missing++;
        }
        free(real);
    }
    assert_int_equal(missing, 0);
    return count;
}

static void compare_with(const compiler *with, const char *dir)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "LC_ALL=C %s -x %s -E -v /dev/null 2>&1 </dev/null",
                   with->command, with->language);
    /* clang is the machine's below, and for its processor. */
    const bool foreign = kn_test_is_emulated() && strncmp(with->command, "clang", 5) == 0;
    char *verbose = foreign ? NULL : cw_run_command(command);
    if (verbose == NULL) {
        print_message("SKIP %s: not here\n", with->command);
        return;
    }
    const char *dirs[SYSTEM_DIRS];
    size_t dir_count = parse_dirs(verbose, dirs);

    char *file = kt_at(dir, "source");
    kt_file_write(file, with->text, strlen(with->text));
    (void)snprintf(command, sizeof command, "%s -x %s -M '%s'", with->command, with->language,
                   file);
    char *rule = cw_run_command(command);
    assert_non_null(rule);

    kiln_source source = KILN_SOURCE_INIT;
    source.language = strcmp(with->language, "c") == 0 ? KILN_LANG_C : KILN_LANG_CUDA;
    source.text = with->text;
    source.length = strlen(with->text);
    const kiln_include_rules complete = {.complete = true};
    kn_closure_request request = {.source = &source,
                                  .dir = dir,
                                  .system_dirs = dirs,
                                  .system_dir_count = dir_count,
                                  .rules = &complete};
    kn_header_list list;
    char reason[256];
    const size_t statted = cw_walk(&request, &list, reason);
    assert_string_equal(reason, "");
    kn_map found;
    kn_map_init(&found);
    note_found(&request, &list, &found);
    size_t count = compare(rule, &found);
    print_message("%s: the compiler opens %zu headers, kiln found %zu (%zu stats)\n", with->command,
                  count, found.count, statted);
    assert_true(count > 20);
    kn_map_deinit(&found);
    kn_header_list_deinit(&list);
    free(rule);
    free(verbose);
}

static void K1_every_header_the_compiler_opens_is_found(void **state)
{
    char *own = kt_at(*state, "own.h");
    const char *text = "#ifndef OWN\n#define OWN\n#include \"own.h\"\n#endif\n";
    kt_file_write(own, text, strlen(text));
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
        compare_with(&compilers[i], *state);
    }
}

int main(void)
{
    if (system("gcc --version >/dev/null 2>&1") != 0) {
        kn_test_skip("gcc", "no gcc to compare with");
    }
    const struct CMUnitTest tests[] = {
        kt_dir_test(K1_every_header_the_compiler_opens_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is mapped: build ids of the image in memory, and who needs whom. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "sys/dylib.h"
#include "sys/file.h"

typedef struct visited {
    size_t count;
    char names[32][64];
    char ids[32][132];
    size_t total; /* visits, kept or not */
} visited;

static void note(void *user, const char *path, const char *build_id)
{
    visited *v = user;
    v->total++;
    if (v->count < 32) {
        (void)snprintf(v->names[v->count], 64, "%s", kn_path_name(path));
        (void)snprintf(v->ids[v->count], 132, "%s", build_id);
        v->count++;
    }
}

static kn_dylib *open_one(const char *path)
{
    const char *const names[] = {path, NULL};
    kiln_probe_outcome outcome;
    kn_dylib *lib;
    assert_int_equal(kn_dylib_open(names, &lib, &outcome, NULL), KILN_OK);
    return lib;
}

/* What readelf says of a file's build id; "" if the tool or the id is absent. */
static void id_by_readelf(const char *path, char *id, size_t size)
{
    char command[1024];
    id[0] = '\0';
    (void)snprintf(command, sizeof command,
                   "readelf -n '%s' 2>/dev/null | sed -n 's/.*Build ID: //p'", path);
    FILE *pipe = popen(command, "r");
    if (pipe != NULL) {
        if (fgets(id, (int)size, pipe) == NULL) {
            id[0] = '\0';
        }
        (void)pclose(pipe);
    }
    id[strcspn(id, "\n")] = '\0';
}

static void a_build_id_is_what_the_linker_wrote(void **state)
{
    char path[4096];
    char id[132];
    char expected[132];
    kn_dylib *lib = open_one(KT_TOP);
    void *address = kn_dylib_symbol(lib, "toy_value");
    assert_true(kn_module_of_address(address, path, sizeof path, id, sizeof id));
    assert_string_equal(path, KT_TOP);
    assert_int_equal(strlen(id), 40);
    id_by_readelf(KT_TOP, expected, sizeof expected);
    if (expected[0] != '\0') {
        assert_string_equal(id, expected);
    }
    kn_dylib_close(lib);
    assert_false(kn_module_of_address(&lib, path, sizeof path, id, sizeof id)); /* the stack */
}

static void the_program_itself_has_a_path(void **state)
{
    static const char here;
    char path[4096];
    char self[4096];
    char id[132];
    assert_true(kn_module_of_address(&here, path, sizeof path, id, sizeof id));
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    assert_string_equal(path, self);
    char small[5];
    assert_true(kn_module_of_address(&here, small, sizeof small, id, sizeof id));
    assert_true(strlen(small) < sizeof small);
}

static void without_an_id_the_size_stands_in(void **state)
{
    char path[4096];
    char id[132];
    kn_dylib *lib = open_one(KT_PLAIN);
    assert_true(
        kn_module_of_address(kn_dylib_symbol(lib, "toy_value"), path, sizeof path, id, sizeof id));
    assert_memory_equal(id, "noid:", 5);
    assert_true(strtol(id + 5, NULL, 10) > 0);
    kn_dylib_close(lib);
}

static void copy_file(const char *from, const char *to)
{
    size_t size = 0;
    char *data = kt_file_read(from, &size);
    assert_non_null(data);
    kt_file_write(to, data, size);
    free(data);
}

static void the_id_is_of_the_image_in_memory(void **state)
{
    char *path = kt_at(*state, "libreplaced.so");
    char *new_path = kt_at(*state, "new.so");
    char mapped[4096];
    char before[132];
    char after[132];
    copy_file(KT_TOP, path);
    kn_dylib *lib = open_one(path);
    void *address = kn_dylib_symbol(lib, "toy_value");
    assert_true(kn_module_of_address(address, mapped, sizeof mapped, before, sizeof before));
    copy_file(KT_OLD, new_path);
    assert_int_equal(rename(new_path, path), 0); /* as a package manager does */
    assert_true(kn_module_of_address(address, mapped, sizeof mapped, after, sizeof after));
    assert_string_equal(before, after);
    kn_dylib_close(lib);
}

static void the_closure_is_complete_and_in_order(void **state)
{
    visited v = {0};
    visited again = {0};
    kn_dylib *lib = open_one(KT_TOP);
    void *address = kn_dylib_symbol(lib, "toy_extra");
    assert_true(kn_module_closure(address, note, &v));
    assert_true(v.count >= 3);
    assert_string_equal(v.names[0], kn_path_name(KT_TOP));
    assert_string_equal(v.names[1], "libkt_middle.so");
    assert_string_equal(v.names[2], "libkt_bottom.so");
    for (size_t i = 0; i < v.count; i++) {
        assert_null(strstr(v.names[i], "libc.so"));
        assert_null(strstr(v.names[i], "ld-linux"));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(v.names[i], v.names[j]);
        }
    }
    assert_string_not_equal(v.ids[0], v.ids[1]);
    assert_string_not_equal(v.ids[1], v.ids[2]);
    kn_dylib *other = open_one(KT_OLD); /* mapped, but not needed */
    assert_true(kn_module_closure(address, note, &again));
    assert_memory_equal(&again, &v, sizeof v);
    kn_dylib_close(other);
    kn_dylib_close(lib);
    again = (visited){0};
    assert_true(kn_module_closure(&v, note, &again)); /* nobody's address */
    assert_int_equal(again.total, 0);
}

static kn_module_choice choose_toys(void *user, const char *path)
{
    const char *name = kn_path_name(path);
    if (strcmp(name, "libkt_middle.so") == 0) {
        return KN_MODULE_ITSELF;
    }
    return strcmp(name, kn_path_name(KT_TOP)) == 0 ? KN_MODULE_WITH_NEEDED : KN_MODULE_NO;
}

static kn_module_choice choose_middle(void *user, const char *path)
{
    return strcmp(kn_path_name(path), "libkt_middle.so") == 0 ? KN_MODULE_ITSELF : KN_MODULE_NO;
}

static kn_module_choice choose_none(void *user, const char *path)
{
    *(size_t *)user += path[0] != '\0';
    return KN_MODULE_NO;
}

static void those_that_are_wanted_are_visited_once(void **state)
{
    visited closure = {0};
    visited v = {0};
    size_t asked = 0;
    kn_dylib *lib = open_one(KT_TOP);
    assert_true(kn_module_closure(kn_dylib_symbol(lib, "toy_extra"), note, &closure));

    /* One that is wanted by itself, and needed by another, brings what it needs all the same. */
    assert_true(kn_module_select(choose_toys, note, &v));
    assert_int_equal(v.count, closure.count);
    for (size_t i = 0; i < closure.count; i++) {
        size_t found = 0;
        for (size_t j = 0; j < v.count; j++) {
            found +=
                strcmp(closure.names[i], v.names[j]) == 0 && strcmp(closure.ids[i], v.ids[j]) == 0;
        }
        assert_int_equal(found, 1);
    }

    v = (visited){0};
    assert_true(kn_module_select(choose_middle, note, &v));
    assert_int_equal(v.count, 1);
    assert_string_equal(v.names[0], "libkt_middle.so");

    assert_true(kn_module_select(choose_none, NULL, &asked));
    assert_true(asked > closure.count); /* this program and the C library, too */
    kn_dylib_close(lib);
}

static void each_visits_all_that_is_mapped(void **state)
{
    visited v = {0};
    bool found = false;
    bool libc = false;
    kn_dylib *lib = open_one(KT_TOP);
    assert_true(kn_module_each(note, &v));
    for (size_t i = 0; i < v.count; i++) {
        found = found || strcmp(v.names[i], kn_path_name(KT_TOP)) == 0;
        libc = libc || strncmp(v.names[i], "libc.so", 7) == 0 ||
               strncmp(v.names[i], "ld-musl", 7) == 0; /* which is both */
    }
    assert_true(found && libc);
    kn_dylib_close(lib);
}

static void open_another(void *user, const char *path, const char *build_id)
{
    if (*(int *)user == 0) {
        kn_dylib_close(open_one(KT_OLD));
        *(int *)user = 1;
    }
}

static void a_visitor_may_load_libraries(void **state)
{
    int done = 0;
    assert_true(kn_module_each(open_another, &done));
    assert_int_equal(done, 1);
}

static bool look(void *user)
{
    visited v = {0};
    static const char here;
    bool all = kn_module_each(note, &v);
    assert_int_equal(all, v.total > 0);
    v = (visited){0};
    bool closed = kn_module_closure(&here, note, &v);
    assert_int_equal(closed, v.total > 0);
    return all && closed;
}

static void want_of_memory_visits_nothing(void **state)
{
    assert_true(kt_failalloc_each(look, NULL) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_build_id_is_what_the_linker_wrote),
        cmocka_unit_test(the_program_itself_has_a_path),
        cmocka_unit_test(without_an_id_the_size_stands_in),
        kt_dir_test(the_id_is_of_the_image_in_memory),
        cmocka_unit_test(the_closure_is_complete_and_in_order),
        cmocka_unit_test(those_that_are_wanted_are_visited_once),
        cmocka_unit_test(each_visits_all_that_is_mapped),
        cmocka_unit_test(a_visitor_may_load_libraries),
        cmocka_unit_test(want_of_memory_visits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

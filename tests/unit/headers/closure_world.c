/* See closure_world.h. */
#include "closure_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/strbuf.h"
#include "headers/closure_walk.h"
#include "support/tmpdir.h"
#include "sys/clock.h"
#include "sys/file.h"

void cw_write_text(world *w, const char *name, const char *text)
{
    char *path = kt_at(w->root, name);
    for (char *p = path + strlen(w->root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *p = '/';
    }
    kt_file_write(path, text, strlen(text));
}

/* Sets a file's mtime, and waits for nothing: ctime becomes now. */
void cw_set_mtime(world *w, const char *name, time_t seconds)
{
    char *path = kt_at(w->root, name);
    struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

void cw_let_settle(void)
{
    const struct timespec pause = {2, 100000000};
    (void)nanosleep(&pause, NULL);
}

void cw_remove_file(world *w, const char *name)
{
    char *path = kt_at(w->root, name);
    assert_int_equal(unlink(path), 0);
}

void cw_make_link(const char *target, const char *path)
{
    assert_int_equal(symlink(target, path), 0);
    cw_let_age(path);
}

void cw_let_age(const char *path)
{
    kn_file_facts facts;
    assert_int_equal(kn_file_stat(path, false, &facts, NULL), KILN_OK);
    while (kn_clock_wall_roughly() <= facts.ctime_ns) {
        kn_clock_sleep(1000000);
    }
}

int cw_setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->root = kt_tmpdir_create();
    w->dir = kt_path(w->root, "src");
    assert_int_equal(mkdir(w->dir, 0700), 0);
    w->source = (kiln_source)KILN_SOURCE_INIT;
    w->source.language = KILN_LANG_C;
    w->source.name = "kernel.c";
    w->request.source = &w->source;
    w->request.dir = w->dir;
    w->request.rules = &w->rules;
    w->request.list_vouches = true; /* cw_first_recipe() has the text */
    *state = w;
    return 0;
}

int cw_teardown(void **state)
{
    world *w = *state;
    kiln_cache_destroy(w->cache);
    for (size_t i = 0; i < MAX_DIRS; i++) {
        free(w->dirs[i]);
        free(w->system[i]);
    }
    free(w->dir);
    kt_tmpdir_remove(w->root);
    free(w);
    return 0;
}

void cw_set_source(world *w, const char *text)
{
    w->source.text = text;
    w->source.length = strlen(text);
}

void cw_add_dir(world *w, const char *name)
{
    size_t n = w->source.include_dir_count++;
    w->dirs[n] = kt_path(w->root, name);
    (void)mkdir(w->dirs[n], 0700);
    w->source.include_dirs = (const char *const *)w->dirs;
}

void cw_add_system(world *w, const char *name)
{
    size_t n = w->request.system_dir_count++;
    w->system[n] = kt_path(w->root, name);
    (void)mkdir(w->system[n], 0700);
    w->request.system_dirs = (const char *const *)w->system;
}

void cw_add_cache(world *w)
{
    kiln_cache_options options;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    char *root = kt_path(w->root, "cache");
    options.root = root;
    options.flags = 0;
    options.no_fsync = true;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    free(root);
    w->request.cache = w->cache;
}

kiln_recipe *cw_first_recipe(const world *w)
{
    kiln_recipe *recipe;
    assert_int_equal(kiln_recipe_create("test.stage", 1, &recipe, NULL), KILN_OK);
    kiln_recipe_add_text(recipe, "source", w->source.text, w->source.length);
    return recipe;
}

kiln_recipe *cw_list_recipe(const world *w, const char *stage, const char *search)
{
    kiln_recipe *first = cw_first_recipe(w), *recipe;
    kiln_key key = kiln_recipe_key(first);
    char text[KILN_KEY_TEXT_SIZE];
    kiln_key_format(&key, text);
    assert_int_equal(kiln_recipe_create(stage, KN_MANIFEST_VERSION, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, "any");
    kiln_recipe_add_text(recipe, "first", text, 64);
    kiln_recipe_add_text(recipe, "search", search, strlen(search));
    kiln_recipe_destroy(first);
    return recipe;
}

answer cw_find(world *w)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_recipe *recipe = cw_first_recipe(w);
    w->request.first = recipe;
    kn_closure *closure;
    assert_int_equal(kn_closure_find(&w->request, &closure, &diag), KILN_OK);
    answer result = {*closure, {{0}}};
    if (!closure->bypass) {
        assert_int_equal(kn_closure_add_to(closure, recipe, &diag), KILN_OK);
        assert_true(w->names_root || strstr(kiln_recipe_text(recipe), w->root) == NULL);
        result.key = kiln_recipe_key(recipe);
        assert_true(kn_closure_still_true(closure));
        kn_closure_save(closure);
    } else {
        assert_int_equal(kn_closure_add_to(closure, recipe, &diag), KILN_E_INVALID);
    }
    kn_closure_destroy(closure);
    kiln_recipe_destroy(recipe);
    kiln_diag_clear(&diag);
    return result;
}

/* Finds, and demands that it is not a bypass. */
answer cw_find_good(world *w)
{
    answer result = cw_find(w);
    assert_string_equal(result.facts.reason, "");
    assert_false(result.facts.bypass);
    return result;
}

bool cw_same(answer a, answer b)
{
    return memcmp(&a.key, &b.key, sizeof a.key) == 0;
}

void cw_expect_bypass(world *w, const char *reason)
{
    answer result = cw_find(w);
    assert_true(result.facts.bypass);
    assert_string_equal(result.facts.reason, reason);
}

char *cw_run_command(const char *command)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    char part[4096];
    size_t size;
    while ((size = fread(part, 1, sizeof part, pipe)) > 0) {
        kn_strbuf_append(&text, part, size);
    }
    kn_strbuf_append_char(&text, '\0');
    if (pclose(pipe) != 0) {
        kn_strbuf_deinit(&text);
        return NULL;
    }
    return kn_strbuf_detach(&text, &size);
}

size_t cw_walk(const kn_closure_request *request, kn_header_list *list, char reason[256])
{
    kn_include_path path;
    kn_walk_facts facts;
    reason[0] = '\0';
    assert_int_equal(kn_include_path_init(&path, request), KILN_OK);
    kn_header_list_init(list);
    assert_int_equal(kn_closure_walk(&path, list, &facts, reason, 256), KILN_OK);
    const size_t statted = path.statted;
    kn_include_path_deinit(&path);
    return statted;
}

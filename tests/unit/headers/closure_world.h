/* What the tests of the closure share: one source in a directory of its own, with include dirs,
 * system dirs and a cache as a test wants them. Everything aborts the test on trouble. */
#ifndef KILN_TESTS_CLOSURE_WORLD_H
#define KILN_TESTS_CLOSURE_WORLD_H

#include <stdbool.h>
#include <time.h>

#include "headers/closure.h"

#define MAX_DIRS 8
#define LONG_AGO 1500000000

#define cw_test(name) cmocka_unit_test_setup_teardown(name, cw_setup, cw_teardown)

/* One source in a directory of its own. Tests fill the request and call cw_find(). */
typedef struct world {
    char *root;
    char *dir; /* root/src */
    char *dirs[MAX_DIRS];
    char *system[MAX_DIRS];
    kiln_source source;
    kn_closure_request request;
    kiln_include_rules rules; /* the request's */
    kiln_cache *cache;
    bool names_root; /* the source names the root itself, so the key may */
} world;

/* What one kn_closure_find gave. */
typedef struct answer {
    kn_closure facts;
    kiln_key key;
} answer;

/* Tests fill the source and the request, and call cw_find(). Names are relative to the root. */
void cw_write_text(world *w, const char *name, const char *text);
void cw_set_mtime(world *w, const char *name, time_t seconds);
/* ctime cannot be set by hand, and a young one is not trusted: waits it out. */
void cw_let_settle(void);
void cw_remove_file(world *w, const char *name);
/* Makes a link that is older than what comes after: a compile that begins in the same tick of the
 * clock cannot know whether it changed meanwhile, and is not stored. The second is for one that was
 * made or moved by other means. */
void cw_make_link(const char *target, const char *path);
void cw_let_age(const char *path);
int cw_setup(void **state);
int cw_teardown(void **state);
void cw_set_source(world *w, const char *text);
void cw_add_dir(world *w, const char *name);
void cw_add_system(world *w, const char *name);
void cw_add_cache(world *w);
kiln_recipe *cw_first_recipe(const world *w);
/* The recipe of a list of the source's headers (docs/reference/formats.md). */
kiln_recipe *cw_list_recipe(const world *w, const char *stage, const char *search);
answer cw_find(world *w);
answer cw_find_good(world *w);
bool cw_same(answer a, answer b);
void cw_expect_bypass(world *w, const char *reason);

/* The output of a command with a NUL after it, malloc'ed; NULL if it fails. */
char *cw_run_command(const char *command);
/* kn_closure_walk, which must not fail; the list is the caller's. How many looks it took. */
size_t cw_walk(const kn_closure_request *request, kn_header_list *list, char reason[256]);

#endif

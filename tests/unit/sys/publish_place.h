/* What the tests of publishing share: a directory with a place for temporaries, over the fault
 * injector where that is preloaded. */
#ifndef KILN_TESTS_PUBLISH_PLACE_H
#define KILN_TESTS_PUBLISH_PLACE_H

#include <stdlib.h>

#include "support/cmocka.h"
#include "support/faultfs.h"
#include "support/tmpdir.h"

typedef struct place {
    char *root;
    char *tmp;
    char *final_path;
} place;

static inline int publish_begin(void **state)
{
    static place p;
    p.root = kt_tmpdir_create();
    p.tmp = kt_at(p.root, "tmp");
    p.final_path = kt_at(p.root, "v1/ab/entry");
    *state = &p;
    return 0;
}

static inline int publish_end(void **state)
{
    place *p = *state;
    if (kt_faultfs_available()) {
        kt_faultfs_set("", "");
    }
    kt_tmpdir_remove(p->root);
    return 0;
}

static inline void assert_published(const place *p, const char *text)
{
    char *found = kt_file_read(p->final_path, NULL);
    assert_non_null(found);
    assert_string_equal(found, text);
    free(found);
    assert_int_equal(kt_file_count(p->tmp), 0);
}

#define publish_test(f) cmocka_unit_test_setup_teardown(f, publish_begin, publish_end)

#endif

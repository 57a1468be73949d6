/* A mistake in a manifest that is right but for it. */
#ifndef KILN_TESTS_UNIT_PROGRAMS_MANIFEST_BROKEN_H
#define KILN_TESTS_UNIT_PROGRAMS_MANIFEST_BROKEN_H

#include <string.h>

#include "manifest/manifest.h"
#include "support/cmocka.h"

/* Replaces `from` in the manifest `whole` by `to` and expects the complaint, in one line. */
static inline void manifest_broken(const char *whole, const char *from, const char *to,
                                   const char *place, const char *why)
{
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    const char *at = strstr(whole, from);
    assert_non_null(at);
    char *text = pool_format(&pool, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    assert_non_null(text);
    assert_int_equal(manifest_parse(text, strlen(text), "m.json", &pool, &manifest, &diag),
                     KILN_E_INVALID);
    assert_string_equal(diag.what, place);
    if (strstr(diag.why, why) == NULL) {
        fail_msg("\"%s\" where \"%s\" was expected", diag.why, why);
    }
    assert_null(strchr(diag.why, '\n'));
    pool_deinit(&pool);
}

#endif

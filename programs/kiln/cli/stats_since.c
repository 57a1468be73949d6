/* See stats_since.h. */
#include "cli/stats_since.h"

#include <stdlib.h>

#include <jansson.h>

#include <kiln/unstable/counters.h>

#include "cli/host.h"

enum { LIMIT = 16 << 20 };

kiln_status stats_since(const char *path, uint64_t counters[KILN_COUNTERS], kiln_diag *diag)
{
    char *text = NULL;
    size_t size = 0;
    kiln_status status = host_read_file(path, LIMIT, &text, &size, diag);
    if (status != KILN_OK) {
        return status;
    }
    json_t *root = json_loadb(text, size, 0, NULL);
    const json_t *then = json_object_get(root, "counters");
    if (!json_is_object(then)) {
        status = kiln_diag_set(diag, KILN_E_INVALID, "give what kiln stats --json printed", path,
                               "it has no counters");
    }
    for (uint32_t i = 0; status == KILN_OK && i < KILN_COUNTERS; i++) {
        const json_t *value = json_object_get(then, kiln_counter_name(i));
        const json_int_t before = json_is_integer(value) ? json_integer_value(value) : 0;
        if (before > 0 && (uint64_t)before <= counters[i]) {
            counters[i] -= (uint64_t)before;
        }
    }
    json_decref(root);
    free(text);
    return status;
}

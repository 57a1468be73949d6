/* Text that claims to be OpenMetrics: refused with the file and the reason, or series of points in
 * the order of time. */
#include "fuzz/fuzz.h"
#include "page/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cli_pool pool = POOL_INIT;
    metrics_set set = {.pool = &pool};
    kiln_diag diag = KILN_DIAG_INIT;
    char *text = pool_text(&pool, (const char *)data, size);
    if (text == NULL) {
        return 0;
    }
    if (metrics_parse(&set, "m.prom", text, size, &diag) != KILN_OK) {
        if (diag.what[0] == '\0' || diag.why[0] == '\0') {
            abort();
        }
    } else if (set.count == 0) {
        abort();
    }
    for (size_t i = 0; diag.status == KILN_OK && i < set.count; i++) {
        const metrics_series *series = &set.series[i];
        for (size_t j = 1; j < series->count; j++) {
            if (series->points[j - 1].time >= series->points[j].time) {
                abort();
            }
        }
    }
    kiln_diag_clear(&diag);
    pool_deinit(&pool);
    return 0;
}

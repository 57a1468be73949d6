/* Opening the backend: whether there is a hipRTC, by its file, which is not opened; and the runtime
 * next to it, where something is to run. */
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/locate.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/clock.h"
#include "sys/process.h"

/* What nothing runs on still compiles. */
static void add_compiler(kiln_probe_report *report)
{
    const size_t used = strlen(report->why);
    kn_text_put(report->why + used, sizeof(report->why) - used, "; hipRTC found: it compiles");
    if (report->outcome == KILN_PROBE_SKIPPED) {
        kn_text_put(report->fix, sizeof(report->fix),
                    "compile with --target hip:gfx90a; run through OpenCL or Vulkan");
    }
}

static void look_for_devices(kn_hip *hip, kiln_probe_report *report)
{
    if (hip->host->compile_only) {
        report->outcome = KILN_PROBE_SKIPPED;
        kn_text_put(report->why, sizeof(report->why), "the runtime was not opened");
    } else {
        kn_hip_runtime_open(hip, report);
    }
    add_compiler(report);
}

kiln_status kn_hip_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                        kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    *out_instance = NULL;
    kn_hip *hip = (kn_hip *)calloc(1, sizeof(*hip));
    if (hip == NULL) {
        return kn_no_memory(diag, "hip");
    }
    const uint64_t start = kn_clock_now();
    hip->host = host;
    hip->process = kn_process_id();
    kn_mutex_init(&hip->lock);
    kn_text_put(report->backend, sizeof(report->backend), "hip");
    if (kn_hip_locate(hip)) {
        kn_text_put(report->library, sizeof(report->library), hip->library);
        look_for_devices(hip, report);
    } else {
        report->outcome = KILN_PROBE_LIBRARY_MISSING;
        kn_text_put(report->why, sizeof(report->why), kn_hip_names.missing);
        kn_text_put(report->fix, sizeof(report->fix), kn_hip_names.install);
        status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, kn_hip_names.install, "hip", "%s", report->why);
    }
    report->probe_ns = kn_clock_now() - start;
    if (status != KILN_OK) {
        kn_hip_close(hip);
        return status;
    }
    *out_instance = hip;
    return KILN_OK;
}

void kn_hip_close(void *instance)
{
    kn_hip *hip = (kn_hip *)instance;
    if (hip == NULL) {
        return;
    }
    kn_hip_library_close(hip);
    kn_dylib_retire(hip->runtime_lib); /* it has threads and exit handlers */
    kn_hip_facts_deinit(&hip->facts);
    kn_mutex_deinit(&hip->lock);
    free(hip);
}

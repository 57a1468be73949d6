/* Opening the backend: whether there is a hipRTC, by its file. No library is opened here. */
#include <stdlib.h>
#include <string.h>

#include "backends/hip/instance.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/clock.h"

static const char install[] = "install ROCm's hipRTC (Debian: libamdhip64-5), or set ROCM_PATH to "
                              "the directory above its lib";

kiln_status kn_hip_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                        kiln_diag *diag)
{
    *out_instance = NULL;
    kn_hip *hip = (kn_hip *)calloc(1, sizeof(*hip));
    if (hip == NULL) {
        return kn_no_memory(diag, "hip");
    }
    const uint64_t start = kn_clock_now();
    hip->host = host;
    kn_mutex_init(&hip->lock);
    const bool found = kn_hip_locate(hip);
    kn_text_put(report->backend, sizeof(report->backend), "hip");
    kn_text_put(report->library, sizeof(report->library), hip->library);
    report->outcome = found ? KILN_PROBE_NO_DEVICE : KILN_PROBE_LIBRARY_MISSING;
    kn_text_put(report->why, sizeof(report->why),
                found ? "hipRTC found; kiln compiles for AMD GPUs with it, and does not run on them"
                      : "no libhiprtc.so, and no libamdhip64.so.5 with hipRTC in it");
    kn_text_put(report->fix, sizeof(report->fix),
                found ? "compile with --target hip:gfx90a; run through OpenCL or Vulkan" : install);
    report->probe_ns = kn_clock_now() - start;
    if (!found) {
        kiln_status status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, "hip", "%s", report->why);
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
    kn_hip_facts_deinit(&hip->facts);
    kn_mutex_deinit(&hip->lock);
    free(hip);
}

/* Targets ("sm_90", "sm_90a", "compute_90") and the stages that lead to code for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/instance.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"

/* First and last NVRTC release (major * 10 + minor) that makes machine code for an architecture; 0
 * as last: still does. From the CUDA release notes; what NVRTC itself says is checked when it
 * compiles. An architecture that is not listed is newer than this table: PTX and the driver serve
 * it. */
static const struct {
    int arch, first, last;
} known[] = {
    {50, 110, 129}, {52, 110, 129}, {53, 110, 129}, {60, 110, 129}, {61, 110, 129},  {62, 110, 129},
    {70, 110, 129}, {72, 110, 129}, {75, 110, 0},   {80, 110, 0},   {86, 111, 0},    {87, 114, 0},
    {88, 130, 0},   {89, 118, 0},   {90, 118, 0},   {100, 128, 0},  {101, 128, 129}, {103, 129, 0},
    {110, 130, 0},  {120, 128, 0},  {121, 129, 0},
};

static bool makes_machine_code(const kn_cuda_toolkit *toolkit, int arch)
{
    const int version = toolkit->major * 10 + toolkit->minor;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].arch == arch) {
            /* 11.0 has no nvrtcGetCUBIN. */
            return version >= 111 && version >= known[i].first &&
                   (known[i].last == 0 || version <= known[i].last);
        }
    }
    return false;
}

int kn_cuda_virtual_arch(const kn_cuda_toolkit *toolkit, int wanted)
{
    const int version = toolkit->major * 10 + toolkit->minor;
    int best = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].arch <= wanted && known[i].arch > best && version >= known[i].first &&
            (known[i].last == 0 || version <= known[i].last)) {
            best = known[i].arch;
        }
    }
    return best > 0 ? best : wanted;
}

static kiln_status fill_target(const kn_cuda *cuda, const kn_cuda_target *wanted,
                               kiln_target *out_target, kiln_diag *diag)
{
    kn_cuda_target *handle = (kn_cuda_target *)malloc(sizeof(*handle));
    if (handle == NULL) {
        return kn_no_memory(diag, "cuda target");
    }
    *handle = *wanted;
    handle->exact = !wanted->virtual_only && makes_machine_code(&cuda->toolkit, wanted->arch);
    const char suffix[2] = {wanted->suffix, '\0'};
    kn_text_putf(out_target->name, sizeof(out_target->name), "cuda-%s_%d%s",
                 wanted->virtual_only ? "compute" : "sm", wanted->arch, suffix);
    out_target->handle = handle;
    return KILN_OK;
}

kiln_status kn_cuda_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                     kiln_diag *diag)
{
    kn_cuda *cuda = (kn_cuda *)instance;
    kiln_device_info info;
    kiln_status status = kn_cuda_device_info(cuda, device_index, &info, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_cuda_target wanted = {0};
    wanted.arch = (int)strtol(info.target + strlen("sm_"), NULL, 10);
    out_target->has_device = true;
    out_target->device_index = device_index;
    return fill_target(cuda, &wanted, out_target, diag);
}

kiln_status kn_cuda_target_parse(void *instance, const char *name, kiln_target *out_target,
                                 kiln_diag *diag)
{
    kn_cuda *cuda = (kn_cuda *)instance;
    kn_cuda_target wanted = {0};
    if (strcmp(name, "native") == 0) {
        return cuda->device_count > 0
                   ? kn_cuda_target_of_device(cuda, 0, out_target, diag)
                   : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "name the target, as in cuda:sm_90",
                                   "cuda target", "there is no GPU here to compile for");
    }
    wanted.virtual_only = kn_text_starts(name, "compute_");
    const char *digits = name + (wanted.virtual_only ? strlen("compute_") : strlen("sm_"));
    char *end = NULL;
    if (wanted.virtual_only || kn_text_starts(name, "sm_")) {
        wanted.arch = (int)strtol(digits, &end, 10);
        wanted.suffix = *end;
    }
    if (end == NULL || end == digits || wanted.arch < 50 || wanted.arch > 999 ||
        (wanted.suffix != '\0' &&
         ((wanted.suffix != 'a' && wanted.suffix != 'f') || end[1] != 0))) {
        return kiln_diag_set(diag, KILN_E_INVALID, "name it as in sm_90, sm_90a or compute_90",
                             "cuda target", "'%.40s' is not a CUDA architecture", name);
    }
    return fill_target(cuda, &wanted, out_target, diag);
}

void kn_cuda_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    free(target->handle);
    target->handle = NULL;
}

const kiln_stage *kn_cuda_stages(void *instance, const kiln_target *target, kiln_language language,
                                 size_t *out_count)
{
    static const kiln_stage to_cubin[] = {
        {KN_STAGE_AT(cuda_cubin), KILN_LANG_CUBIN, true, false, false},
    };
    static const kiln_stage to_ptx[] = {
        {KN_STAGE_AT(cuda_ptx), KILN_LANG_PTX, true, true, false},
        {KN_STAGE_AT(cuda_jit), KILN_LANG_CUBIN, false, false, true},
    };
    static const kiln_stage from_ptx[] = {
        {KN_STAGE_AT(cuda_jit), KILN_LANG_CUBIN, true, false, true},
    };
    (void)instance;
    const kn_cuda_target *wanted = (const kn_cuda_target *)target->handle;
    switch (language) {
    case KILN_LANG_CUDA:
        if (wanted->exact) {
            *out_count = 1;
            return to_cubin;
        }
        *out_count = wanted->virtual_only ? 1 : 2;
        return to_ptx;
    case KILN_LANG_PTX:
        *out_count = 1;
        return from_ptx;
    case KILN_LANG_CUBIN:
    case KILN_LANG_FATBIN: /* loaded as they are: no stages */
        *out_count = 0;
        return from_ptx;
    default:
        *out_count = 0;
        return NULL;
    }
}

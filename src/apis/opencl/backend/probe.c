/* Opens libOpenCL, lists every device of every platform, and says what it found. A platform that
 * fails is named in the report and hides no other. */
#include "apis/opencl/backend/opencl.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/probe.h"

#include "apis/opencl/backend/status.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"

/* More than these are a broken driver, not a machine. */
#define MAX_PLATFORMS 64u
#define MAX_DEVICES 256u

typedef struct listing {
    kn_opencl *cl;
    kn_strbuf troubles; /* "; "-separated */
    bool too_old;       /* a device was left out for its version */
} listing;

static void note_platform(listing *list, const char *platform, const char *why)
{
    kn_strbuf_printf(&list->troubles, "%splatform '%s': %s", list->troubles.length > 0 ? "; " : "",
                     platform, why);
}

static kiln_status add_unit(listing *list, cl_platform_id platform, cl_device_id device,
                            const char *platform_name)
{
    kn_opencl *cl = list->cl;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_opencl_unit *grown = realloc(cl->units, (cl->unit_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return KILN_E_NOMEM;
    }
    cl->units = grown;
    kn_opencl_unit *unit = &grown[cl->unit_count];
    if (kn_opencl_unit_init(&cl->api, platform, device, unit, &diag) == KILN_OK) {
        unit->info.index = (uint32_t)cl->unit_count++;
    } else {
        note_platform(list, platform_name, diag.why);
        list->too_old = true;
    }
    kiln_diag_clear(&diag);
    return KILN_OK;
}

static kiln_status list_platform(listing *list, cl_platform_id platform)
{
    const kn_opencl_api *api = &list->cl->api;
    char name[KILN_DEVICE_TEXT];
    kn_opencl_platform_text(api, platform, CL_PLATFORM_NAME, name, sizeof(name));
    cl_uint count = 0;
    cl_int code = api->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code != CL_SUCCESS || count == 0) {
        note_platform(list, name, code == CL_SUCCESS ? "no device" : kn_opencl_error_name(code));
        return KILN_OK;
    }
    count = count < MAX_DEVICES ? count : MAX_DEVICES;
    cl_device_id *devices = calloc(count, sizeof(cl_device_id));
    if (devices == NULL) {
        return KILN_E_NOMEM;
    }
    kiln_status status = KILN_OK;
    code = api->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices, NULL);
    if (code != CL_SUCCESS) {
        note_platform(list, name, kn_opencl_error_name(code));
        count = 0;
    }
    for (cl_uint i = 0; i < count && status == KILN_OK && devices[i] != NULL; i++) {
        status = add_unit(list, platform, devices[i], name);
    }
    free(devices);
    return status;
}

/* The loader reads its variables at its first call. */
static cl_int get_platforms(const kn_opencl_api *api, cl_platform_id *platforms, cl_uint *out_count)
{
    kn_env_kept files = kn_env_keep("OCL_ICD_FILENAMES");
    kn_env_kept layers = kn_env_keep("OPENCL_LAYERS");
    const cl_int code = api->clGetPlatformIDs(MAX_PLATFORMS, platforms, out_count);
    kn_env_mend(&layers);
    kn_env_mend(&files);
    return code;
}

static kiln_status list_platforms(listing *list, cl_int *out_code, cl_uint *out_count)
{
    cl_platform_id platforms[MAX_PLATFORMS] = {NULL};
    kiln_status status = KILN_OK;
    *out_code = get_platforms(&list->cl->api, platforms, out_count);
    if (*out_code != CL_SUCCESS) {
        *out_count = 0;
        return KILN_OK;
    }
    *out_count = *out_count < MAX_PLATFORMS ? *out_count : MAX_PLATFORMS;
    /* Fewer than were counted is an answer that some loaders give. */
    for (cl_uint i = 0; i < *out_count && status == KILN_OK && platforms[i] != NULL; i++) {
        status = list_platform(list, platforms[i]);
    }
    return status;
}

static void report_set(kiln_probe_report *report, kiln_probe_outcome outcome, const char *why,
                       const char *fix)
{
    report->outcome = outcome;
    kn_text_put(report->why, sizeof(report->why), why);
    kn_text_put(report->fix, sizeof(report->fix), fix != NULL ? fix : "");
}

static void report_devices(kiln_probe_report *report, const listing *list, cl_uint platforms)
{
    const kn_opencl *cl = list->cl;
    const char *troubles = kn_strbuf_text(&list->troubles);
    kn_text_put(report->version, sizeof(report->version), cl->units[0].platform_version);
    report->device_count = (uint32_t)cl->unit_count;
    report_set(report, KILN_PROBE_READY, "", NULL);
    kn_text_putf(report->why, sizeof(report->why), "%zu device%s on %u platform%s%s%s",
                 cl->unit_count, cl->unit_count == 1 ? "" : "s", platforms,
                 platforms == 1 ? "" : "s", troubles[0] != '\0' ? "; left out: " : "", troubles);
}

static kiln_status count_registration(void *user, const char *name)
{
    static const char end[] = ".icd";
    const size_t length = strlen(name);
    unsigned *count = (unsigned *)user;
    *count += length >= sizeof(end) && strcmp(name + length - (sizeof(end) - 1), end) == 0;
    return KILN_OK;
}

/* The loader does not say why it lists nothing. */
static void report_no_platform(kiln_probe_report *report)
{
    const char *named = kn_env_get("OCL_ICD_VENDORS");
    const char *dir = named != NULL && named[0] != '\0' ? named : "/etc/OpenCL/vendors";
    unsigned count = 0;
    kn_ignore(kn_file_list(dir, count_registration, &count, NULL)); /* or there is none */
    if (count == 0) {
        report_set(report, KILN_PROBE_NO_DEVICE,
                   "the OpenCL loader is there, but no driver is registered with it (no file "
                   "in /etc/OpenCL/vendors)",
                   "install your device's OpenCL driver (for the processor, on Debian: "
                   "pocl-opencl-icd)");
        return;
    }
    report_set(report, KILN_PROBE_NO_DEVICE, "",
               "look with ldd at the libraries that the files name, and at the limits of memory "
               "(ulimit -v) and of open files (ulimit -n)");
    kn_text_putf(report->why, sizeof(report->why),
                 "the OpenCL loader is there, but could open no driver: %u registered in %.200s",
                 count, dir);
}

/* No device is left: why, from the most to the least specific cause. */
static void report_nothing(kiln_probe_report *report, const listing *list, cl_int code,
                           cl_uint platforms)
{
    const char *troubles = kn_strbuf_text(&list->troubles);
    if (code != CL_SUCCESS && code != -1001) {
        report_set(report, KILN_PROBE_FAILED, "", "reinstall the OpenCL drivers");
        kn_text_putf(report->why, sizeof(report->why), "clGetPlatformIDs returned %s (%d)",
                     kn_opencl_error_name(code), (int)code);
    } else if (platforms == 0) {
        report_no_platform(report);
    } else if (list->too_old) {
        report_set(report, KILN_PROBE_DRIVER_TOO_OLD, troubles, "install a newer OpenCL driver");
    } else if (strstr(troubles, "Portable Computing Language") != NULL) {
        report_set(
            report, KILN_PROBE_NO_DEVICE, troubles,
            "let PoCL write to its cache: set HOME or POCL_CACHE_DIR to a directory that can "
            "be written");
    } else {
        report_set(report, KILN_PROBE_NO_DEVICE, troubles,
                   "check that you may open the device's files (/dev/dri/renderD*, /dev/kfd: "
                   "groups render and video) and that its driver is loaded");
    }
}

static kiln_status list_devices(kn_opencl *cl, kiln_probe_report *report, kiln_diag *diag)
{
    listing list = {.cl = cl};
    cl_int code = CL_SUCCESS;
    cl_uint platforms = 0;
    kn_strbuf_init(&list.troubles, sizeof(report->why));
    kiln_status status = list_platforms(&list, &code, &platforms);
    if (status != KILN_OK) {
        report_set(report, KILN_PROBE_FAILED, "out of memory", NULL);
        (void)kiln_diag_set(diag, status, NULL, "listing OpenCL devices", NULL);
    } else if (cl->unit_count > 0) {
        report_devices(report, &list, platforms);
    } else {
        report_nothing(report, &list, code, platforms);
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, "looking for OpenCL devices",
                               "%s", report->why);
    }
    kn_strbuf_deinit(&list.troubles);
    return status;
}

static kiln_status open_library(kn_opencl *cl, kiln_probe_report *report, kiln_diag *diag)
{
    kiln_diag own = KILN_DIAG_INIT;
    kiln_diag *told = diag != NULL ? diag : &own;
    kiln_status status = kn_opencl_library_open(&cl->lib, &cl->api, report->library,
                                                sizeof(report->library), &report->outcome, told);
    if (status != KILN_OK) {
        bool missing = report->outcome == KILN_PROBE_LIBRARY_MISSING;
        report_set(report, report->outcome, told->why,
                   missing ? "install the OpenCL loader (Debian: ocl-icd-libopencl1) and a driver"
                           : told->fix);
    }
    kiln_diag_clear(&own);
    return status;
}

kiln_status kn_opencl_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                           kiln_diag *diag)
{
    kn_opencl *cl = calloc(1, sizeof(*cl));
    if (cl == NULL) {
        report_set(report, KILN_PROBE_FAILED, "out of memory", NULL);
        return kn_no_memory(diag, "opening OpenCL");
    }
    kn_mutex_init(&cl->lock);
    cl->host = host;
    kiln_status status = open_library(cl, report, diag);
    if (status == KILN_OK) {
        status = list_devices(cl, report, diag);
    }
    if (status != KILN_OK) {
        kn_opencl_close(cl);
        return status;
    }
    *out_instance = cl;
    return KILN_OK;
}

void kn_opencl_close(void *instance)
{
    kn_opencl *cl = (kn_opencl *)instance;
    if (cl == NULL) {
        return;
    }
    for (size_t i = 0; i < cl->unit_count; i++) {
        free(cl->units[i].modules);
    }
    free(cl->units);
    kn_dylib_retire(cl->lib);
    kn_mutex_deinit(&cl->lock);
    free(cl);
}

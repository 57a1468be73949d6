/* Writes down which kernels a program launches: CUDA's driver opens it where CUDA_INJECTION64_PATH
 * names it, and CUPTI ($TRACE_CUPTI) reports each launch. A line of $TRACE_FILE, fields parted by
 * tabs: "kernel NAME CODE", "graph CODE", or "nocupti WHY". It needs no header of CUDA's. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* From cupti_callbacks.h and cupti_driver_cbid.h, which only ever grow. */
enum { DRIVER_API = 1, AT_EXIT = 1, GRAPH_LAUNCH = 514, GRAPH_LAUNCH_PTSZ = 515 };
static const uint32_t launches[] = {115, 116, 117, 307, 442, 477, 478, 480, 514, 515, 652, 653};

typedef struct callback_data {
    int site;
    const char *function_name;
    const void *parameters;
    const int *result;
    const char *symbol;
} callback_data;

typedef void callback_fn(void *user, int domain, uint32_t id, const callback_data *data);

static void write_line(const char *kind, const char *name, int code)
{
    char line[8192];
    const char *path = getenv("TRACE_FILE");
    const int file =
        path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    int length = snprintf(line, sizeof(line), "%s\t%.8000s\t%d\n", kind, name, code);
    if (file >= 0) {
        if (write(file, line, (size_t)length) < 0) {
            abort(); /* a trace with holes says nothing */
        }
        (void)close(file);
    }
}

static void note_launch(void *user, int domain, uint32_t id, const callback_data *data)
{
    (void)user;
    if (domain != DRIVER_API || data->site != AT_EXIT) {
        return;
    }
    const int code = data->result != NULL ? *data->result : -1;
    if (id == GRAPH_LAUNCH || id == GRAPH_LAUNCH_PTSZ) {
        write_line("graph", "", code);
    } else {
        write_line("kernel", data->symbol != NULL ? data->symbol : "?", code);
    }
}

EXPORT int InitializeInjection(void)
{
    const char *path = getenv("TRACE_CUPTI");
    void *cupti = dlopen(path != NULL ? path : "libcupti.so", RTLD_NOW | RTLD_LOCAL);
    int (*subscribe)(void **, callback_fn *, void *) = NULL;
    int (*enable)(uint32_t, void *, int, uint32_t) = NULL;
    void *subscriber = NULL;
    void *found[2] = {cupti != NULL ? dlsym(cupti, "cuptiSubscribe") : NULL,
                      cupti != NULL ? dlsym(cupti, "cuptiEnableCallback") : NULL};
    memcpy(&subscribe, &found[0], sizeof(subscribe));
    memcpy(&enable, &found[1], sizeof(enable));
    if (subscribe == NULL || enable == NULL) {
        write_line("nocupti", "it cannot be opened", 0);
        return 1;
    }
    int code = subscribe(&subscriber, note_launch, NULL);
    for (size_t i = 0; code == 0 && i < sizeof(launches) / sizeof(*launches); i++) {
        (void)enable(1, subscriber, DRIVER_API, launches[i]);
    }
    if (code != 0) {
        write_line("nocupti", "cuptiSubscribe", code);
    }
    return 1;
}

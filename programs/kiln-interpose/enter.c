/* See enter.h. The core lies at LIBEXEC/libkiln-interpose.so, kiln's libraries below that
 * directory: LIBEXEC/nvrtc/13/libnvrtc.so.13. */
#include "enter.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "find.h"
#include "interpose/room.h"

typedef struct open_call {
    const char *path;
    void *library;
} open_call;

static void open_apart(void *user)
{
    open_call *call = (open_call *)user;
    call->library = dlopen(call->path, RTLD_NOW | RTLD_LOCAL);
}

void *kn_enter_library(const char *path)
{
    open_call call = {.path = path};
    open_apart(&call);
    if (call.library == NULL && kn_room_is_short()) {
        kn_room_run(open_apart, &call);
    }
    return call.library;
}

bool kn_is_disabled(void)
{
    const char *value = getenv("KILN_DISABLE");
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

static bool wants_warnings(void)
{
    static const char *const levels[] = {"warn", "info", "debug"};
    const char *level = getenv("KILN_LOG");
    for (size_t i = 0; level != NULL && i < sizeof(levels) / sizeof(*levels); i++) {
        if (strcmp(level, levels[i]) == 0) {
            return true;
        }
    }
    return false;
}

void kn_enter_report(const char *event, const char *name, const char *reason)
{
    char line[4096];
    const char *report = getenv("KILN_EXEC_REPORT");
    const int length = snprintf(line, sizeof(line), "%s\t0\t0\t%s\t%s", event, name, reason);
    if (report == NULL || report[0] != '/' || length < 0 || (size_t)length >= sizeof(line)) {
        return;
    }
    const int file = open(report, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0) {
        line[length] = '\n';
        const ssize_t written = write(file, line, (size_t)length + 1);
        (void)written; /* a report that cannot be written is nobody's failure */
        (void)close(file);
    }
}

static void report_lack(const char *path, const char *reason)
{
    if (wants_warnings()) {
        (void)fprintf(stderr, "kiln: warn: %s cannot be loaded: %s\n", path, reason);
    }
    kn_enter_report("core\toff", path, reason);
}

void *kn_enter_core(const char *function)
{
    char path[KN_FIND_PATH];
    if (kn_is_disabled()) {
        return NULL;
    }
    if (!kn_find_core(path, sizeof(path))) {
        report_lack(KN_CORE, "it is not next to this library");
        return NULL;
    }
    void *core = kn_enter_library(path);
    void *entry = core != NULL ? dlsym(core, function) : NULL;
    if (entry == NULL) {
        const char *reason = dlerror();
        report_lack(path, reason != NULL ? reason : "no reason is given");
    }
    return entry;
}

void kn_enter_caller(const void *_Atomic *first, const void *caller)
{
    const void *none = NULL;
    if (atomic_load_explicit(first, memory_order_relaxed) == NULL) {
        (void)atomic_compare_exchange_strong(first, &none, caller);
    }
}

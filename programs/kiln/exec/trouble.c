/* See trouble.h. */
#include "exec/trouble.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/admin.h>

#include "cli/session.h"
#include "kiln-interpose/enter.h"
#include "kiln-interpose/find.h"

/* It stays loaded: this process ends soon. */
static bool try_core(const char *libraries, exec_trouble *trouble)
{
    char path[KN_FIND_PATH];
    const int length = snprintf(path, sizeof(path), "%s/" KN_CORE, libraries);
    const bool loaded =
        length > 0 && (size_t)length < sizeof(path) && dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL;
    if (!loaded) {
        const char *reason = dlerror();
        (void)snprintf(trouble->object, sizeof(trouble->object), "%s", KN_CORE);
        (void)snprintf(trouble->reason, sizeof(trouble->reason), "%s",
                       reason != NULL ? reason : "its path is too long");
    }
    return loaded;
}

void exec_trouble_find_core(const exec_environment *environment, const kiln_diag *missing,
                            exec_report *report)
{
    exec_trouble trouble = {.what = "core"};
    if (kn_is_disabled()) {
        exec_report_add_trouble(
            report, &(exec_trouble){.what = "disabled", .reason = "KILN_DISABLE is set"});
    } else if (environment->libraries == NULL) {
        (void)snprintf(trouble.reason, sizeof(trouble.reason), "%.*s",
                       (int)sizeof(trouble.reason) - 1, missing->why);
        exec_report_add_trouble(report, &trouble);
    } else if (!try_core(environment->libraries, &trouble)) {
        exec_report_add_trouble(report, &trouble);
    }
}

/* As the program's processes open it. */
static void look_at_cache(exec_report *report)
{
    exec_trouble trouble = {.what = "cache"};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    if (kiln_cache_create(NULL, &cache, &diag) != KILN_OK) {
        (void)kiln_diag_format(&diag, trouble.reason, sizeof(trouble.reason));
        exec_report_add_trouble(report, &trouble);
        return;
    }
    const char *root = kiln_cache_root(cache);
    const char *reason = kiln_cache_disk_reason(cache);
    trouble.reads = root[0] != '\0';
    if (!trouble.reads || session_only_reads(cache)) {
        (void)snprintf(trouble.object, sizeof(trouble.object), "%s", root);
        (void)snprintf(trouble.reason, sizeof(trouble.reason), "%s",
                       reason[0] != '\0' ? reason : "KILN_READONLY is set");
        exec_report_add_trouble(report, &trouble);
    }
    kiln_cache_destroy(cache);
}

void exec_trouble_find(const exec_environment *environment, const kiln_diag *missing,
                       exec_report *report)
{
    kiln_log_set(NULL, NULL, KILN_LOG_OFF); /* the report says it */
    if (exec_report_asked(report) > 0) {
        return; /* what is wrong was reported */
    }
    exec_trouble_find_core(environment, missing, report);
    if (report->trouble_count == 0) {
        look_at_cache(report);
    }
}

/* See trouble.h. */
#include "exec/trouble.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/admin.h>

#include "cli/session.h"
#include "kiln-interpose/enter.h"
#include "kiln-interpose/find.h"

bool exec_trouble_is_disabled(void)
{
    return kn_is_disabled();
}

/* It stays loaded: this process ends soon. */
bool exec_trouble_try_core(const char *libraries, char *out_reason, size_t size)
{
    char path[KN_FIND_PATH];
    const int length = snprintf(path, sizeof(path), "%s/" KN_CORE, libraries);
    const bool loaded =
        length > 0 && (size_t)length < sizeof(path) && dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL;
    if (!loaded) {
        const char *reason = dlerror();
        (void)snprintf(out_reason, size, "%s", reason != NULL ? reason : "its path is too long");
    }
    return loaded;
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
    exec_trouble trouble = {.what = "core"};
    kiln_log_set(NULL, NULL, KILN_LOG_OFF); /* the report says it */
    if (kn_is_disabled()) {
        exec_report_add_trouble(
            report, &(exec_trouble){.what = "disabled", .reason = "KILN_DISABLE is set"});
        return;
    }
    if (exec_report_asked(report) > 0) {
        return; /* what is wrong was reported */
    }
    if (environment->libraries == NULL) {
        (void)snprintf(trouble.reason, sizeof(trouble.reason), "%.*s",
                       (int)sizeof(trouble.reason) - 1, missing->why);
        exec_report_add_trouble(report, &trouble);
    } else if (!exec_trouble_try_core(environment->libraries, trouble.reason,
                                      sizeof(trouble.reason))) {
        (void)snprintf(trouble.object, sizeof(trouble.object), "%s", KN_CORE);
        exec_report_add_trouble(report, &trouble);
    } else if (exec_report_trouble(report, "cache") == NULL) {
        look_at_cache(report);
    }
}

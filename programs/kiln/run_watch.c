/* Watches for the kernels of a run. The command polls: it has nothing else to do. */
#include "run_watch.h"

#include "host.h"
#include "kernel_build.h"

kiln_status run_watches_add(run_watches *watches, cli_kernel *kernel, kiln_device *device,
                            kiln_diag *diag)
{
    kiln_status status = KILN_E_UNSUPPORTED;
    for (size_t i = 0; i < kernel->form_count && status == KILN_E_UNSUPPORTED; i++) {
        kiln_source source;
        const struct kiln_cpu_kernel *builtin = NULL;
        kiln_watch *watch = NULL;
        char name[1024];
        bool changed = false;
        if (kernel->forms[i].path == NULL ||
            !kernel_source_init(kernel, &kernel->forms[i], &source, &builtin)) {
            continue;
        }
        source.name = host_spell(kernel->forms[i].path, name, sizeof(name));
        kiln_diag_clear(diag);
        status = kiln_watch_create(device, &source, NULL, &watch, diag);
        if (status == KILN_OK) {
            /* Whether this compiles has been told when it was run. */
            kiln_diag known = KILN_DIAG_INIT;
            if (kiln_watch_poll(watch, &changed, &known) != KILN_OK) {
                kiln_diag_clear(&known);
            }
            watches->items[watches->count++] = (run_watch){kernel, watch};
        }
    }
    if (status == KILN_E_UNSUPPORTED) {
        kiln_diag_clear(diag);
        return KILN_OK;
    }
    return status;
}

bool run_watches_look(const run_watches *watches, const cmd_context *context,
                      void (*run)(void *user, cli_kernel *kernel), void *user)
{
    const cli_kernel *last = NULL;
    bool any = false;
    for (size_t i = 0; i < watches->count; i++) {
        const run_watch *row = &watches->items[i];
        kiln_diag diag = KILN_DIAG_INIT;
        bool changed = false;
        if (kiln_watch_poll(row->watch, &changed, &diag) != KILN_OK) {
            (void)cmd_fail(context, &diag);
            any = true;
        } else if (changed && row->kernel != last) {
            last = row->kernel; /* on several devices: they follow one another */
            run(user, row->kernel);
            any = true;
        }
    }
    return any;
}

void run_watches_deinit(run_watches *watches)
{
    for (size_t i = 0; i < watches->count; i++) {
        kiln_watch_destroy(watches->items[i].watch);
    }
    watches->count = 0;
}

/* Watches for the kernels of a run. The command polls: it has nothing else to do. */
#include "cmd/run_watch.h"

#include <string.h>

#include "kernel/kernel_source.h"

/* Watches one source file; whether it compiles was reported when it was run. */
static kiln_status add_file(run_watches *watches, cli_kernel *kernel, kiln_device *device,
                            const kernel_form *form, kiln_diag *diag)
{
    kernel_source given;
    kiln_watch *watch = NULL;
    bool changed = false;
    if (form->language == KILN_LANG_BUILTIN) {
        return KILN_E_UNSUPPORTED;
    }
    kiln_status status = kernel_source_init(kernel, form, &given, diag);
    if (status == KILN_OK) {
        status = kiln_watch_create(device, &given.source, NULL, &watch, diag);
    }
    if (status == KILN_OK) {
        kiln_diag known = KILN_DIAG_INIT;
        if (kiln_watch_poll(watch, &changed, &known) != KILN_OK) {
            kiln_diag_clear(&known);
        }
        watches->items[watches->count++] = (run_watch){kernel, watch};
    }
    return status;
}

/* Whether a form in `form`'s language and before it has the same file. */
static bool is_watched(const cli_kernel *kernel, const kernel_form *form)
{
    for (const kernel_form *one = kernel->forms; one < form; one++) {
        if (one->language == form->language && strcmp(one->path, form->path) == 0) {
            return true;
        }
    }
    return false;
}

static kiln_status watch_form(run_watches *watches, cli_kernel *kernel, kiln_device *device,
                              const kernel_form *form, kiln_diag *diag)
{
    kiln_status status = add_file(watches, kernel, device, form, diag);
    for (size_t i = 0; i < kernel->variant_count && status == KILN_OK; i++) {
        const kernel_form *variant = &kernel->forms[kernel->form_count + i];
        if (variant->language == form->language && !is_watched(kernel, variant)) {
            status = add_file(watches, kernel, device, variant, diag);
        }
    }
    return status;
}

kiln_status run_watches_add(run_watches *watches, cli_kernel *kernel, kiln_device *device,
                            kiln_diag *diag)
{
    kiln_status status = KILN_E_UNSUPPORTED;
    for (size_t i = 0; i < kernel->form_count && status == KILN_E_UNSUPPORTED; i++) {
        kiln_diag_clear(diag);
        status = watch_form(watches, kernel, device, &kernel->forms[i], diag);
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

/* Watches for the kernels of a run. The command polls: it has nothing else to do. */
#include "cmd/run_watch.h"

#include <string.h>

#include "cli/host.h"
#include "kernel/kernel_build.h"

/* Watches one source file; whether it compiles was reported when it was run. */
static kiln_status add_file(run_watches *watches, cli_kernel *kernel, kiln_device *device,
                            kiln_source *source, const char *path, kiln_diag *diag)
{
    kiln_watch *watch = NULL;
    char name[1024];
    bool changed = false;
    source->name = host_spell(path, name, sizeof(name));
    kiln_status status = kiln_watch_create(device, source, NULL, &watch, diag);
    if (status == KILN_OK) {
        kiln_diag known = KILN_DIAG_INIT;
        if (kiln_watch_poll(watch, &changed, &known) != KILN_OK) {
            kiln_diag_clear(&known);
        }
        watches->items[watches->count++] = (run_watch){kernel, watch};
    }
    return status;
}

/* Whether a variant has a file that neither its form nor a variant before it has. */
static bool has_own_file(const kernel_form *form, size_t index)
{
    const char *path = form->variants[index].path;
    for (size_t i = 0; i < index; i++) {
        if (strcmp(form->variants[i].path, path) == 0) {
            return false;
        }
    }
    return strcmp(form->path, path) != 0;
}

static kiln_status watch_form(run_watches *watches, cli_kernel *kernel, kiln_device *device,
                              const kernel_form *form, kiln_diag *diag)
{
    kiln_source source;
    const struct kiln_cpu_kernel *builtin = NULL;
    if (form->path == NULL || !kernel_source_init(kernel, form, &source, &builtin)) {
        return KILN_E_UNSUPPORTED;
    }
    kiln_status status = add_file(watches, kernel, device, &source, form->path, diag);
    for (size_t i = 0; i < form->variant_count && status == KILN_OK; i++) {
        const kernel_variant *variant = &form->variants[i];
        if (has_own_file(form, i)) {
            source.defines = variant->defines;
            source.define_count = variant->define_count;
            source.options = variant->options;
            source.option_count = variant->option_count;
            source.entries = &variant->entry;
            status = add_file(watches, kernel, device, &source, variant->path, diag);
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

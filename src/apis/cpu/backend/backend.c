/* The cpu backend: kernels in C, compiled by the system's compiler or brought along by the program,
 * run on all processors. It is always ready; only compiling needs a compiler. */
#include <stdlib.h>

#include "kiln/version.h"

#include "apis/cpu/backend/compiler.h"
#include "apis/cpu/backend/device.h"
#include "base/diag.h"
#include "base/text.h"

static void report_ready(kiln_probe_report *report)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *compiler = NULL;
    *report = (kiln_probe_report){.outcome = KILN_PROBE_READY, .device_count = 1};
    kn_text_put(report->backend, sizeof(report->backend), "cpu");
    if (kn_cpu_compiler_find(&compiler, &diag) == KILN_OK) {
        kn_text_put(report->library, sizeof(report->library), compiler);
        kn_text_put(report->why, sizeof(report->why), "C kernels are compiled and run here");
    } else {
        kn_text_putf(report->why, sizeof(report->why),
                     "only kernels compiled into the program run here: %s", diag.why);
        kn_text_put(report->fix, sizeof(report->fix), diag.fix);
    }
    free(compiler);
    kiln_diag_clear(&diag);
}

static kiln_status fail_probe(kiln_probe_report *report, kiln_status status, const kiln_diag *said)
{
    *report = (kiln_probe_report){.outcome = KILN_PROBE_FAILED};
    kn_text_put(report->backend, sizeof(report->backend), "cpu");
    if (said != NULL) {
        kn_text_putf(report->why, sizeof(report->why), "%s: %s", said->what, said->why);
        kn_text_put(report->fix, sizeof(report->fix), said->fix);
    }
    return status;
}

static kiln_status open_backend(const kiln_host *host, void **out_instance,
                                kiln_probe_report *report, kiln_diag *diag)
{
    kiln_diag own = KILN_DIAG_INIT;
    cpu_instance *cpu = (cpu_instance *)calloc(1, sizeof(*cpu));
    if (cpu == NULL) {
        kiln_status status = kn_no_memory(diag, "opening the cpu backend");
        return fail_probe(report, status, diag);
    }
    kn_processor_describe(&cpu->processor);
    kiln_status status = kn_cpu_target_native(&cpu->processor, &cpu->native, &own);
    if (status != KILN_OK) {
        (void)fail_probe(report, status, &own);
        free(cpu);
        kn_diag_move(diag, &own);
        return status;
    }
    cpu->host = host;
    cpu->threads = kn_thread_processors();
    kn_cpu_tools_init(&cpu->tools, host);
    kn_cpu_pool_init(&cpu->pool, cpu->threads);
    report_ready(report);
    *out_instance = cpu;
    return KILN_OK;
}

static void close_backend(void *instance)
{
    cpu_instance *cpu = (cpu_instance *)instance;
    if (cpu != NULL) {
        kn_cpu_pool_deinit(&cpu->pool);
        kn_cpu_tools_deinit(&cpu->tools);
        free(cpu);
    }
}

static const kiln_include_rules include_rules = {
    .complete = true,
    .names_relative = true,
    .option_effects = kn_cpu_option_effects,
    .implied_include = kn_cpu_implied_include,
};

static const kiln_compiler_ops compiler_ops = {
    KN_COMPILER_OPS(kn_cpu_),
    KN_SEARCH_OPS(kn_cpu_),
    .target_parse = kn_cpu_target_parse,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    KN_DEVICE_OPS(kn_cpu_),
    .queue_wait = kn_cpu_queue_wait,
    .buffer_wrap = kn_cpu_buffer_wrap,
    .buffer_address = kn_cpu_buffer_address,
};

const kiln_backend kn_backend_cpu = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "cpu",
    .summary = "kernels in C on the host's processor",
    .caps = KILN_CAP_ANY_THREAD | KILN_CAP_COMPILE_OFFLINE | KILN_CAP_FILL | KILN_CAP_COPY |
            KILN_CAP_REFLECT | KILN_CAP_BUFFER_OFFSET | KILN_CAP_PARTIAL_GROUPS |
            KILN_CAP_QUEUE_WAIT | KILN_CAP_WHOLE_PROGRAMS | KILN_CAP_NATIVE_MEMORY,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = open_backend,
    .close = close_backend,
};

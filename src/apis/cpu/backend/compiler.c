/* The compiler half but for the compile itself: stages, targets, identity, search path. */
#include "apis/cpu/backend/compiler.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"

static const kiln_stage stages[] = {
    {KN_STAGE_AT(cpu_object), .takes_source = true},
};

/* Variables through which distributions' wrappers change what a compiler does, and what gcc and GNU
 * ld read: the last writes its value into the object. */
static const char *const variables[] = {
    "CCC_OVERRIDE_OPTIONS", "NIX_CFLAGS_COMPILE", "NIX_HARDENING_ENABLE",        "NIX_LDFLAGS",
    "GCC_COMPARE_DEBUG",    "GNUTARGET",          "GCC_EXTRA_DIAGNOSTIC_OUTPUT", "LDEMULATION",
    "LD_RUN_PATH"};

const kiln_stage *kn_cpu_stages(void *instance, const kiln_target *target, kiln_language language,
                                size_t *out_count)
{
    (void)instance;
    (void)target;
    *out_count = language == KILN_LANG_C ? 1 : 0;
    return language == KILN_LANG_C || language == KILN_LANG_BUILTIN ? stages : NULL;
}

kiln_status kn_cpu_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                    kiln_diag *diag)
{
    const cpu_instance *cpu = (const cpu_instance *)instance;
    if (device_index != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "device of the cpu backend",
                             "the only device has index 0");
    }
    kiln_status status = kn_cpu_target_wrap(&cpu->native, out_target, diag);
    if (status == KILN_OK) {
        out_target->has_device = true;
    }
    return status;
}

kiln_status kn_cpu_target_parse(void *instance, const char *name, kiln_target *out_target,
                                kiln_diag *diag)
{
    const cpu_instance *cpu = (const cpu_instance *)instance;
    cpu_target target;
    kiln_status status = kn_cpu_target_named(&cpu->processor, name, &target, diag);
    return status == KILN_OK ? kn_cpu_target_wrap(&target, out_target, diag) : status;
}

void kn_cpu_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    free(target->handle);
    target->handle = NULL;
}

kiln_status kn_cpu_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                            const kiln_identity *identity, kiln_diag *diag)
{
    cpu_instance *cpu = (cpu_instance *)instance;
    const cpu_target *to = kn_cpu_target_of(target);
    const cpu_toolchain *toolchain = NULL;
    kn_strbuf flags;
    kn_strbuf line;
    (void)stage;

    kiln_status status = kn_cpu_toolchain_get(&cpu->tools, &toolchain, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_strbuf_init(&flags, 0);
    kn_strbuf_init(&line, 0);
    identity->text(identity->sink, "compiler", toolchain->version);
    identity->text(identity->sink, "machine", toolchain->machine);
    for (size_t i = 0; i < toolchain->tool_count; i++) {
        kn_strbuf_clear(&line);
        kn_strbuf_append_text(&line, toolchain->tools[i].name);
        kn_strbuf_append_char(&line, ' ');
        kn_strbuf_append_text(&line, toolchain->tools[i].id);
        identity->text(identity->sink, "tool", kn_strbuf_text(&line));
    }
    kn_strbuf_clear(&line);
    kn_cpu_target_features(to, &line);
    identity->text(identity->sink, "architecture", kn_cpu_architecture_name(to->architecture));
    identity->text(identity->sink, "features", kn_strbuf_text(&line));
    kn_strbuf_clear(&line);
    kn_cpu_flags_fixed(toolchain->version, &flags);
    kn_cpu_target_flags(to, &flags);
    kn_cpu_flags_join(&flags, &line);
    identity->text(identity->sink, "flags", kn_strbuf_text(&line));
    identity->text(identity->sink, CPU_HEADER_NAME, kn_cpu_header_digest);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        identity->env(identity->sink, variables[i]);
    }
    if (!kn_strbuf_ok(&line) || !kn_strbuf_ok(&flags)) {
        status = kn_no_memory(diag, "identifying the C compiler");
    }
    kn_strbuf_deinit(&flags);
    kn_strbuf_deinit(&line);
    return status;
}

const char *kn_cpu_system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    cpu_instance *cpu = (cpu_instance *)instance;
    const cpu_toolchain *toolchain = NULL;
    (void)target;
    kn_mutex_lock(&cpu->tools.mutex);
    toolchain = cpu->tools.current;
    kn_mutex_unlock(&cpu->tools.mutex);
    if (toolchain == NULL && kn_cpu_toolchain_get(&cpu->tools, &toolchain, NULL) != KILN_OK) {
        return NULL;
    }
    return index < toolchain->dir_count ? toolchain->dirs[index] : NULL;
}

bool kn_cpu_ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance;
    (void)target;
    return strcmp(name, CPU_HEADER_NAME) == 0;
}

/* gcc's own, and what the kernel header includes, which no include of a text leads to. */
const char *kn_cpu_implied_include(void *instance, const kiln_target *target, size_t index)
{
    static const char *const names[] = {"stdc-predef.h", "stddef.h", "stdint.h"};
    (void)instance;
    (void)target;
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

/* Targets: a processor, and the choices that some of them have ("gfx90a:sramecc+:xnack-"; LLVM,
 * "User Guide for AMDGPU Backend", Target ID), and the stage that leads to code for them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/instance.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"

/* The line of a processor in kn_hip_facts.processors, or NULL. */
static const char *find_processor(const char *lines, const char *name, size_t length)
{
    while (*lines != '\0') {
        const size_t line = strcspn(lines, "\n");
        if (strcspn(lines, " \n") == length && memcmp(lines, name, length) == 0) {
            return lines;
        }
        lines += line + (lines[line] == '\n');
    }
    return NULL;
}

static bool has_choice(const char *line, const char *choice)
{
    const char *at = strstr(line, choice);
    return at != NULL && at < line + strcspn(line, "\n");
}

/* Reads ":xnack-:sramecc+" into the target; false for anything else. */
static bool read_choices(const char *text, kn_hip_target *target)
{
    while (*text != '\0') {
        const bool xnack = kn_text_starts(text, ":xnack");
        char *choice = xnack ? &target->xnack : &target->sramecc;
        const size_t length = strlen(xnack ? ":xnack" : ":sramecc");
        if ((!xnack && !kn_text_starts(text, ":sramecc")) || *choice != '\0' ||
            (text[length] != '+' && text[length] != '-')) {
            return false;
        }
        *choice = text[length];
        text += length + 1;
    }
    return true;
}

static bool read_parts(const char *name, kn_hip_target *target)
{
    const size_t length = strcspn(name, ":");
    if (length < 4 || length >= sizeof(target->processor) || !kn_text_starts(name, "gfx")) {
        return false;
    }
    for (size_t i = 3; i < length; i++) {
        if (!isdigit((unsigned char)name[i]) && !(name[i] >= 'a' && name[i] <= 'f')) {
            return false;
        }
    }
    memcpy(target->processor, name, length);
    target->processor[length] = '\0';
    return read_choices(name + length, target);
}

bool kn_hip_target_read(const char *name, kn_hip_target *out_target)
{
    memset(out_target, 0, sizeof(*out_target));
    if (!read_parts(name, out_target)) {
        return false;
    }
    /* As hipRTC wants it: the settings in this order. */
    kn_text_putf(out_target->name, sizeof(out_target->name), "%s%s%.1s%s%.1s",
                 out_target->processor, out_target->sramecc != '\0' ? ":sramecc" : "",
                 &out_target->sramecc, out_target->xnack != '\0' ? ":xnack" : "",
                 &out_target->xnack);
    return true;
}

/* As the store has it, where no ':' and no '+' may be. */
static void spell_for_store(const kn_hip_target *target, char *out, size_t size)
{
    const struct {
        const char *name;
        char choice;
    } choices[] = {{"sramecc", target->sramecc}, {"xnack", target->xnack}};
    kn_text_putf(out, size, "hip-%s", target->processor);
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        if (choices[i].choice != '\0') {
            const size_t used = strlen(out);
            kn_text_putf(out + used, size - used, "-%s_%s", choices[i].name,
                         choices[i].choice == '+' ? "on" : "off");
        }
    }
}

static kiln_status check_known(kn_hip *hip, const kn_hip_target *wanted, kiln_diag *diag)
{
    kn_mutex_lock(&hip->lock);
    kiln_status status = kn_hip_facts_get(hip, diag);
    if (status == KILN_OK) {
        const char *line =
            find_processor(hip->facts.processors, wanted->processor, strlen(wanted->processor));
        const bool xnack = wanted->xnack == '\0' || (line != NULL && has_choice(line, " xnack"));
        const bool sramecc =
            wanted->sramecc == '\0' || (line != NULL && has_choice(line, " sramecc"));
        if (line == NULL || !xnack || !sramecc) {
            status = kiln_diag_set(diag, KILN_E_UNSUPPORTED,
                                   line == NULL ? "install a newer ROCm, or name another target"
                                                : "leave that setting out of the target",
                                   wanted->name, "hipRTC %s (%s) does not know %s%s",
                                   hip->facts.version, hip->library,
                                   line == NULL ? ""
                                   : !xnack     ? "an xnack setting for "
                                                : "an sramecc setting for ",
                                   wanted->processor);
        }
    }
    kn_mutex_unlock(&hip->lock);
    return status;
}

static kiln_status make_target(kn_hip *hip, const char *name, kiln_target *out_target,
                               kiln_diag *diag)
{
    kn_hip_target wanted;
    if (!kn_hip_target_read(name, &wanted)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "name it as in gfx90a or gfx90a:xnack-",
                             "hip target", "'%.40s' is not an AMD GPU's processor", name);
    }
    kiln_status status = check_known(hip, &wanted, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_hip_target *handle = (kn_hip_target *)malloc(sizeof(*handle));
    if (handle == NULL) {
        return kn_no_memory(diag, "hip target");
    }
    *handle = wanted;
    spell_for_store(&wanted, out_target->name, sizeof(out_target->name));
    out_target->handle = handle;
    return KILN_OK;
}

kiln_status kn_hip_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                    kiln_diag *diag)
{
    kn_hip *hip = (kn_hip *)instance;
    kiln_status status = kn_hip_check_index(hip, device_index, diag);
    if (status != KILN_OK) {
        return status;
    }
    out_target->has_device = true;
    out_target->device_index = device_index;
    return make_target(hip, hip->devices[device_index].arch, out_target, diag);
}

kiln_status kn_hip_target_parse(void *instance, const char *name, kiln_target *out_target,
                                kiln_diag *diag)
{
    kn_hip *hip = (kn_hip *)instance;
    if (strcmp(name, "native") != 0) {
        return make_target(hip, name, out_target, diag);
    }
    return hip->device_count > 0
               ? kn_hip_target_of_device(hip, 0, out_target, diag)
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "name the target, as in hip:gfx90a",
                               "hip target", "there is no AMD GPU here to compile for");
}

void kn_hip_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    free(target->handle);
    target->handle = NULL;
}

const kiln_stage *kn_hip_stages(void *instance, const kiln_target *target, kiln_language language,
                                size_t *out_count)
{
    static const kiln_stage to_code_object[] = {
        {KN_STAGE_AT(hip_code), KILN_LANG_NONE, true, false, false},
    };
    (void)instance;
    (void)target;
    const bool taken = language == KILN_LANG_HIP || language == KILN_LANG_CUDA;
    *out_count = taken ? 1 : 0;
    return taken ? to_code_object : NULL;
}

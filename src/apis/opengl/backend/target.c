/* Targets, the one stage, and what its output depends on. */
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/opengl.h"
#include "base/stages.h"
#include "base/text.h"

kiln_status kn_gl_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                   kiln_diag *diag)
{
    kiln_device_info info;
    kiln_status status = kn_gl_device_info(instance, device_index, &info, diag);
    if (status == KILN_OK) {
        kn_text_put(out_target->name, sizeof(out_target->name), info.target);
        out_target->has_device = true;
        out_target->device_index = device_index;
    }
    return status;
}

void kn_gl_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    target->handle = NULL;
}

/* A driver that gives no binaries has nothing to keep: its programs are loaded from source. */
const kiln_stage *kn_gl_stages(void *instance, const kiln_target *target, kiln_language language,
                               size_t *out_count)
{
    static const kiln_stage stage = {KN_STAGE_AT(opengl_program), KILN_LANG_NONE, true, false,
                                     true};
    const kn_gl *gl = (const kn_gl *)instance;
    *out_count = 0;
    if (language != KILN_LANG_GLSL || !target->has_device ||
        target->device_index >= gl->unit_count) {
        return NULL;
    }
    *out_count = gl->units[target->device_index].facts.format_count > 0 ? 1 : 0;
    return &stage;
}

kiln_status kn_gl_unit_modules(kn_gl *gl, kn_gl_unit *unit, kiln_diag *diag)
{
    kn_mutex_lock(&gl->lock);
    kiln_status status =
        unit->modules == NULL ? kn_gl_modules_find(&unit->facts, &unit->modules, diag) : KILN_OK;
    kn_mutex_unlock(&gl->lock);
    return status;
}

kiln_status kn_gl_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                           const kiln_identity *identity, kiln_diag *diag)
{
    kn_gl *gl = (kn_gl *)instance;
    (void)stage; /* there is one */
    if (!target->has_device || target->device_index >= gl->unit_count) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "opengl", "a program needs a device");
    }
    kn_gl_unit *unit = &gl->units[target->device_index];
    kiln_status status = kn_gl_unit_modules(gl, unit, diag);
    if (status == KILN_OK) {
        kn_gl_identify_context(&unit->facts, unit->modules, identity);
    }
    return status;
}

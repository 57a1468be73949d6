/* The encoding of an artifact's language, log and facts, little-endian:
 * revision u32, language u32, log size u64 (with its NUL; 0 if there is none), log, facts as
 * hal/artifact.c frames them.
 *
 * The facts are in the key of the next stage, so a label is not among them: it lies behind the
 * log's NUL, with a NUL of its own, where only kn_label_find looks. */
#include "core/build/stage_artifact.h"

#include "base/checked.h"
#include "base/label.h"

#define HEAD_SIZE 16

kiln_status kn_artifact_to_blob(const kn_artifact *artifact, const char *label,
                                kiln_blob **out_blob, kiln_diag *diag)
{
    char head[HEAD_SIZE];
    kn_span log = kn_span_of_text(artifact->base.log);
    size_t log_size = artifact->base.log != NULL ? log.length + 1 : 0;
    kn_strbuf facts, behind;
    kn_strbuf_init(&facts, 0);
    kn_strbuf_init(&behind, 0);
    if (label != NULL && label[0] != '\0') {
        kn_strbuf_append(&behind, "", log_size == 0);
        kn_label_append(&behind, label);
        kn_strbuf_append(&behind, "", 1);
    }
    kn_put_u32(head, KN_ARTIFACT_REVISION);
    kn_put_u32(head + 4, (uint32_t)artifact->base.language);
    kn_put_u64(head + 8, log_size + behind.length);
    kn_strbuf_append(&facts, head, sizeof(head));
    kn_strbuf_append(&facts, log.data, log_size);
    kn_strbuf_append(&facts, behind.data, behind.length);
    kn_strbuf_append(&facts, artifact->facts.data, artifact->facts.length);
    kiln_status status = KILN_E_NOMEM;
    if (kn_strbuf_ok(&facts) && kn_strbuf_ok(&behind)) {
        status = kiln_blob_create(artifact->base.data, artifact->base.size, facts.data,
                                  facts.length, out_blob, diag);
    } else {
        (void)kiln_diag_set(diag, status, NULL, "keeping a compiled kernel", "out of memory");
    }
    kn_strbuf_deinit(&behind);
    kn_strbuf_deinit(&facts);
    return status;
}

kiln_status kn_artifact_of_blob(kn_artifact *artifact, const kiln_blob *blob)
{
    const char *facts = (const char *)kiln_blob_facts(blob);
    size_t size = kiln_blob_facts_size(blob);
    if (size < HEAD_SIZE || kn_get_u32(facts) != KN_ARTIFACT_REVISION) {
        return KILN_E_CORRUPT;
    }
    uint32_t language = kn_get_u32(facts + 4);
    uint64_t log_size = kn_get_u64(facts + 8);
    const char *log = facts + HEAD_SIZE;
    size_t left = size - HEAD_SIZE;
    if (log_size > left || (log_size > 0 && log[log_size - 1] != '\0')) {
        return KILN_E_CORRUPT;
    }
    kn_span list = kn_span_of(log + log_size, left - (size_t)log_size);
    if (!kn_artifact_facts_sound(list)) {
        return KILN_E_CORRUPT;
    }
    kn_artifact_borrow(artifact, (kiln_language)language,
                       kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)),
                       log_size > 0 && log[0] != '\0' ? log : NULL, list);
    return KILN_OK;
}

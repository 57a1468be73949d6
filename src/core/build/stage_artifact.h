/* An artifact as a cache entry: the payload is the artifact's bytes; language, log and facts are
 * the entry's facts, so that a hit gives back exactly what the compile gave. */
#ifndef KILN_CORE_STAGE_ARTIFACT_H
#define KILN_CORE_STAGE_ARTIFACT_H

#include "kiln/cache.h"

#include "hal/artifact.h"

/* Raised when the encoding changes; part of every stage's key. */
#define KN_ARTIFACT_REVISION 1u

/* With a label for people (base/label.h), NULL or "" for none. KILN_E_NOMEM, or what
 * kiln_blob_create says. */
kiln_status kn_artifact_to_blob(const kn_artifact *artifact, const char *label,
                                kiln_blob **out_blob, kiln_diag *diag);

/* Points the artifact at the blob's bytes; the blob must outlive it. KILN_E_CORRUPT if the facts
 * are not an artifact's. */
kiln_status kn_artifact_of_blob(kn_artifact *artifact, const kiln_blob *blob);

#endif

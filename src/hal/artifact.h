/* The memory behind a kiln_artifact. Backends fill one through kn_host and see the public struct
 * only; core makes, encodes and releases them. */
#ifndef KILN_HAL_ARTIFACT_H
#define KILN_HAL_ARTIFACT_H

#include "kiln/sys/backend.h"

#include "base/span.h"
#include "base/strbuf.h"

typedef struct kn_artifact {
    kiln_artifact base; /* first: the host's functions get this */
    void *data;         /* after base.data if owned */
    char *log;          /* after base.log if owned */
    kn_strbuf own;      /* facts being made */
    kn_span facts;      /* facts to read: own, or bytes of a cache entry */
} kn_artifact;

void kn_artifact_init(kn_artifact *artifact);
void kn_artifact_deinit(kn_artifact *artifact);

/* Points at bytes that outlive the artifact: payload, log (NUL-terminated or NULL), framed facts.
 */
void kn_artifact_borrow(kn_artifact *artifact, kiln_language language, kn_span data,
                        const char *log, kn_span facts);

/* True if the framing of a list of facts is sound: what came from a file is checked once. */
bool kn_artifact_facts_sound(kn_span facts);

/* The functions that backends get. */
extern const kiln_host kn_host;

#endif

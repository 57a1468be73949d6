/* What surrounds a backend and decides what its probe finds: environment variables, configuration,
 * device files, directories of libraries, rights, this boot. It knows neither drivers nor
 * records. */
#ifndef KILN_CORE_SURROUNDINGS_H
#define KILN_CORE_SURROUNDINGS_H

#include "base/strbuf.h"
#include "kiln/sys/backend.h"

/* One line for a file's or directory's facts, or that there is none, and one for each absolute path
 * that a driver's configuration (.icd, .json) names. Times of devices are left out: they move with
 * use. */
void kn_surroundings_add_file(kn_strbuf *out, const char *path);

/* Everything that `basis` names and what counts for every backend, as text that is equal as long as
 * nothing changed. The caller asks kn_strbuf_ok. */
void kn_surroundings_describe(kn_strbuf *out, const kiln_probe_basis *basis);

#endif

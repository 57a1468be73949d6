/* The kernels of a program as its backend wrote them next to the artifact (KILN_FACT_ENTRIES): what
 * a compile that loads nothing, and a program whose driver forgets, are asked about. */
#ifndef KILN_CORE_PROGRAM_KERNELS_H
#define KILN_CORE_PROGRAM_KERNELS_H

#include "core/build/build.h"

/* The list of a build that has its artifacts: of the last stage that has one. Empty where no
 * backend wrote any. Borrowed from the build. */
kn_span kn_kernels_of(const kn_build *build);

/* KILN_OK if the list is empty or has every entry that the source names; else KILN_E_INVALID, and
 * the diag has the list. */
kiln_status kn_kernels_check(kn_span kernels, const kiln_source *source, kiln_diag *diag);

/* The same list for a program: "name NUL attributes NUL", the qualifiers of each parameter with a
 * NUL, and one more NUL for each kernel. malloc'ed; NULL where it is empty or memory is short. */
char *kn_kernels_copy(kn_span kernels, size_t *out_size);
/* Makes the fact of it again, for an artifact that has none. */
kiln_status kn_kernels_keep(const char *copy, size_t size, kiln_artifact *artifact);
/* The attributes of a kernel in such a copy; NULL if it is not there. */
const char *kn_kernels_attributes(const char *copy, size_t size, const char *entry);
/* The qualifiers of a parameter; NULL, too, if they are not known. */
const char *kn_kernels_qualifiers(const char *copy, size_t size, const char *entry, size_t index);

#endif

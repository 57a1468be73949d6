/* The end of a build whose program goes into the cache's recording. */
#ifndef KILN_CORE_RECORD_BUILD_H
#define KILN_CORE_RECORD_BUILD_H

#include "core/build/build.h"

/* Records what a build was asked for, if its cache records and the first stage gave something under
 * a key: what bypassed the cache would not be found again. Fails: never. */
void kn_build_record(const kn_build *build);

#endif

/* kiln: turns kernel source into running programs on whatever the machine has, and never compiles
 * the same thing twice. This is the umbrella header of level 3; programs that only want the cache
 * include kiln/cache.h. What is not promised yet is in kiln/unstable.h (docs/reference/api.md). */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include "kiln/cache.h"
#include "kiln/device.h"
#include "kiln/launch.h"
#include "kiln/program.h"
#include "kiln/runtime.h"
#include "kiln/source.h"
#include "kiln/status.h"
#include "kiln/version.h"

#endif

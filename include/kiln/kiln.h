/* kiln: turns kernel source into running programs on whatever the machine has, and never compiles
 * the same thing twice. This is the umbrella header of level 3; programs that only want the cache
 * include kiln/cache.h. */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include "kiln/cache.h"
#include "kiln/device.h"
#include "kiln/executor.h"
#include "kiln/explain.h"
#include "kiln/launch.h"
#include "kiln/pack.h"
#include "kiln/program.h"
#include "kiln/remote.h"
#include "kiln/runtime.h"
#include "kiln/source.h"
#include "kiln/status.h"
#include "kiln/tune.h"
#include "kiln/unreachable.h"
#include "kiln/version.h"
#include "kiln/warm.h"
#include "kiln/watch.h"

#endif

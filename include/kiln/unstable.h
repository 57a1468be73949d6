/* All that serves the command and specialists: moving and packing entries, signing keys, looking
 * into a cache, measuring, streams, warming, watching. It works and is tested like everything else;
 * names and arguments may change with 0.2 (api.md, "What is promised"). Each header may be
 * included by itself. */
#ifndef KILN_UNSTABLE_H
#define KILN_UNSTABLE_H

#include "kiln/unstable/admin.h"
#include "kiln/unstable/background.h"
#include "kiln/unstable/binding.h"
#include "kiln/unstable/claim.h"
#include "kiln/unstable/compile.h"
#include "kiln/unstable/counters.h"
#include "kiln/unstable/executor.h"
#include "kiln/unstable/explain.h"
#include "kiln/unstable/memory.h"
#include "kiln/unstable/names.h"
#include "kiln/unstable/native.h"
#include "kiln/unstable/opengl.h"
#include "kiln/unstable/pack.h"
#include "kiln/unstable/pocl.h"
#include "kiln/unstable/probe.h"
#include "kiln/unstable/recording.h"
#include "kiln/unstable/reflect.h"
#include "kiln/unstable/remote.h"
#include "kiln/unstable/settings.h"
#include "kiln/unstable/tune.h"
#include "kiln/unstable/warm.h"
#include "kiln/unstable/watch.h"

#endif

/* kiln/unstable.h for C++17, as kiln/kiln.hpp is for kiln/kiln.h: claims, packs, remotes,
 * explanations, tuning, streams of work, warming, watching. */
#ifndef KILN_UNSTABLE_HPP
#define KILN_UNSTABLE_HPP

#include "kiln/kiln.hpp"
#include "kiln/unstable/cpp/claim.hpp"
#include "kiln/unstable/cpp/counters.hpp"
#include "kiln/unstable/cpp/explain.hpp"
#include "kiln/unstable/cpp/pack.hpp"
#include "kiln/unstable/cpp/remote.hpp"
#include "kiln/unstable/cpp/tune.hpp"
#include "kiln/unstable/cpp/work.hpp"

#endif

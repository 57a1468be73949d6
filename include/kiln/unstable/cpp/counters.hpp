/* kiln/unstable/counters.h in C++. */
#ifndef KILN_UNSTABLE_CPP_COUNTERS_HPP
#define KILN_UNSTABLE_CPP_COUNTERS_HPP

#include <cstdint>
#include <vector>

#include "kiln/cpp/cache.hpp"
#include "kiln/unstable/counters.h"

namespace kiln
{

inline std::uint64_t counter(const cache &of, std::uint32_t id)
{
    return kiln_cache_counter(of.get(), id);
}

/* By id, of all processes. */
inline std::vector<std::uint64_t> totals(cache &of)
{
    std::vector<std::uint64_t> values(KILN_COUNTERS);
    check c;
    c(kiln_cache_get_totals(of.get(), values.data(), values.size(), c));
    return values;
}

} // namespace kiln

#endif

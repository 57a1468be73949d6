/* Claims, in C++. */
#ifndef KILN_UNSTABLE_CPP_CLAIM_HPP
#define KILN_UNSTABLE_CPP_CLAIM_HPP

#include <cstdint>
#include <utility>

#include "kiln/cpp/cache.hpp"
#include "kiln/unstable/claim.h"

namespace kiln
{

/* The blob that there is, or a claim to compile it: abandoned with the object unless it was
 * fulfilled, and so when an exception passes; true while it is open. The cache must outlive it. */
class claim : public owner<kiln_claim, kiln_claim_abandon>
{
  public:
    /* `wait_ms` as in kiln_claim_options. */
    claim(const cache &in, const recipe &r, std::uint32_t wait_ms = 0)
    {
        check c;
        kiln_claim_options options = {};
        options.struct_size = sizeof(options);
        options.wait_ms = wait_ms;
        kiln_blob *there = nullptr;
        kiln_claim *taken = nullptr;
        const bool hit =
            c.found(kiln_cache_claim(in.get(), r.get(), &options, &there, &taken, &origin_, c));
        if (hit) {
            found_ = blob(there);
        }
        object_.reset(taken);
    }
    /* Empty: compile, and fulfil. */
    const blob &found() const
    {
        return found_;
    }
    kiln_origin origin() const
    {
        return origin_;
    }
    /* Stores it, and hands it to those who wait; found() is it from then on. */
    void fulfil(blob made)
    {
        check c;
        c(kiln_claim_fulfil(release(), made.get(), c));
        found_ = std::move(made);
    }

  private:
    blob found_;
    kiln_origin origin_ = KILN_ORIGIN_NONE;
};
} /* namespace kiln */

#endif

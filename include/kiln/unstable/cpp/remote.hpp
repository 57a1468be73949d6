/* Remotes in C++: are they there, and moving entries to and from them. */
#ifndef KILN_UNSTABLE_CPP_REMOTE_HPP
#define KILN_UNSTABLE_CPP_REMOTE_HPP

#include <vector>

#include "kiln/cpp/cache.hpp"
#include "kiln/unstable/remote.h"

namespace kiln
{

/* Asks each remote of the list; none given: those of $KILN_REMOTE. */
inline std::vector<kiln_remote_report> check_remotes(const char *list = nullptr)
{
    check c;
    std::vector<kiln_remote_report> reports;
    /* An exception must not pass through C. */
    auto keep = [](void *user, const kiln_remote_report *report) noexcept -> kiln_status {
        try {
            static_cast<std::vector<kiln_remote_report> *>(user)->push_back(*report);
            return KILN_OK;
        } catch (...) {
            return KILN_E_NOMEM;
        }
    };
    c(kiln_remote_check(list, keep, &reports, c));
    return reports;
}

/* Entries between a cache and remotes. The cache must outlive it. */
class transfer : public owner<kiln_transfer, kiln_transfer_close>
{
  public:
    explicit transfer(const cache &of, const char *list = nullptr)
    {
        check c;
        kiln_transfer *made = nullptr;
        c(kiln_transfer_open(list, of.get(), &made, c));
        object_.reset(made);
    }
    /* False where there is no such entry here. */
    bool push(const kiln_key &key, bool replace = false)
    {
        check c;
        return c.found(kiln_transfer_push(get(), nullptr, &key, replace, c));
    }
    /* False where no remote has it. */
    bool pull(const kiln_key &key)
    {
        check c;
        return c.found(kiln_transfer_pull(get(), &key, nullptr, c));
    }
    /* Valid until the next call. */
    const kiln_transfer_counts &counts()
    {
        return *kiln_transfer_get_counts(get());
    }
};
} /* namespace kiln */

#endif

/* Packs in C++: looking into them, making them. */
#ifndef KILN_UNSTABLE_CPP_PACK_HPP
#define KILN_UNSTABLE_CPP_PACK_HPP

#include <exception>
#include <string>
#include <type_traits>

#include "kiln/cpp/cache.hpp"
#include "kiln/unstable/pack.h"

namespace kiln
{

/* A pack that is there: what is not throws, with KILN_MISS. */
class pack : public owner<kiln_pack, kiln_pack_close>
{
  public:
    explicit pack(const std::string &path)
    {
        check c;
        kiln_pack *made = nullptr;
        if (!c.found(kiln_pack_open(path.c_str(), &made, c))) {
            c(kiln_diag_set(c, KILN_MISS, nullptr, path.c_str(), "there is no such pack"));
        }
        object_.reset(made);
    }
    const kiln_pack_info &info() const
    {
        return *kiln_pack_get_info(get());
    }
    /* Empty where the pack has none. */
    blob find(const kiln_key &key) const
    {
        check c;
        kiln_blob *found = nullptr;
        (void)c.found(kiln_pack_get(get(), &key, &found, c));
        return blob(found);
    }
    /* `visit` takes a const kiln_entry_info &, which is borrowed for the call. What it throws comes
     * out here. */
    template <typename Visit> void walk(Visit &&visit, const char *target = nullptr) const
    {
        check c;
        call<std::remove_reference_t<Visit>> work{&visit, nullptr};
        const kiln_status status = kiln_pack_walk(get(), target, work.run, &work, c);
        if (work.thrown != nullptr) {
            std::rethrow_exception(work.thrown);
        }
        c(status);
    }
    kiln_verify_result verify() const
    {
        check c;
        kiln_verify_result result{};
        result.struct_size = sizeof(result);
        c(kiln_pack_verify(get(), &result, c));
        return result;
    }
    /* Into the cache's disk. */
    kiln_pack_copied extract(const cache &to, const char *target = nullptr) const
    {
        check c;
        kiln_pack_copied copied{};
        copied.struct_size = sizeof(copied);
        c(kiln_pack_extract(get(), to.get(), target, &copied, c));
        return copied;
    }

  private:
    template <typename Visit> struct call {
        Visit *visit;
        std::exception_ptr thrown;
        /* An exception must not pass through C. */
        static kiln_status run(void *user, const kiln_entry_info *info) noexcept
        {
            auto *self = static_cast<call *>(user);
            try {
                (*self->visit)(*info);
                return KILN_OK;
            } catch (...) {
                self->thrown = std::current_exception();
                return KILN_E_CANCELLED;
            }
        }
    };
};

/* A pack in the making; what was at the path stays until finish(). */
class pack_writer : public owner<kiln_pack_writer, kiln_pack_writer_destroy>
{
  public:
    explicit pack_writer(const std::string &path, const kiln_pack_writer_options *options = nullptr)
    {
        check c;
        kiln_pack_writer *made = nullptr;
        c(kiln_pack_writer_create(path.c_str(), options, &made, c));
        object_.reset(made);
    }
    /* Of a cache's disk or packs. False where it has none; `added` (may be null) is false where the
     * pack has the key already. */
    bool add(const cache &from, const kiln_key &key, bool *added = nullptr)
    {
        check c;
        return c.found(kiln_pack_writer_add(get(), from.get(), &key, added, c));
    }
    /* One of your own. False where the pack has the key already. */
    bool add(const recipe &r, const blob &b)
    {
        check c;
        bool added = false;
        c(kiln_pack_writer_add_blob(get(), r.get(), b.get(), &added, c));
        return added;
    }
    kiln_pack_copied add_all(const cache &from, const char *target = nullptr)
    {
        check c;
        kiln_pack_copied copied{};
        copied.struct_size = sizeof(copied);
        c(kiln_pack_writer_add_all(get(), from.get(), target, nullptr, nullptr, &copied, c));
        return copied;
    }
    kiln_pack_copied add_pack(const pack &from, const char *target = nullptr)
    {
        check c;
        kiln_pack_copied copied{};
        copied.struct_size = sizeof(copied);
        c(kiln_pack_writer_add_pack(get(), from.get(), target, &copied, c));
        return copied;
    }
    kiln_pack_info finish()
    {
        check c;
        kiln_pack_info info{};
        info.struct_size = sizeof(info);
        c(kiln_pack_writer_finish(get(), &info, c));
        return info;
    }
};
} /* namespace kiln */

#endif

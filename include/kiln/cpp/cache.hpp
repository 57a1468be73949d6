/* Level 1 in C++: recipes, blobs, the cache. */
#ifndef KILN_CPP_CACHE_HPP
#define KILN_CPP_CACHE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kiln/cache.h"
#include "kiln/cpp/error.hpp"

namespace kiln
{

inline std::string to_text(const kiln_key &key)
{
    std::array<char, KILN_KEY_TEXT_SIZE> text{};
    kiln_key_format(&key, text.data());
    return text.data();
}

/* A list of fields, and their key. A field that cannot be added makes the next lookup throw. */
class recipe : public owner<kiln_recipe, kiln_recipe_destroy>
{
  public:
    recipe(const char *stage, std::uint32_t revision)
    {
        check c;
        kiln_recipe *made = nullptr;
        c(kiln_recipe_create(stage, revision, &made, c));
        object_.reset(made);
    }
    recipe &add(const char *name, std::string_view text)
    {
        kiln_recipe_add_text(get(), name, text.data(), text.size());
        return *this;
    }
    recipe &add(const char *name, std::uint64_t value)
    {
        kiln_recipe_add_u64(get(), name, value);
        return *this;
    }
    recipe &add_bytes(const char *name, const void *data, std::size_t size)
    {
        kiln_recipe_add_bytes(get(), name, data, size);
        return *this;
    }
    recipe &target(const char *name)
    {
        kiln_recipe_set_target(get(), name);
        return *this;
    }
    kiln_key key() const
    {
        return kiln_recipe_key(get());
    }
    const char *text() const
    {
        return kiln_recipe_text(get());
    }
};

/* Bytes and facts; empty after a miss: then there are no bytes, and no facts. */
class blob : public owner<kiln_blob, kiln_blob_release>
{
  public:
    blob() = default;
    explicit blob(kiln_blob *taken) : owner(taken)
    {
    }
    blob(const void *data, std::size_t size, std::string_view facts = {})
    {
        check c;
        kiln_blob *made = nullptr;
        c(kiln_blob_create(data, size, facts.data(), facts.size(), &made, c));
        object_.reset(made);
    }
    explicit blob(std::string_view bytes, std::string_view facts = {})
        : blob(bytes.data(), bytes.size(), facts)
    {
    }
    blob share() const
    {
        return *this ? blob(kiln_blob_retain(get())) : blob();
    }
    const void *data() const
    {
        return *this ? kiln_blob_data(get()) : nullptr;
    }
    std::size_t size() const
    {
        return *this ? kiln_blob_size(get()) : 0;
    }
    std::string_view bytes() const
    {
        return {static_cast<const char *>(data()), size()};
    }
    std::string_view facts() const
    {
        if (!*this) {
            return {};
        }
        return {static_cast<const char *>(kiln_blob_facts(get())), kiln_blob_facts_size(get())};
    }
};

/* Options as the environment has them; change what you want. */
struct cache_options : kiln_cache_options {
    cache_options() : kiln_cache_options()
    {
        check c;
        c(kiln_cache_options_init(this, c));
    }
};

/* Level 1. */
class cache : public owner<kiln_cache, kiln_cache_destroy>
{
  public:
    cache() : cache(cache_options())
    {
    }
    explicit cache(const kiln_cache_options &options)
    {
        check c;
        kiln_cache *made = nullptr;
        c(kiln_cache_create(&options, &made, c));
        object_.reset(made);
    }
    blob find(const kiln_key &key, kiln_origin *origin = nullptr)
    {
        check c;
        kiln_blob *found = nullptr;
        (void)c.found(kiln_cache_get(get(), &key, &found, origin, c));
        return blob(found);
    }
    void put(const recipe &r, const blob &b, std::uint64_t compile_ns = 0)
    {
        check c;
        c(kiln_cache_put(get(), r.get(), b.get(), compile_ns, c));
    }
    /* `compile` takes nothing and returns a kiln::blob. What it throws comes out here, in the
     * thread that compiled; who waited for it gets a kiln::error. */
    template <typename Compile>
    blob get_or_compile(const recipe &r, Compile &&compile, kiln_origin *origin = nullptr)
    {
        check c;
        call<std::remove_reference_t<Compile>> work{&compile, nullptr};
        kiln_blob *made = nullptr;
        kiln_status status =
            kiln_cache_get_or_compile(get(), r.get(), work.run, &work, &made, origin, c);
        if (work.thrown != nullptr) {
            std::rethrow_exception(work.thrown);
        }
        c(status);
        return blob(made);
    }
    std::vector<bool> contains(const std::vector<kiln_key> &keys)
    {
        const std::unique_ptr<bool[]> there(new bool[keys.size() + 1]);
        kiln_cache_contains(get(), keys.data(), keys.size(), there.get());
        return std::vector<bool>(there.get(), there.get() + keys.size());
    }
    const char *root() const
    {
        return kiln_cache_root(get());
    }

  private:
    template <typename Compile> struct call {
        Compile *compile;
        std::exception_ptr thrown;
        /* An exception must not pass through C. */
        static kiln_status run(void *user, kiln_blob **out_blob, kiln_diag *diag) noexcept
        {
            auto *self = static_cast<call *>(user);
            try {
                *out_blob = (*self->compile)().release();
                return KILN_OK;
            } catch (const std::exception &e) {
                self->thrown = std::current_exception();
                return kiln_diag_set(diag, KILN_E_COMPILE, nullptr, "compiling", "%s", e.what());
            } catch (...) {
                self->thrown = std::current_exception();
                return kiln_diag_set(diag, KILN_E_COMPILE, nullptr, "compiling",
                                     "it threw something that is not a std::exception");
            }
        }
    };
};
} /* namespace kiln */

#endif

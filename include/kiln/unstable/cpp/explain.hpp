/* Why a lookup misses, in C++. */
#ifndef KILN_UNSTABLE_CPP_EXPLAIN_HPP
#define KILN_UNSTABLE_CPP_EXPLAIN_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kiln/cpp/runtime.hpp"
#include "kiln/unstable/explain.h"

namespace kiln
{

/* One field that differs; empty on the side that lacks it. */
struct difference {
    std::string field;
    std::optional<std::string> then, now;
    kiln_why why;
};

/* Of one stage, or one recipe. Keeps copies. */
struct explanation {
    std::string stage;
    kiln_why why = KILN_WHY_NEW;
    kiln_key key{};
    std::string recipe; /* empty where it is not known */
    std::string detail;
    std::optional<kiln_key> nearest; /* the entry that the differences are from */
    std::string nearest_target;
    std::vector<difference> differences;

    explanation() = default;
    explicit explanation(const kiln_explanation &of)
        : stage(text(of.stage)), why(of.why), key(of.key), recipe(text(of.recipe)),
          detail(text(of.detail))
    {
        if (of.has_nearest) {
            nearest = of.nearest;
            nearest_target = text(of.nearest_target);
        }
        for (std::size_t i = 0; i < of.difference_count; i++) {
            const kiln_difference &d = *of.differences[i];
            differences.push_back({text(d.field), maybe(d.then), maybe(d.now), d.why});
        }
    }
    bool hit() const
    {
        return why == KILN_WHY_HIT;
    }

  private:
    static std::string text(const char *text)
    {
        return text != nullptr ? text : "";
    }
    static std::optional<std::string> maybe(const char *text)
    {
        return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
    }
};

using explanations = std::vector<explanation>;

/* An exception must not pass through C. */
inline kiln_status keep_explanation(void *user, const kiln_explanation *one) noexcept
{
    try {
        static_cast<explanations *>(user)->emplace_back(*one);
        return KILN_OK;
    } catch (...) {
        return KILN_E_NOMEM;
    }
}

/* A recipe, or what has (or had) a key. */
inline explanation explain(const cache &in, const recipe &r)
{
    check c;
    explanations list;
    c(kiln_cache_explain(in.get(), r.get(), keep_explanation, &list, c));
    return list.at(0);
}
inline explanation explain(const cache &in, const kiln_key &key)
{
    check c;
    explanations list;
    c(kiln_cache_explain_key(in.get(), &key, keep_explanation, &list, c));
    return list.at(0);
}

/* Stage by stage what compiling a source for "opencl:0" or the like would look up. */
inline explanations explain(const runtime &with, const char *target, const source &s)
{
    check c;
    explanations list;
    const sources one{s};
    c(kiln_explain(with.get(), target, one.data(), keep_explanation, &list, c));
    return list;
}

/* The same without reasons, and quick: the keys are what pack_writer::add takes. */
inline explanations plan(const runtime &with, const char *target, const source &s)
{
    check c;
    explanations list;
    const sources one{s};
    c(kiln_compile_plan(with.get(), target, one.data(), keep_explanation, &list, c));
    return list;
}
} /* namespace kiln */

#endif

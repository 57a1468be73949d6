/* Variants of a kernel in C++. */
#ifndef KILN_UNSTABLE_CPP_TUNE_HPP
#define KILN_UNSTABLE_CPP_TUNE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/cpp/runtime.hpp"
#include "kiln/unstable/tune.h"

namespace kiln
{

/* A kernel with its variants, the baseline first. Keeps copies; the sources' texts are borrowed. */
class kernel
{
  public:
    explicit kernel(std::string name) : name_(std::move(name))
    {
    }
    kernel &variant(std::string name, const source &code, std::string entry, const shape &how)
    {
        const kept &v = *kept_.emplace_back(
            std::make_unique<kept>(kept{std::move(name), std::move(entry), {code}, how}));
        list_.push_back(
            {sizeof(kiln_variant), v.name.c_str(), v.code.data(), v.entry.c_str(), v.how.launch()});
        return *this;
    }
    /* Of the problem, one after the other. */
    kernel &size(std::uint64_t value)
    {
        sizes_.push_back(value);
        return *this;
    }
    /* Of a launch. */
    kernel &amounts(double flops, double bytes)
    {
        flops_ = flops;
        bytes_ = bytes;
        return *this;
    }
    const char *entry(std::size_t index) const
    {
        return list_.at(index).entry;
    }
    const shape &how(std::size_t index) const
    {
        return kept_.at(index)->how;
    }
    /* As long as this is neither changed nor moved. */
    kiln_kernel get() const
    {
        kiln_kernel k{};
        k.struct_size = sizeof(k);
        k.name = name_.c_str();
        k.variants = list_.data();
        k.variant_count = list_.size();
        k.sizes = sizes_.data();
        k.size_count = sizes_.size();
        k.flops = flops_;
        k.bytes = bytes_;
        return k;
    }

  private:
    struct kept {
        std::string name, entry;
        sources code;
        shape how;
    };
    std::string name_;
    std::vector<std::unique_ptr<kept>> kept_;
    std::vector<kiln_variant> list_;
    std::vector<std::uint64_t> sizes_;
    double flops_ = 0, bytes_ = 0;
};

/* What a kernel writes, and how long to measure. */
struct tune_options : kiln_tune_options {
    std::vector<kiln_tune_output> written;
    tune_options() : kiln_tune_options()
    {
        struct_size = sizeof(kiln_tune_options);
    }
    /* The argument with this index. */
    tune_options &writes(std::size_t index, kiln_element element, double absolute = 0,
                         double relative = 0, bool is_input = false)
    {
        written.push_back({index, element, absolute, relative, is_input});
        return *this;
    }
};

/* Measures, with arguments as for queue::launch; where it is known already nothing is measured. */
template <typename... Args>
kiln_tuning tune(const device &on, const kernel &k, const tune_options &options,
                 const Args &...args)
{
    check c;
    const std::array<kiln_arg, sizeof...(Args) + 1> list{argument(args)..., kiln_arg{}};
    const kiln_kernel what = k.get();
    kiln_tune_options how = options;
    how.args = list.data();
    how.arg_count = sizeof...(Args);
    how.outputs = options.written.data();
    how.output_count = options.written.size();
    kiln_tuning tuning{};
    tuning.struct_size = sizeof(tuning);
    c(kiln_tune(on.get(), &what, &how, &tuning, c));
    return tuning;
}

/* Empty where nothing was measured. */
inline std::optional<kiln_tuning> find_tuning(const device &on, const kernel &k)
{
    check c;
    const kiln_kernel what = k.get();
    kiln_tuning tuning{};
    tuning.struct_size = sizeof(tuning);
    if (!c.found(kiln_tuned_find(on.get(), &what, &tuning, c))) {
        return std::nullopt;
    }
    return tuning;
}

/* The variant that was found fastest, else the baseline:
 *     const kiln::tuned best(device, kernel);
 *     queue.launch(best, best.entry(), best.how(), x, y); */
class tuned : public program
{
  public:
    tuned(const device &on, const kernel &k, const kiln_build_options *options = nullptr)
    {
        check c;
        const kiln_kernel what = k.get();
        kiln_program *made = nullptr;
        tuning_.struct_size = sizeof(tuning_);
        c(kiln_tuned_build(on.get(), &what, options, &made, &tuning_, c));
        object_.reset(made);
        entry_ = k.entry(tuning_.variant);
        how_ = k.how(tuning_.variant);
    }
    const kiln_tuning &tuning() const
    {
        return tuning_;
    }
    const char *entry() const
    {
        return entry_.c_str();
    }
    const shape &how() const
    {
        return how_;
    }

  private:
    kiln_tuning tuning_{};
    std::string entry_;
    shape how_ = 1;
};
} /* namespace kiln */

#endif

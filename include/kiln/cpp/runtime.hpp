/* Level 3 in C++: sources, devices, programs, buffers, queues, launches. */
#ifndef KILN_CPP_RUNTIME_HPP
#define KILN_CPP_RUNTIME_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/cpp/cache.hpp"
#include "kiln/kiln.h"

namespace kiln
{

/* A kiln_source that owns its lists. The text is borrowed. */
class source
{
  public:
    source(kiln_language language, std::string name, std::string_view text)
        : name_(std::move(name)), text_(text), language_(language)
    {
    }
    source &define(std::string name, std::string value = "1")
    {
        defines_.emplace_back(std::move(name), std::move(value));
        return *this;
    }
    source &option(std::string text)
    {
        options_.push_back(std::move(text));
        return *this;
    }
    source &include_dir(std::string path)
    {
        include_dirs_.push_back(std::move(path));
        return *this;
    }
    source &entry(std::string name)
    {
        entries_.push_back(std::move(name));
        return *this;
    }

  private:
    friend class sources;
    std::string name_;
    std::string_view text_;
    kiln_language language_;
    std::vector<std::pair<std::string, std::string>> defines_;
    std::vector<std::string> options_, include_dirs_, entries_;
};

/* Several sources as the C API wants them. Keeps copies; their texts are borrowed. */
class sources
{
  public:
    sources(std::initializer_list<source> list)
    {
        for (const source &s : list) {
            add(*kept_.emplace_back(std::make_unique<source>(s)));
        }
    }
    const kiln_source *data() const
    {
        return list_.data();
    }
    std::size_t size() const
    {
        return list_.size();
    }

  private:
    using texts = std::vector<const char *>;
    const char *const *keep(const std::vector<std::string> &list)
    {
        auto &kept = *texts_.emplace_back(std::make_unique<texts>());
        for (const std::string &text : list) {
            kept.push_back(text.c_str());
        }
        return kept.data();
    }
    void add(const source &s)
    {
        kiln_source one = KILN_SOURCE_INIT;
        auto &defines = *defines_.emplace_back(std::make_unique<std::vector<kiln_define>>());
        for (const auto &[name, value] : s.defines_) {
            defines.push_back({name.c_str(), value.c_str()});
        }
        one.language = s.language_;
        one.name = s.name_.c_str();
        one.text = s.text_.data();
        one.length = s.text_.size();
        one.defines = defines.data();
        one.define_count = defines.size();
        one.options = keep(s.options_);
        one.option_count = s.options_.size();
        one.include_dirs = keep(s.include_dirs_);
        one.include_dir_count = s.include_dirs_.size();
        one.entries = keep(s.entries_);
        one.entry_count = s.entries_.size();
        list_.push_back(one);
    }
    std::vector<std::unique_ptr<source>> kept_; /* those of the list are gone after the call */
    std::vector<kiln_source> list_;
    std::vector<std::unique_ptr<texts>> texts_;
    std::vector<std::unique_ptr<std::vector<kiln_define>>> defines_;
};

/* Kernels, built and loaded on one device. */
class program : public owner<kiln_program, kiln_program_release>
{
  public:
    program() = default;
    explicit program(kiln_program *taken) : owner(taken)
    {
    }
    const kiln_build_info &info() const
    {
        return *kiln_program_get_info(get());
    }
};

/* Borrowed from its runtime. */
class device
{
  public:
    explicit device(kiln_device *borrowed) : device_(borrowed)
    {
    }
    kiln_device *get() const noexcept
    {
        return device_;
    }
    const kiln_device_info &info() const
    {
        return *kiln_device_get_info(device_);
    }
    program build(const sources &list, const kiln_build_options *options = nullptr) const
    {
        check c;
        kiln_program *made = nullptr;
        c(kiln_program_build(device_, list.data(), list.size(), options, &made, c));
        return program(made);
    }

  private:
    kiln_device *device_;
};

/* Level 3: backends, devices, a cache. */
class runtime : public owner<kiln_runtime, kiln_runtime_destroy>
{
  public:
    runtime() : runtime(nullptr)
    {
    }
    explicit runtime(const kiln_runtime_options *options)
    {
        check c;
        kiln_runtime *made = nullptr;
        c(kiln_runtime_create(options, &made, c));
        object_.reset(made);
    }
    std::vector<device> devices() const
    {
        std::vector<device> list;
        for (std::size_t i = 0; i < kiln_runtime_device_count(get()); i++) {
            list.emplace_back(kiln_runtime_device(get(), i));
        }
        return list;
    }
    device select(const sources &list) const
    {
        check c;
        kiln_device *found = nullptr;
        c(kiln_runtime_select(get(), list.data(), list.size(), &found, c));
        return device(found);
    }
    const char *summary() const
    {
        return kiln_runtime_summary(get());
    }
};

/* Memory of a device. */
class buffer : public owner<kiln_buffer, kiln_buffer_destroy>
{
  public:
    buffer(const device &on, std::size_t bytes)
    {
        check c;
        kiln_buffer *made = nullptr;
        c(kiln_buffer_create(on.get(), bytes, &made, c));
        object_.reset(made);
    }
    std::size_t size() const
    {
        return kiln_buffer_size(get());
    }
};

/* One launch. */
class event : public owner<kiln_event, kiln_event_release>
{
  public:
    explicit event(kiln_event *taken) : owner(taken)
    {
    }
    void wait() const
    {
        check c;
        c(kiln_event_wait(get(), c));
    }
    std::uint64_t elapsed_ns() const
    {
        check c;
        std::uint64_t ns = 0;
        c(kiln_event_elapsed(get(), &ns, c));
        return ns;
    }
};

/* Work-group memory of so many bytes, as an argument of a launch. */
struct local_memory {
    std::size_t bytes;
};

/* The shape of a launch: {global}, or {global, local}; zeros in local let the backend choose. */
struct shape {
    std::array<std::uint64_t, 3> global{1, 1, 1};
    std::array<std::uint64_t, 3> local{0, 0, 0};
    std::uint32_t dims = 1;
    shape(std::uint64_t x) : global{x, 1, 1}
    {
    }
    shape(std::uint64_t x, std::uint64_t y) : global{x, y, 1}, dims(2)
    {
    }
    shape(std::uint64_t x, std::uint64_t y, std::uint64_t z) : global{x, y, z}, dims(3)
    {
    }
    shape &groups(std::uint64_t x, std::uint64_t y = 1, std::uint64_t z = 1)
    {
        local = {x, y, z};
        return *this;
    }
    /* Without arguments. */
    kiln_launch launch() const
    {
        kiln_launch how{};
        how.struct_size = sizeof(how);
        how.dims = dims;
        for (std::size_t i = 0; i < 3; i++) {
            how.global[i] = global[i];
            how.local[i] = local[i];
        }
        return how;
    }
};

/* What a launch takes: buffers, local_memory, or plain values of exactly the kernel's types. */
inline kiln_arg argument(const buffer &b)
{
    kiln_arg arg{};
    arg.kind = KILN_ARG_BUFFER;
    arg.buffer = b.get();
    return arg;
}
inline kiln_arg argument(const local_memory &memory)
{
    kiln_arg arg{};
    arg.kind = KILN_ARG_LOCAL;
    arg.size = memory.bytes;
    return arg;
}
template <typename T> kiln_arg argument(const T &value)
{
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "an argument is a buffer, local_memory or a plain value");
    kiln_arg arg{};
    arg.kind = KILN_ARG_VALUE;
    arg.value = &value;
    arg.size = sizeof(T);
    return arg;
}

/* Work in order. */
class queue : public owner<kiln_queue, kiln_queue_destroy>
{
  public:
    explicit queue(const device &on)
    {
        check c;
        kiln_queue *made = nullptr;
        c(kiln_queue_create(on.get(), &made, c));
        object_.reset(made);
    }
    void write(const buffer &to, const void *data, std::size_t size, std::size_t offset = 0)
    {
        check c;
        c(kiln_queue_write(get(), to.get(), offset, data, size, c));
    }
    void read(const buffer &from, void *data, std::size_t size, std::size_t offset = 0)
    {
        check c;
        c(kiln_queue_read(get(), from.get(), offset, data, size, c));
    }
    template <typename T> void write(const buffer &to, const std::vector<T> &data)
    {
        static_assert(std::is_trivially_copyable_v<T>, "devices take plain bytes");
        write(to, data.data(), data.size() * sizeof(T));
    }
    template <typename T> void read(const buffer &from, std::vector<T> &data)
    {
        static_assert(std::is_trivially_copyable_v<T>, "devices give plain bytes");
        read(from, data.data(), data.size() * sizeof(T));
    }
    /* Arguments are buffers, local_memory, or plain values of exactly the kernel's types. */
    template <typename... Args>
    event launch(const program &p, const char *entry, const shape &s, const Args &...args)
    {
        check c;
        const std::array<kiln_arg, sizeof...(Args) + 1> list{argument(args)..., kiln_arg{}};
        kiln_launch how = s.launch();
        how.args = list.data();
        how.arg_count = sizeof...(Args);
        kiln_event *made = nullptr;
        c(kiln_queue_launch(get(), p.get(), entry, &how, &made, c));
        return event(made);
    }
    void finish()
    {
        check c;
        c(kiln_queue_finish(get(), c));
    }
};
} /* namespace kiln */

#endif

/* In C++, what goes on in the background, and what comes again and again: warming, watched
 * sources, the executor. */
#ifndef KILN_UNSTABLE_CPP_WORK_HPP
#define KILN_UNSTABLE_CPP_WORK_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "kiln/cpp/runtime.hpp"
#include "kiln/unstable/executor.h"
#include "kiln/unstable/warm.h"
#include "kiln/unstable/watch.h"

namespace kiln
{

/* How often programs were used, by the keys of their first stages. */
inline std::vector<std::uint64_t> uses(const cache &of, const std::vector<kiln_key> &keys)
{
    std::vector<std::uint64_t> found(keys.size());
    kiln_cache_uses(of.get(), keys.data(), keys.size(), found.data(), nullptr);
    return found;
}

/* Programs that are built in the background; what has not begun is called off at its end. */
class warm : public owner<kiln_warm, kiln_warm_destroy>
{
  public:
    warm(const device &on, const std::vector<std::reference_wrapper<const sources>> &programs,
         const kiln_warm_options *options = nullptr)
    {
        check c;
        std::vector<kiln_warm_item> items;
        for (const sources &one : programs) {
            items.push_back({one.data(), one.size()});
        }
        kiln_warm *made = nullptr;
        c(kiln_warm_start(on.get(), items.data(), items.size(), options, &made, c));
        object_.reset(made);
    }
    void cancel()
    {
        kiln_warm_cancel(get());
    }
    void wait()
    {
        kiln_warm_wait(get());
    }
    kiln_warm_state state() const
    {
        check c;
        kiln_warm_state state{};
        state.struct_size = sizeof(state);
        c(kiln_warm_get_state(get(), &state, c));
        return state;
    }
};

/* A program that follows its file, which the source's name names. */
class watch : public owner<kiln_watch, kiln_watch_destroy>
{
  public:
    watch(const device &on, const source &file, const kiln_build_options *options = nullptr)
    {
        check c;
        const sources list{file};
        kiln_watch *made = nullptr;
        c(kiln_watch_create(on.get(), list.data(), options, &made, c));
        object_.reset(made);
    }
    /* True if there is another program now. What does not compile is thrown once; go on then. */
    bool poll()
    {
        check c;
        bool changed = false;
        c(kiln_watch_poll(get(), &changed, c));
        return changed;
    }
    /* The last one that compiled; empty if there has been none. */
    program latest() const
    {
        return program(kiln_watch_program(get()));
    }
    std::size_t place_count() const
    {
        return kiln_watch_place_count(get());
    }
};

/* A buffer of an executor, with the host's data: input(x), output(y), inout(z). What they point to
 * must live until the work is done. */
struct host_data {
    const void *in;
    void *out;
    std::size_t size;
};
template <typename T> host_data input(const std::vector<T> &data)
{
    static_assert(std::is_trivially_copyable_v<T>, "devices take plain bytes");
    return {data.data(), nullptr, data.size() * sizeof(T)};
}
template <typename T> host_data output(std::vector<T> &data)
{
    static_assert(std::is_trivially_copyable_v<T>, "devices give plain bytes");
    return {nullptr, data.data(), data.size() * sizeof(T)};
}
template <typename T> host_data inout(std::vector<T> &data)
{
    static_assert(std::is_trivially_copyable_v<T>, "devices take and give plain bytes");
    return {data.data(), data.data(), data.size() * sizeof(T)};
}

/* A piece of work; empty where the executor had no room. */
class ticket : public owner<kiln_ticket, kiln_ticket_release>
{
  public:
    ticket() = default;
    explicit ticket(kiln_ticket *taken) : owner(taken)
    {
    }
    ticket share() const
    {
        return ticket(kiln_ticket_retain(get()));
    }
    bool done() const
    {
        return kiln_ticket_done(get());
    }
    /* Throws what the work failed with. */
    void wait() const
    {
        check c;
        c(kiln_ticket_wait(get(), c));
    }
};

/* Launches with their data, several in flight. */
class executor : public owner<kiln_executor, kiln_executor_destroy>
{
  public:
    explicit executor(const device &on, const kiln_executor_options *options = nullptr)
    {
        check c;
        kiln_executor *made = nullptr;
        c(kiln_executor_create(on.get(), options, &made, c));
        object_.reset(made);
    }
    /* Arguments as for queue::launch, and host_data. Waits for room. */
    template <typename... Args>
    ticket submit(const program &p, const char *entry, const shape &s, const Args &...args)
    {
        return submit_by(kiln_executor_submit, p, entry, s, args...);
    }
    /* Empty without room. */
    template <typename... Args>
    ticket try_submit(const program &p, const char *entry, const shape &s, const Args &...args)
    {
        return submit_by(kiln_executor_try_submit, p, entry, s, args...);
    }
    void drain()
    {
        kiln_executor_drain(get());
    }
    kiln_executor_stats stats() const
    {
        check c;
        kiln_executor_stats figures{};
        figures.struct_size = sizeof(figures);
        c(kiln_executor_get_stats(get(), &figures, c));
        return figures;
    }

  private:
    static kiln_work_arg work_argument(const host_data &data)
    {
        kiln_work_arg arg{};
        arg.kind = KILN_ARG_BUFFER;
        arg.input = data.in;
        arg.output = data.out;
        arg.size = data.size;
        return arg;
    }
    template <typename T> static kiln_work_arg work_argument(const T &value)
    {
        const kiln_arg plain = argument(value);
        kiln_work_arg arg{};
        arg.kind = plain.kind;
        arg.buffer = plain.buffer;
        arg.value = plain.value;
        arg.size = plain.size;
        return arg;
    }
    template <typename Submit, typename... Args>
    ticket submit_by(Submit call, const program &p, const char *entry, const shape &s,
                     const Args &...args)
    {
        check c;
        const std::array<kiln_work_arg, sizeof...(Args) + 1> list{work_argument(args)...,
                                                                  kiln_work_arg{}};
        kiln_work work{};
        work.struct_size = sizeof(work);
        work.program = p.get();
        work.entry = entry;
        work.dims = s.dims;
        for (std::size_t i = 0; i < 3; i++) {
            work.global[i] = s.global[i];
            work.local[i] = s.local[i];
        }
        work.args = list.data();
        work.arg_count = sizeof...(Args);
        kiln_ticket *made = nullptr;
        const kiln_status status = call(get(), &work, &made, c);
        if (status != KILN_E_BUSY) {
            c(status);
        }
        return ticket(made);
    }
};
} /* namespace kiln */

#endif

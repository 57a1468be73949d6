/* kiln for C++17: owners, exceptions and spans of bytes around the C API, and nothing else.
 *
 * Every class owns one C object, moves and does not copy, and gives the object with get(). What can
 * fail throws kiln::error, which carries the whole diag: status, what, why, what to do, and the
 * compiler's log. A miss is no error: lookups return an empty kiln::blob. Nothing here is compiled
 * into the library; mix freely with the C calls.
 *
 *     kiln::cache cache;
 *     kiln::recipe recipe("my-engine.spirv", 1);
 *     recipe.add("source", text).add("compiler", version);
 *     kiln::blob code = cache.get_or_compile(recipe, [&] { return kiln::blob(compile(text)); });
 *
 *     kiln::runtime runtime;
 *     kiln::source source(KILN_LANG_OPENCL_C, "saxpy.cl", text);
 *     kiln::device device = runtime.select({source});
 *     kiln::program program = device.build({source});
 *     kiln::buffer x(device, bytes), y(device, bytes);
 *     kiln::queue queue(device);
 *     queue.launch(program, "saxpy", {count}, 2.5F, x, y);
 *     queue.read(y, data);
 */
#ifndef KILN_KILN_HPP
#define KILN_KILN_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/kiln.h"

namespace kiln
{

/* What went wrong. what() is the diag's one line. */
class error : public std::exception
{
  public:
    explicit error(const kiln_diag &diag)
        : status_(diag.status), why_(diag.why), fix_(diag.fix),
          log_(diag.log != nullptr ? std::string(diag.log, diag.log_length) : std::string())
    {
        std::array<char, 2048> line{};
        (void)kiln_diag_format(&diag, line.data(), line.size());
        line_ = line[0] != '\0' ? line.data() : kiln_status_text(diag.status);
    }
    const char *what() const noexcept override
    {
        return line_.c_str();
    }
    kiln_status status() const noexcept
    {
        return status_;
    }
    const std::string &why() const noexcept
    {
        return why_;
    }
    const std::string &fix() const noexcept
    {
        return fix_;
    }
    /* The compiler's. */
    const std::string &log() const noexcept
    {
        return log_;
    }

  private:
    kiln_status status_;
    std::string line_, why_, fix_, log_;
};

/* A diag for the C calls, and what turns their answers into exceptions:
 *     kiln::check check;
 *     check(kiln_queue_finish(queue.get(), check)); */
class check
{
  public:
    check() = default;
    check(const check &) = delete;
    check &operator=(const check &) = delete;
    ~check()
    {
        kiln_diag_clear(&diag_);
    }
    operator kiln_diag *()
    {
        return &diag_;
    }
    void operator()(kiln_status status)
    {
        if (status != KILN_OK) {
            diag_.status = status;
            throw error(diag_);
        }
    }
    /* False for KILN_MISS. */
    bool found(kiln_status status)
    {
        if (status == KILN_MISS) {
            return false;
        }
        (*this)(status);
        return true;
    }

  private:
    kiln_diag diag_ = KILN_DIAG_INIT;
};

/* Owns a C object that `End` ends. */
template <typename T, void (*End)(T *)> class owner
{
  public:
    owner() = default;
    explicit owner(T *object) : object_(object)
    {
    }
    T *get() const noexcept
    {
        return object_.get();
    }
    T *release() noexcept
    {
        return object_.release();
    }
    explicit operator bool() const noexcept
    {
        return object_ != nullptr;
    }

  protected:
    struct end {
        void operator()(T *object) const
        {
            End(object);
        }
    };
    std::unique_ptr<T, end> object_;
};

/* --- level 1 -----------------------------------------------------------------------------------
 */

inline std::string to_text(const kiln_key &key)
{
    std::array<char, KILN_KEY_TEXT_SIZE> text{};
    kiln_key_format(&key, text.data());
    return text.data();
}

/* A list of fields, and their key. */
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
        check c;
        c(kiln_recipe_add_text(get(), name, text.data(), text.size(), c));
        return *this;
    }
    recipe &add(const char *name, std::uint64_t value)
    {
        check c;
        c(kiln_recipe_add_u64(get(), name, value, c));
        return *this;
    }
    recipe &add_bytes(const char *name, const void *data, std::size_t size)
    {
        check c;
        c(kiln_recipe_add_bytes(get(), name, data, size, c));
        return *this;
    }
    recipe &target(const char *name)
    {
        check c;
        c(kiln_recipe_set_target(get(), name, c));
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

/* Bytes and facts; empty after a miss. */
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
        return blob(kiln_blob_retain(get()));
    }
    const void *data() const
    {
        return kiln_blob_data(get());
    }
    std::size_t size() const
    {
        return kiln_blob_size(get());
    }
    std::string_view bytes() const
    {
        return {static_cast<const char *>(data()), size()};
    }
    std::string_view facts() const
    {
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
    /* How often programs were used, by the keys of their first stages. */
    std::vector<kiln_use> uses(const std::vector<kiln_key> &keys)
    {
        std::vector<kiln_use> found(keys.size());
        kiln_cache_uses(get(), keys.data(), keys.size(), found.data());
        return found;
    }
    kiln_cache_stats stats() const
    {
        kiln_cache_stats own;
        kiln_cache_stats_own(get(), &own);
        return own;
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
                                     "it threw what is no std::exception");
            }
        }
    };
};

/* --- level 3 -----------------------------------------------------------------------------------
 */

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
        return *kiln_program_info(get());
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

/* --- variants ----------------------------------------------------------------------------------
 */

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
    c(kiln_tune(on.get(), &what, &how, &tuning, c));
    return tuning;
}

/* Empty where nothing was measured. */
inline std::optional<kiln_tuning> find_tuning(const device &on, const kernel &k)
{
    check c;
    const kiln_kernel what = k.get();
    kiln_tuning tuning{};
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

/* --- in the background, and again and again ----------------------------------------------------
 */

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

/* --- remotes -----------------------------------------------------------------------------------
 */

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
    kiln_transfer_counts counts() const
    {
        kiln_transfer_counts counts{};
        kiln_transfer_get_counts(get(), &counts);
        return counts;
    }
};
} /* namespace kiln */

#endif

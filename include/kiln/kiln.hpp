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
#include <initializer_list>
#include <memory>
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
                return kiln_diag_set(diag, KILN_E_COMPILE, nullptr, "compiling", "an exception");
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
};

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
        kiln_launch how{};
        how.struct_size = sizeof(how);
        how.dims = s.dims;
        for (std::size_t i = 0; i < 3; i++) {
            how.global[i] = s.global[i];
            how.local[i] = s.local[i];
        }
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

  private:
    static kiln_arg argument(const buffer &b)
    {
        kiln_arg arg{};
        arg.kind = KILN_ARG_BUFFER;
        arg.buffer = b.get();
        return arg;
    }
    static kiln_arg argument(const local_memory &memory)
    {
        kiln_arg arg{};
        arg.kind = KILN_ARG_LOCAL;
        arg.size = memory.bytes;
        return arg;
    }
    template <typename T> static kiln_arg argument(const T &value)
    {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                      "an argument is a buffer, local_memory or a plain value");
        kiln_arg arg{};
        arg.kind = KILN_ARG_VALUE;
        arg.value = &value;
        arg.size = sizeof(T);
        return arg;
    }
};

} /* namespace kiln */

#endif

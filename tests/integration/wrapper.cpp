/* kiln.hpp: misses are empty, failures are exceptions that carry the diag, what a compile throws
 * comes out, objects move; packs, explaining, variants, warming, watching, executor and remotes on
 * the cpu backend. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <kiln/unstable.hpp>

static int failures = 0;
#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : (void)(failures++, std::printf("line %d: %s\n", __LINE__, #condition)))

static_assert(!std::is_copy_constructible_v<kiln::cache>);
static_assert(std::is_nothrow_move_constructible_v<kiln::blob>);
static_assert(!std::is_copy_constructible_v<kiln::program>);

static kiln::recipe recipe_of(const char *text)
{
    kiln::recipe recipe("test", 1);
    recipe.add("text", text).add("number", 7).add_bytes("bytes", text, 1).target("here");
    return recipe;
}

static void test_cache()
{
    kiln::cache_options options;
    options.flags |= KILN_CACHE_NO_DISK;
    kiln::cache cache(options);
    const kiln::recipe one = recipe_of("one");
    const kiln::blob none = cache.find(one.key());
    CHECK(!none && none.size() == 0 && none.data() == nullptr);
    CHECK(none.bytes().empty() && none.facts().empty() && !none.share());
    CHECK(kiln::to_text(one.key()).size() == 64);
    int runs = 0;
    kiln_origin origin{};
    auto compile = [&] {
        runs++;
        return kiln::blob("bytes", "facts");
    };
    CHECK(cache.get_or_compile(one, compile, &origin).bytes() == "bytes");
    CHECK(origin == KILN_ORIGIN_COMPILED);
    kiln::blob again = cache.get_or_compile(one, compile, &origin);
    CHECK(origin == KILN_ORIGIN_MEMORY && runs == 1 && again.facts() == "facts");
    kiln::blob moved = std::move(again);
    kiln::blob shared = moved.share();
    CHECK(shared.data() == moved.data());
    cache.put(recipe_of("two"), kiln::blob("2"), 5);
    const std::vector<bool> there =
        cache.contains({one.key(), recipe_of("two").key(), recipe_of("three").key()});
    CHECK(there[0] && there[1] && !there[2]);
    CHECK(kiln::counter(cache, KILN_COUNTER_HITS_MEMORY) == 1);
    CHECK(kiln::totals(cache).size() == KILN_COUNTERS);
}

static void test_errors()
{
    kiln::cache_options options;
    options.flags |= KILN_CACHE_NO_DISK;
    kiln::cache cache(options);
    const kiln::recipe recipe = recipe_of("bad");
    try {
        (void)cache.get_or_compile(recipe,
                                   []() -> kiln::blob { throw std::runtime_error("broken"); });
        CHECK(false);
    } catch (const std::runtime_error &e) {
        CHECK(std::string(e.what()) == "broken");
    }
    CHECK(!cache.find(recipe.key())); /* a failure is never stored */
    try {
        (void)cache.get_or_compile(recipe, [] { return kiln::blob(""); });
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_COMPILE && !e.why().empty());
    }
    try {
        kiln::recipe wrong("no such/name", 1);
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_INVALID && *e.what() != '\0');
    }
    try {
        const kiln::runtime runtime;
        const kiln::sources broken{kiln::source(KILN_LANG_C, "broken.c", "this is no C;")};
        (void)runtime.select(broken).build(broken);
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_COMPILE && e.log().find("broken.c") != std::string::npos);
    }
}

/* A cache on disk of its own. */
static kiln::cache disk_cache(const std::filesystem::path &dir, const char *name)
{
    kiln::cache_options options;
    const std::string root = (dir / name).string();
    options.root = root.c_str();
    return kiln::cache(options);
}

static void test_packs(const std::filesystem::path &dir)
{
    const kiln::cache here = disk_cache(dir, "here");
    kiln::cache there = disk_cache(dir, "there");
    const std::string path = (dir / "it.kpack").string();
    kiln::cache filled = disk_cache(dir, "here"); /* the same one */
    filled.put(recipe_of("one"), kiln::blob("first", "facts"));
    filled.put(recipe_of("two"), kiln::blob("second"));
    try {
        const kiln::pack absent(path);
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_MISS && std::string(e.what()).find(path) != std::string::npos);
    }
    kiln::pack_writer writer(path);
    bool added = false;
    CHECK(writer.add(here, recipe_of("one").key(), &added) && added);
    CHECK(writer.add(here, recipe_of("one").key(), &added) && !added);
    CHECK(!writer.add(here, recipe_of("absent").key()));
    CHECK(writer.add(recipe_of("own"), kiln::blob("mine")));
    CHECK(!writer.add(recipe_of("own"), kiln::blob("mine")));
    const kiln_pack_copied copied = writer.add_all(here);
    CHECK(copied.added == 1 && copied.present == 1);
    CHECK(writer.finish().entries == 3);
    const kiln::pack pack(path);
    CHECK(pack.info().entries == 3 && pack.verify().entries_good == 3);
    CHECK(pack.find(recipe_of("one").key()).facts() == "facts");
    CHECK(pack.find(recipe_of("own").key()).bytes() == "mine");
    CHECK(!pack.find(recipe_of("absent").key()));
    std::vector<std::string> keys;
    pack.walk([&](const kiln_entry_info &info) { keys.push_back(kiln::to_text(info.key)); },
              "here");
    CHECK(keys.size() == 3 && keys[0] < keys[1] && keys[1] < keys[2]);
    int visits = 0;
    try {
        pack.walk([&](const kiln_entry_info &) {
            visits++;
            throw std::runtime_error("enough");
        });
        CHECK(false);
    } catch (const std::runtime_error &e) {
        CHECK(visits == 1 && std::string(e.what()) == "enough");
    }
    CHECK(pack.extract(there).added == 3 && pack.extract(there).present == 3);
    CHECK(there.find(recipe_of("two").key()).bytes() == "second");
}

static void test_explaining(const std::filesystem::path &dir)
{
    kiln::cache cache = disk_cache(dir, "explained");
    cache.put(recipe_of("one"), kiln::blob("first"));
    CHECK(kiln::explain(cache, recipe_of("one")).hit());
    const kiln::explanation two = kiln::explain(cache, recipe_of("two"));
    CHECK(!two.hit() && two.stage == "test" && two.nearest_target == "here");
    CHECK(two.nearest && kiln::to_text(*two.nearest) == kiln::to_text(recipe_of("one").key()));
    CHECK(two.differences.size() == 2); /* "text", and the one byte of "bytes" */
    for (const kiln::difference &d : two.differences) {
        CHECK((d.field == "text" || d.field == "bytes") && d.then && d.now && *d.then != *d.now);
    }
    CHECK(kiln::explain(cache, recipe_of("one").key()).hit());
    const kiln::explanation gone = kiln::explain(cache, recipe_of("two").key());
    CHECK(gone.why == KILN_WHY_NEW && gone.recipe.empty());
}

static void test_claims(const std::filesystem::path &dir)
{
    kiln::cache cache = disk_cache(dir, "claimed");
    try {
        const kiln::claim open(cache, recipe_of("one"));
        CHECK(!open.found());
        throw std::runtime_error("a compile that fails");
    } catch (const std::runtime_error &) {
        kiln::claim again(cache, recipe_of("one")); /* the first one is closed */
        CHECK(!again.found());
        again.fulfil(kiln::blob("ONE"));
        CHECK(again.found().bytes() == "ONE");
    }
    const kiln::claim hit(cache, recipe_of("one"));
    CHECK(hit.found().bytes() == "ONE");
    CHECK(hit.origin() == KILN_ORIGIN_MEMORY);
    CHECK(kiln::counter(cache, KILN_COUNTER_COMPILES) == 1);
}

static const char twice_text[] =
    "#include <kiln_kernel.h>\n"
    "KILN_KERNEL(twice, KILN_IN(int, x), KILN_OUT(int, y)) { KILN_ITEMS_X(i) { y[i] = FACTOR * "
    "x[i]; } }\n";

static kiln::source twice(const char *factor)
{
    return kiln::source(KILN_LANG_C, "twice.c", twice_text).define("FACTOR", factor);
}

static kiln::runtime cpu_runtime()
{
    kiln_runtime_options options{};
    kiln::check check;
    check(kiln_runtime_options_init(&options, check));
    options.backend = "cpu";
    return kiln::runtime(&options);
}

static void test_variants(const kiln::device &device)
{
    const std::vector<int> x(256, 21);
    std::vector<int> y(256, 0);
    const kiln::buffer in(device, 1024);
    const kiln::buffer out(device, 1024);
    kiln::queue queue(device);
    queue.write(in, x);
    kiln::kernel two("wrapper.twice");
    two.variant("plain", twice("2"), "twice", kiln::shape(256).groups(64))
        .variant("sum", twice("1 + 1"), "twice", kiln::shape(256).groups(64)) /* differs */
        .size(256)
        .amounts(256, 2048);
    const kiln::kernel kernel = std::move(two);
    std::vector<kiln_tune_row> rows(2);
    for (kiln_tune_row &row : rows) {
        row.struct_size = sizeof(row);
    }
    kiln::tune_options options;
    options.writes(1, KILN_ELEMENT_I32);
    options.rows = rows.data();
    options.again = true;
    const kiln_tuning tuning = kiln::tune(device, kernel, options, in, out);
    CHECK(tuning.known && tuning.variant == 0);
    CHECK(rows[0].outcome == KILN_TUNE_CHOSEN && rows[1].outcome == KILN_TUNE_DIFFERS);
    const std::optional<kiln_tuning> found = kiln::find_tuning(device, kernel);
    CHECK(found && found->known && found->variant == 0);
    kiln::kernel other("wrapper.other");
    other.variant("plain", twice("3"), "twice", 256);
    CHECK(!kiln::find_tuning(device, other));
    const kiln::tuned best(device, kernel);
    CHECK(best.tuning().known && best.how().local[0] == 64);
    queue.launch(best, best.entry(), best.how(), in, out);
    queue.read(out, y);
    CHECK(y[0] == 42 && y[255] == 42);
    try {
        (void)kiln::tune(device, kernel, kiln::tune_options(), in, out);
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_INVALID);
    }
}

static void test_warm(const kiln::device &device)
{
    const kiln::sources one{twice("5")};
    const kiln::sources two{twice("6")};
    const kiln::sources wrong{kiln::source(KILN_LANG_C, "wrong.c", "this is no C;")};
    kiln::warm warm(device, {one, two, wrong});
    warm.wait();
    const kiln_warm_state state = warm.state();
    CHECK(state.total == 3 && state.built == 2 && state.failed == 1 && state.running == 0);
    warm.cancel();
}

static void test_watch(const kiln::device &device, const std::string &path)
{
    std::ofstream(path) << twice_text;
    kiln::watch watch(device,
                      kiln::source(KILN_LANG_C, path, {}).define("FACTOR", "2").entry("twice"));
    CHECK(!watch.latest());
    CHECK(watch.poll());
    CHECK(!watch.poll() && watch.latest() && watch.place_count() > 0);
    std::ofstream(path) << "this is no C any more;";
    try {
        (void)watch.poll();
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_COMPILE && watch.latest());
    }
    CHECK(!watch.poll());
    (void)std::remove(path.c_str());
}

/* What a build would look up, before it and after it. */
static void test_plan(const kiln::runtime &runtime)
{
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    const kiln::source own = twice("11").entry("twice").define("NEVER_BEFORE", std::to_string(now));
    const kiln::explanations before = kiln::plan(runtime, "cpu:0", own);
    CHECK(before.size() == 1 && !before.at(0).hit());
    (void)runtime.devices().at(0).build({own});
    const kiln::explanations after = kiln::explain(runtime, "cpu:0", own);
    CHECK(after.size() == 1 && after.at(0).hit() && !after.at(0).recipe.empty());
    CHECK(kiln::to_text(after.at(0).key) == kiln::to_text(before.at(0).key));
    try {
        (void)kiln::plan(runtime, "teapot:0", own);
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(!e.why().empty());
    }
}

static void test_executor(const kiln::device &device)
{
    const kiln::program program = device.build({twice("2")});
    const std::vector<int> x(64, 4);
    std::vector<int> y(64, 0);
    std::vector<int> z(64, 0);
    kiln::executor executor(device);
    const kiln::ticket first =
        executor.submit(program, "twice", 64, kiln::input(x), kiln::output(y));
    first.wait();
    CHECK(first.done() && y[63] == 8);
    const kiln::ticket second =
        executor.try_submit(program, "twice", 64, kiln::inout(y), kiln::output(z));
    CHECK(second);
    executor.drain();
    CHECK(second.share().done() && y[0] == 8 && z[0] == 16);
    const kiln::ticket wrong = executor.submit(program, "no such entry", 64, kiln::input(x));
    try {
        wrong.wait();
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_INVALID);
    }
    CHECK(executor.stats().completed == 2 && executor.stats().failed == 1);
}

static void test_remotes()
{
    kiln::cache_options options;
    options.flags |= KILN_CACHE_NO_DISK;
    kiln::cache cache(options);
    const kiln_key key = recipe_of("one").key();
    CHECK(kiln::uses(cache, {key}).at(0) == 0);
    try {
        kiln::transfer transfer(cache, "");
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_UNAVAILABLE);
    }
    const std::vector<kiln_remote_report> reports = kiln::check_remotes("gopher://nowhere");
    CHECK(reports.size() == 1 && !reports[0].reachable && reports[0].why[0] != '\0');
    try {
        (void)kiln::check_remotes("nowhere");
        CHECK(false);
    } catch (const kiln::error &e) {
        CHECK(e.status() == KILN_E_INVALID);
    }
}

int main(int argc, char **argv)
{
    test_cache();
    test_errors();
    const std::string watched = argc > 1 ? argv[1] : "wrapper_watched.c";
    const std::filesystem::path dir = std::filesystem::absolute(watched + ".caches");
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    test_packs(dir);
    test_explaining(dir);
    test_claims(dir);
    std::filesystem::remove_all(dir);
    const kiln::runtime runtime = cpu_runtime();
    const kiln::device device = runtime.devices().at(0);
    test_variants(device);
    test_warm(device);
    test_watch(device, watched);
    test_plan(runtime);
    test_executor(device);
    test_remotes();
    std::printf("kiln.hpp: %s\n", failures == 0 ? "fine" : "FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

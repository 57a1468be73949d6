/* kiln.hpp: misses are empty, failures are exceptions that carry the diag, what a compile throws
 * comes out, objects move. */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <kiln/kiln.hpp>

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
    CHECK(!cache.find(one.key()));
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
    CHECK(cache.stats().hits_memory == 1);
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

int main()
{
    test_cache();
    test_errors();
    std::printf("kiln.hpp: %s\n", failures == 0 ? "fine" : "FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

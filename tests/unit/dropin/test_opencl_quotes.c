/* Include directories in quotes, which a driver may take off, keep as part of the name, or make
 * blanks of: the key of a program has the headers of each reading. The current directory is the
 * test's own. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apis/opencl/dropin/request.h"
#include "support/tmpdir.h"
#include "unit/dropin/opencl_rig.h"

static rig_client fake;

static int open_fake(void **state)
{
    (void)state;
    return rig_open_driver(&fake) ? 0 : -1;
}

static int close_fake(void **state)
{
    (void)state;
    rig_close(&fake);
    return 0;
}

/* False: it bypasses the cache. */
static bool make_key(const char *text, const char *options, kiln_key *out_key)
{
    kiln_cache_options memory;
    kiln_cache *cache = NULL;
    kn_opencl_wish *wish = NULL;
    kn_opencl_request request;
    assert_int_equal(kiln_cache_options_init(&memory, NULL), KILN_OK);
    memory.flags |= KILN_CACHE_NO_DISK;
    assert_int_equal(kiln_cache_create(&memory, &cache, NULL), KILN_OK);
    assert_int_equal(
        kn_opencl_wish_create_plain(fake.context, fake.devices[0], text, options, &wish, NULL),
        KILN_OK);
    assert_int_equal(kn_opencl_request_init(&request, cache, wish, NULL), KILN_OK);
    const bool keyed = request.bypass[0] == '\0';
    *out_key = kiln_recipe_key(request.recipe);
    kn_opencl_request_deinit(&request);
    kn_opencl_wish_release(wish);
    kiln_cache_destroy(cache);
    return keyed;
}

static kiln_key key_of(const char *options)
{
    kiln_key key;
    assert_true(make_key("#include \"deep.h\"\nkernel void k(void) {}\n", options, &key));
    return key;
}

static bool same(const kiln_key *a, const kiln_key *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Each write is seen, and taken back. */
static void check_write(const char *dir, const char *options, const char *before)
{
    const kiln_key first = key_of(options);
    char *path = kt_at(dir, "deep.h");
    if (before == NULL) {
        assert_int_equal(mkdir(dir, 0700), 0);
    }
    kt_file_write(path, "#define FACTOR 9\n", 17);
    const kiln_key written = key_of(options);
    assert_false(same(&first, &written));
    if (before != NULL) {
        kt_file_write(path, before, strlen(before));
    } else {
        assert_true(unlink(path) == 0 && rmdir(dir) == 0);
    }
    const kiln_key last = key_of(options);
    assert_true(same(&first, &last));
}

static void a_header_of_each_reading_is_in_the_key(void **state)
{
    static const char *const written[] = {"-I\"meant\" -Iother", "-I \"meant\" -I other",
                                          "-I\"me\"ant -Iother"};
    static const char *const literal[] = {"\"meant\"", "\"meant\"", "\"me\"ant"};
    static const char *const blanks[] = {" meant ", " meant ", " me ant"};
    const int before = open(".", O_RDONLY | O_CLOEXEC);
    assert_true(before != -1 && chdir((const char *)*state) == 0);
    assert_true(mkdir("meant", 0700) == 0 && mkdir("other", 0700) == 0);
    kt_file_write("meant/deep.h", "#define FACTOR 3\n", 17);
    kt_file_write("other/deep.h", "#define FACTOR 4\n", 17);
    for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++) {
        check_write("meant", written[i], "#define FACTOR 3\n");
        check_write("other", written[i], "#define FACTOR 4\n");
        check_write(literal[i], written[i], NULL);
        check_write(blanks[i], written[i], NULL);
    }
    const kiln_key quoted = key_of("-I\"meant\" -Iother"), plain = key_of("-Imeant -Iother");
    assert_false(same(&quoted, &plain));
    assert_int_equal(fchdir(before), 0);
    (void)close(before);
}

static void quotes_before_the_option_bypass_the_cache(void **state)
{
    static const char *const odd[] = {"\"-Imeant\"", "-\"I\"meant", "\"-I\" meant", "-I\"meant"};
    kiln_key key;
    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        assert_false(make_key("kernel void k(void) {}\n", odd[i], &key));
    }
    assert_true(make_key("kernel void k(void) {}\n", "-I\"meant\"", &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        kt_dir_test(a_header_of_each_reading_is_in_the_key),
        cmocka_unit_test(quotes_before_the_option_bypass_the_cache),
    };
    return cmocka_run_group_tests(tests, open_fake, close_fake);
}

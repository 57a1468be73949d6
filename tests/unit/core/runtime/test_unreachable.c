/* Removing what was made for drivers and devices that have gone: what goes, and all that must stay.
 * The fake backend's driver and devices change with variables, as a real one's do with an update.
 */
#include "unit/core/rig.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/unreachable.h>

#include "core/runtime/surroundings.h"

typedef struct tally {
    size_t entries, alone;
    char why[256]; /* of the last */
} tally;

static void count(void *user, const kiln_unreachable *told)
{
    tally *t = user;
    assert_int_equal(told->struct_size, sizeof(*told));
    assert_non_null(told->backend);
    if (strcmp(told->backend, "fake") == 0) {
        t->entries += told->entry != NULL;
        t->alone += told->entry == NULL;
        (void)strncpy(t->why, told->why, sizeof(t->why) - 1);
    } else {
        assert_null(told->entry);
    }
}

static kiln_prune_result prune(const rig *r, bool dry_run, tally *out_tally)
{
    kiln_prune_result result = {.struct_size = sizeof(result)};
    *out_tally = (tally){0};
    const kiln_unreachable_options options = {
        .struct_size = sizeof(options), .dry_run = dry_run, .visit = count, .user = out_tally};
    RIG_OK(kiln_runtime_prune_unreachable(r->runtime, &options, &result, &diag));
    assert_int_equal(out_tally->entries, result.entries_removed);
    return result;
}

static void set(const char *variable, const char *value)
{
    assert_int_equal(setenv(variable, value, 1), 0);
}

static bool is_there(const rig *r, kiln_key key)
{
    bool there = false;
    kiln_cache_contains(r->cache, &key, 1, &there);
    return there;
}

/* Builds with another driver, in what was another process; then opens today's. */
static kiln_key build_with(rig *r, const char *variable, const char *value)
{
    kiln_source source = rig_source(rig_saxpy);
    set(variable, value);
    rig_open(r, NULL);
    const kiln_key key = rig_key(r, &source, NULL);
    rig_close(r);
    assert_int_equal(unsetenv(variable), 0);
    return key;
}

static void what_was_made_for_another_driver_goes(void **state)
{
    rig *r = *state;
    tally t;
    set("KILN_FAKE_BOUND", "1");
    const kiln_key old = build_with(r, "KILN_FAKE_DRIVER", "0.9");
    const kiln_key gone = build_with(r, "KILN_FAKE_DEVICE", "Older Processor");
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    const kiln_key today = rig_key(r, &source, NULL);
    kiln_prune_result result = prune(r, true, &t);
    assert_int_equal(result.entries_removed, 2);
    assert_true(result.bytes_removed > 0 && result.bytes_removed < result.bytes_seen);
    assert_true(is_there(r, old) && is_there(r, gone));
    result = prune(r, false, &t);
    assert_int_equal(result.entries_removed, 2);
    assert_int_equal(t.alone, 0);
    assert_false(is_there(r, old));
    assert_false(is_there(r, gone));
    assert_true(is_there(r, today));
    assert_int_equal(prune(r, false, &t).entries_removed, 0);
    rig_close(r);
    rig_open(r, NULL);
    uint32_t compiles = 1;
    (void)rig_key(r, &source, &compiles);
    assert_int_equal(compiles, 0); /* neither stage */
}

/* Of two devices, the second one's is as much today's as the first one's. */
static void what_any_device_asks_for_stays(void **state)
{
    rig *r = *state;
    tally t;
    set("KILN_FAKE_BOUND", "1");
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    r->device = kiln_runtime_device(r->runtime, 1);
    const kiln_key second = rig_key(r, &source, NULL);
    assert_int_equal(prune(r, false, &t).entries_removed, 0);
    assert_true(is_there(r, second));
    rig_close(r);
    set("KILN_FAKE_DEVICES", "1");
    rig_open(r, NULL);
    assert_int_equal(prune(r, false, &t).entries_removed, 1);
    assert_non_null(strstr(t.why, "device.number"));
    assert_false(is_there(r, second));
}

/* Made where any machine could make it: perhaps for another one, perhaps by a compiler that is
 * still here somewhere. */
static void what_needs_no_device_stays(void **state)
{
    rig *r = *state;
    tally t;
    const kiln_key driver = build_with(r, "KILN_FAKE_DRIVER", "0.9");
    const kiln_key compiler = build_with(r, "KILN_FAKE_BUILD_ID", "ffff");
    set("KILN_FAKE_BOUND", "1");
    const kiln_key codegen = build_with(r, "KILN_FAKE_CODEGEN", "fast"); /* of that process */
    rig_open(r, NULL);
    assert_int_equal(prune(r, false, &t).entries_removed, 0);
    assert_true(is_there(r, driver) && is_there(r, compiler) && is_there(r, codegen));
}

/* --- when in doubt ---------------------------------------------------------------------------- */

static void a_backend_that_does_not_answer_is_left_alone(void **state)
{
    rig *r = *state;
    tally t;
    set("KILN_FAKE_BOUND", "1");
    const kiln_key old = build_with(r, "KILN_FAKE_DRIVER", "0.9");
    set("KILN_FAKE_FAULTS", "identify=fail@2"); /* of the second of two devices */
    rig_open(r, NULL);
    assert_int_equal(prune(r, false, &t).entries_removed, 0);
    assert_int_equal(t.alone, 1);
    assert_true(t.why[0] != '\0');
    assert_true(is_there(r, old));
    /* Asked again, it answers. */
    assert_int_equal(prune(r, false, &t).entries_removed, 1);
}

static void another_kilns_entries_and_pinned_ones_stay(void **state)
{
    rig *r = *state;
    tally t;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    set("KILN_FAKE_BOUND", "1");
    const kiln_key pinned = build_with(r, "KILN_FAKE_DRIVER", "0.9");
    rig_open(r, NULL);
    /* An earlier kiln, say, said less of a driver. */
    RIG_OK(kiln_recipe_create("fake.bound", 1, &recipe, &diag));
    RIG_OK(kiln_recipe_add_text(recipe, "driver.version", "0.9", 3, &diag));
    RIG_OK(kiln_blob_create("x", 1, NULL, 0, &blob, &diag));
    RIG_OK(kiln_cache_put(r->cache, recipe, blob, 0, &diag));
    const kiln_key other = kiln_recipe_key(recipe);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    RIG_OK(kiln_cache_pin(r->cache, &pinned, &diag));
    assert_int_equal(prune(r, false, &t).entries_removed, 0);
    assert_true(is_there(r, pinned) && is_there(r, other));
    kiln_cache_unpin(r->cache, &pinned);
    assert_int_equal(prune(r, false, &t).entries_removed, 1);
    assert_true(is_there(r, other));
}

static void variables_that_hide_devices_are_told(void **state)
{
    static const char *const names[] = {"CUDA_*", "XDG_*", "HOME", "MESA_*", NULL};
    static const kiln_probe_basis basis = {.variables = names, .foreign = true};
    static const char *const hiding[][2] = {{"CUDA_VISIBLE_DEVICES", "0"},
                                            {"LD_LIBRARY_PATH", "/opt/lib"},
                                            {"XDG_CONFIG_DIRS", "/opt"},
                                            {"XDG_DATA_DIRS", "/opt/share"}};
    static const char *const harmless[][2] = {{"CUDA_HOME", "/opt/cuda"},
                                              {"CUDA_CACHE_PATH", "/tmp/x"},
                                              {"XDG_RUNTIME_DIR", "/run/user/1"},
                                              {"XDG_DATA_DIRS", "/opt/share:/usr/share"}};
    char variable[128];
    (void)state;
    static const char *const begins[] = {"CUDA_",           "XDG_",       "MESA_",
                                         "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW"};
    extern char **environ;
    for (size_t i = 0; environ[i] != NULL;) {
        bool cleared = false;
        for (size_t k = 0; k < sizeof(begins) / sizeof(begins[0]) && !cleared; k++) {
            char name[256];
            const size_t length = strcspn(environ[i], "=");
            if (strncmp(environ[i], begins[k], strlen(begins[k])) == 0 && length < sizeof(name)) {
                memcpy(name, environ[i], length);
                name[length] = '\0';
                cleared = unsetenv(name) == 0;
            }
        }
        i += !cleared;
    }
    assert_false(kn_surroundings_hiding(&basis, variable, sizeof(variable)));
    for (size_t i = 0; i < 4; i++) {
        set(hiding[i][0], hiding[i][1]);
        assert_true(kn_surroundings_hiding(&basis, variable, sizeof(variable)));
        assert_string_equal(variable, hiding[i][0]);
        assert_int_equal(unsetenv(hiding[i][0]), 0);
        set(harmless[i][0], harmless[i][1]);
        assert_false(kn_surroundings_hiding(&basis, variable, sizeof(variable)));
    }
}

static void without_a_disk_there_is_nothing_to_prune(void **state)
{
    rig *r = *state;
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_diag why = KILN_DIAG_INIT;
    kiln_unreachable_options options = {.struct_size = 1};
    rig_open_cache(r, NULL, KILN_CACHE_NO_DISK);
    assert_int_equal(kiln_runtime_prune_unreachable(r->runtime, NULL, &result, &why),
                     KILN_E_UNAVAILABLE);
    assert_int_equal(kiln_runtime_prune_unreachable(r->runtime, &options, &result, &why),
                     KILN_E_INVALID);
    kiln_diag_clear(&why);
    rig_close(r);
    rig_open_cache(r, NULL, KILN_CACHE_READONLY);
    assert_true(kiln_runtime_prune_unreachable(r->runtime, NULL, &result, NULL) != KILN_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_made_for_another_driver_goes),
        TEST(what_any_device_asks_for_stays),
        TEST(what_needs_no_device_stays),
        TEST(a_backend_that_does_not_answer_is_left_alone),
        TEST(another_kilns_entries_and_pinned_ones_stay),
        TEST(variables_that_hide_devices_are_told),
        TEST(without_a_disk_there_is_nothing_to_prune),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Nothing is said where something fails: a shell would show it in the middle of a line. */
#include "cmd/completion_words.h"

#include <stdio.h>
#include <string.h>

#include <kiln/kiln.h>

#include "cli/listing.h"

/* Targets that can be compiled for without a device. */
static const char *const offline[] = {
    "vulkan:spirv", "cpu:native", "cpu:x86-64", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4",
    "cpu:aarch64",  "cuda:sm_75", "cuda:sm_80", "cuda:sm_86",    "cuda:sm_89",    "cuda:sm_90"};

static kiln_cache *open_cache(void)
{
    kiln_cache *cache = NULL;
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
    return kiln_cache_create(NULL, &cache, NULL) == KILN_OK ? cache : NULL;
}

static void print_device_words(const cmd_context *context)
{
    kiln_cache *cache = open_cache();
    kiln_runtime *runtime = NULL;
    kiln_runtime_options options = {0};
    (void)context;
    if (cache != NULL && kiln_runtime_options_init(&options, NULL) == KILN_OK) {
        options.cache = cache;
        if (kiln_runtime_create(&options, &runtime, NULL) == KILN_OK) {
            for (size_t i = 0; i < kiln_runtime_device_count(runtime); i++) {
                const kiln_device_info *info =
                    kiln_device_properties(kiln_runtime_device(runtime, i));
                (void)printf("%s:%u\n", info->backend, info->index);
            }
            kiln_runtime_destroy(runtime);
        }
    }
    kiln_cache_destroy(cache);
}

static void print_targets(const cmd_context *context)
{
    print_device_words(context);
    for (size_t i = 0; i < sizeof(offline) / sizeof(offline[0]); i++) {
        (void)puts(offline[i]);
    }
}

static bool list_entries(const cmd_context *context, kiln_cache *cache, cli_listing *out_listing)
{
    return cache != NULL && *kiln_cache_root(cache) != '\0' &&
           listing_make(cache, NULL, context->pool, out_listing, NULL) == KILN_OK;
}

static void print_keys(const cmd_context *context)
{
    kiln_cache *cache = open_cache();
    cli_listing listing;
    if (list_entries(context, cache, &listing)) {
        for (size_t i = 0; i < listing.count; i++) {
            (void)printf("%.16s\n", listing.entries[i].key);
        }
    }
    kiln_cache_destroy(cache);
}

static void print_stored(const cmd_context *context)
{
    kiln_cache *cache = open_cache();
    cli_listing listing;
    if (list_entries(context, cache, &listing)) {
        for (size_t i = 0; i < listing.count; i++) {
            bool seen = false;
            for (size_t j = 0; j < i && !seen; j++) {
                seen = strcmp(listing.entries[i].target, listing.entries[j].target) == 0;
            }
            if (!seen) {
                (void)puts(listing.entries[i].target);
            }
        }
    }
    kiln_cache_destroy(cache);
}

static void print_languages(const cmd_context *context)
{
    (void)context;
#define KN_LANGUAGE(id, name, ...) (void)puts(name);
#define KN_LANGUAGE_INTERNAL(...)
#include "base/languages.def"
}

bool completion_words_print(const cmd_context *context, const char *name)
{
    static const struct {
        const char *name;
        void (*print)(const cmd_context *context);
    } rows[] = {{"devices", print_device_words},
                {"languages", print_languages},
                {"targets", print_targets},
                {"stored", print_stored},
                {"keys", print_keys}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            rows[i].print(context);
            return true;
        }
    }
    return false;
}

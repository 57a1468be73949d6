#include "cli/chosen_target.h"

#include <stdio.h>
#include <string.h>

#include <kiln/unstable/probe.h>

enum { TARGETS_SHOWN = 12 };

/* The different targets of what is looked at. */
typedef struct target_names {
    cli_pool *pool;
    const char *items[TARGETS_SHOWN + 1]; /* NULL after the last */
    size_t count;
    bool more;
} target_names;

/* Where the entries are. */
typedef struct target_place {
    kiln_cache *cache;
    kiln_pack *pack; /* else */
} target_place;

static kiln_status stop_at_entry(void *user, const kiln_entry_info *info)
{
    (void)user;
    (void)info;
    return KILN_MISS;
}

static kiln_status collect_target(void *user, const kiln_entry_info *info)
{
    target_names *names = user;
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], info->target) == 0) {
            return KILN_OK;
        }
    }
    names->more = names->count == TARGETS_SHOWN;
    if (names->more) {
        return KILN_MISS;
    }
    const char *text = pool_text(names->pool, info->target, strlen(info->target));
    names->items[names->count] = text;
    names->count += text != NULL;
    return text != NULL ? KILN_OK : KILN_E_NOMEM;
}

static kiln_status walk_place(const target_place *place, const char *target, kiln_entry_fn *visit,
                              void *user)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_status status = place->cache != NULL
                                   ? kiln_cache_walk(place->cache, target, visit, user, &diag)
                                   : kiln_pack_walk(place->pack, target, visit, user, &diag);
    kiln_diag_clear(&diag);
    return status;
}

/* "vulkan:spirv", "opencl:0" and "opencl" are what `kiln compile` takes. No entry's target has a
 * colon. */
static bool is_for_compile(const char *target)
{
    bool found = strchr(target, ':') != NULL;
    for (size_t i = 0; !found && kiln_backend_name(i) != NULL; i++) {
        found = strcmp(kiln_backend_name(i), target) == 0;
    }
    return found;
}

static bool could_be_of_entry(const char *target)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const size_t length = strlen(target);
    return length > 0 && length <= 64 && target[0] != '.' && strspn(target, allowed) == length &&
           !is_for_compile(target);
}

static void propose_targets(const target_place *place, const target_names *names,
                            const char *target, char *fix, size_t size)
{
    const char *nearest = opt_nearest(names->items, target);
    size_t used = 0;
    if (names->count == 0) {
        (void)snprintf(fix, size, "the %s has no entries", place->cache != NULL ? "cache" : "pack");
        return;
    }
    if (nearest != NULL) {
        used += (size_t)snprintf(fix, size, "did you mean %.64s? ", nearest);
    }
    used += (size_t)snprintf(fix + used, size - used, "the entries' targets are ");
    for (size_t i = 0; i < names->count && used + 80 < size; i++) {
        used += (size_t)snprintf(fix + used, size - used, "%s%.64s", i > 0 ? ", " : "",
                                 names->items[i]);
    }
    if (names->more) {
        (void)snprintf(fix + used, size - used, " and others");
    }
}

static exit_code check_in_place(const cmd_context *context, const target_place *place,
                                const char *target)
{
    kiln_diag diag = KILN_DIAG_INIT;
    target_names names = {.pool = context->pool};
    char fix[1024] = "";
    if (target == NULL || walk_place(place, target, stop_at_entry, NULL) != KILN_OK) {
        return EXIT_FINE; /* what cannot be read is reported by who reads it */
    }
    if (walk_place(place, NULL, collect_target, &names) == KILN_E_NOMEM) {
        return cmd_no_memory(context);
    }
    propose_targets(place, &names, target, fix, sizeof(fix));
    if (could_be_of_entry(target)) {
        console_say(context->console, "--target: no entry has the target %s (%s)", target, fix);
        return EXIT_FINE;
    }
    (void)kiln_diag_set(&diag, KILN_E_INVALID, fix, "--target", "no entry has the target \"%.64s\"",
                        target);
    return cmd_fail(context, &diag);
}

exit_code chosen_target_check(const cmd_context *context, kiln_cache *cache, const char *target)
{
    return check_in_place(context, &(target_place){.cache = cache}, target);
}

exit_code chosen_target_check_pack(const cmd_context *context, kiln_pack *pack, const char *target)
{
    return check_in_place(context, &(target_place){.pack = pack}, target);
}

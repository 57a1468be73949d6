/* Composes the tiers. This file must not know what a tier is made of. */
#include "store/cache/stack.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "key/recipe.h"
#include "store/format/blob.h"

kiln_status kn_stack_add(kn_stack *stack, kn_tier tier, kiln_diag *diag)
{
    if (stack->count == KN_STACK_TIERS) {
        tier.ops->close(tier.self);
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "opening the cache", "more than %d tiers",
                             KN_STACK_TIERS);
    }
    stack->tiers[stack->count++] = tier;
    return KILN_OK;
}

void kn_stack_deinit(kn_stack *stack)
{
    while (stack->count > 0) {
        const kn_tier *tier = &stack->tiers[--stack->count];
        tier->ops->close(tier->self);
    }
    kn_mem_destroy(stack->memory);
    stack->memory = NULL;
}

static void count_stack_hit(kn_stack *stack, kiln_origin origin, const kiln_blob *blob)
{
    kn_stats_add(stack->stats,
                 origin == KILN_ORIGIN_DISK   ? KN_COUNT_hits_disk
                 : origin == KILN_ORIGIN_PACK ? KN_COUNT_hits_pack
                                              : KN_COUNT_hits_remote,
                 1);
    kn_stats_add(stack->stats, KN_COUNT_saved_ns, kiln_blob_compile_ns(blob));
}

/* What a tier could not do. */
typedef enum trouble { TAKE, READ, STORE, TROUBLES } trouble;

/* The first time is logged, with its reason; the caller counts each. */
static void log_trouble(kn_stack *stack, size_t tier, trouble what, const kiln_diag *diag)
{
    static const char *const words[TROUBLES] = {"copy an entry from a lower tier", "be read",
                                                "store an entry"};
    const uint32_t bit = UINT32_C(1) << (tier * TROUBLES + (size_t)what);
    if (atomic_fetch_or(&stack->told, bit) & bit) {
        return;
    }
    char line[1536];
    (void)kiln_diag_format(diag, line, sizeof line);
    kn_log(KILN_LOG_WARN, "the cache's %s tier could not %s: %s", stack->tiers[tier].ops->name,
           words[what], line[0] != '\0' ? line : kiln_status_text(diag->status));
}

_Static_assert(KN_STACK_TIERS *TROUBLES <= 32, "more troubles than bits");

/* Gives what tier `from` had to all tiers above that take writes, unless it stays there as near as
 * it is. */
static void write_above(kn_stack *stack, const kiln_key *key, kiln_blob *blob, size_t from)
{
    char target[KN_NAME_SIZE];
    if (blob->recipe.length == 0 || (stack->tiers[from].ops->caps & KN_TIER_STAYS)) {
        return;
    }
    for (size_t i = 0; i < from; i++) {
        const kn_tier *tier = &stack->tiers[i];
        if (!(tier->ops->caps & KN_TIER_WRITES)) {
            continue;
        }
        kn_recipe_target_in(blob->recipe, target);
        const kn_tier_put what = {
            .key = key, .target = target, .recipe = blob->recipe, .blob = blob, .copy = true};
        kiln_diag diag = KILN_DIAG_INIT;
        if (tier->ops->put(tier->self, &what, &diag) != KILN_OK) {
            kn_stats_add(stack->stats, KN_COUNT_put_failures, 1);
            log_trouble(stack, i, TAKE, &diag);
        }
        kiln_diag_clear(&diag);
    }
}

/* Memory is filled last, here and in kn_stack_put: another thread that has a hit in memory may
 * count on the tiers below having been written, and put the entry into a pack. */
static void promote_blob(kn_stack *stack, const kiln_key *key, kiln_blob *blob, size_t from)
{
    write_above(stack, key, blob, from);
    if (stack->memory != NULL) {
        (void)kn_mem_put(stack->memory, key, blob);
    }
}

typedef struct manner {
    uint32_t not_in; /* tiers that are not asked, by their caps */
    bool note;
    bool below; /* memory is asked last */
} manner;

typedef struct question {
    const kiln_key *key;
    const char *target; /* NULL: not known */
    manner how;
} question;

static kiln_blob *get_from_memory(kn_stack *stack, const kiln_key *key, bool note)
{
    if (stack->memory == NULL) {
        return NULL;
    }
    return note ? kn_mem_get_uncounted(stack->memory, key) : kn_mem_get(stack->memory, key);
}

static kiln_status get_from_tier(kn_stack *stack, size_t index, const question *q,
                                 kiln_blob **out_blob, kiln_origin *out_origin)
{
    const kn_tier *tier = &stack->tiers[index];
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = tier->ops->get(tier->self, q->key, q->target, out_blob, &diag);
    if (status == KILN_OK) {
        if (!q->how.note) {
            count_stack_hit(stack, tier->ops->origin, *out_blob);
        }
        promote_blob(stack, q->key, *out_blob, index);
        *out_origin = tier->ops->origin;
        return KILN_OK;
    }
    if (status == KILN_E_CORRUPT) {
        kn_stats_add(stack->stats, KN_COUNT_corrupt, 1);
    } else if (status != KILN_MISS) {
        kn_stats_add(stack->stats, KN_COUNT_io_errors, 1);
        log_trouble(stack, index, READ, &diag);
    }
    kiln_diag_clear(&diag);
    return KILN_MISS;
}

/* The tier that is asked before tier `at`, which lacks the entry: the one after it that stays. Else
 * `at` itself. */
static size_t find_first(const kn_stack *stack, size_t at, const question *q)
{
    const kn_tier *tier = &stack->tiers[at];
    size_t lasting = at + 1;
    if (tier->ops->lacks == NULL || q->target == NULL) {
        return at;
    }
    while (lasting < stack->count && !(stack->tiers[lasting].ops->caps & KN_TIER_STAYS)) {
        lasting++;
    }
    return lasting < stack->count && tier->ops->lacks(tier->self, q->key, q->target) ? lasting : at;
}

static kiln_status get_from_tiers(kn_stack *stack, const kiln_key *key, const char *target,
                                  manner how, kiln_blob **out_blob, kiln_origin *out_origin)
{
    const question q = {.key = key, .target = target, .how = how};
    size_t asked = SIZE_MAX; /* out of turn */
    *out_origin = KILN_ORIGIN_NONE;
    *out_blob = how.below ? NULL : get_from_memory(stack, key, how.note);
    if (*out_blob != NULL) {
        *out_origin = KILN_ORIGIN_MEMORY;
        return KILN_OK;
    }
    for (size_t i = 0; i < stack->count; i++) {
        if ((stack->tiers[i].ops->caps & how.not_in) || i == asked) {
            continue;
        }
        const size_t first = asked == SIZE_MAX ? find_first(stack, i, &q) : i;
        if (first != i) {
            asked = first;
            if (get_from_tier(stack, first, &q, out_blob, out_origin) == KILN_OK) {
                return KILN_OK;
            }
        }
        if (get_from_tier(stack, i, &q, out_blob, out_origin) == KILN_OK) {
            return KILN_OK;
        }
    }
    return KILN_MISS;
}

kiln_status kn_stack_get(kn_stack *stack, const kiln_key *key, const char *target,
                         kiln_blob **out_blob, kiln_origin *out_origin)
{
    return get_from_tiers(stack, key, target, (manner){.not_in = 0}, out_blob, out_origin);
}

kiln_status kn_stack_get_near(kn_stack *stack, const kiln_key *key, const char *target,
                              kiln_blob **out_blob, kiln_origin *out_origin)
{
    return get_from_tiers(stack, key, target, (manner){.not_in = KN_TIER_FAR}, out_blob,
                          out_origin);
}

kiln_status kn_stack_get_below(kn_stack *stack, const kiln_key *key, kiln_blob **out_blob,
                               kiln_origin *out_origin)
{
    kiln_status status =
        get_from_tiers(stack, key, NULL, (manner){.below = true}, out_blob, out_origin);
    if (status != KILN_OK) {
        *out_blob = get_from_memory(stack, key, false);
        *out_origin = *out_blob != NULL ? KILN_ORIGIN_MEMORY : KILN_ORIGIN_NONE;
    }
    return *out_blob != NULL ? KILN_OK : KILN_MISS;
}

kiln_status kn_stack_get_note(kn_stack *stack, const kiln_key *key, const char *target, bool far,
                              kiln_blob **out_blob, kiln_origin *out_origin)
{
    const manner how = {.not_in = far ? 0 : KN_TIER_FAR, .note = true};
    kiln_status status = get_from_tiers(stack, key, target, how, out_blob, out_origin);
    if (status == KILN_OK) {
        kn_stats_add(stack->stats, KN_COUNT_note_hits, 1);
    }
    return status;
}

kiln_status kn_stack_get_mapped(kn_stack *stack, const kiln_key *key, kiln_blob **out_blob)
{
    kiln_status status = KILN_MISS;
    for (size_t i = 0; i < stack->count && status != KILN_OK; i++) {
        const kn_tier *tier = &stack->tiers[i];
        if (tier->ops->caps & KN_TIER_STAYS) { /* who asks for all tiers counts what is damaged */
            status = tier->ops->get(tier->self, key, NULL, out_blob, NULL);
        }
    }
    if (status == KILN_OK) {
        kn_stats_add(stack->stats, KN_COUNT_note_hits, 1);
    }
    return status == KILN_OK ? KILN_OK : KILN_MISS;
}

void kn_stack_put(kn_stack *stack, const kn_tier_put *what, bool write)
{
    const bool near_only = kn_recipe_is_note(what->recipe);
    for (size_t i = 0; write && i < stack->count; i++) {
        const kn_tier *tier = &stack->tiers[i];
        if (!(tier->ops->caps & KN_TIER_WRITES) || (near_only && (tier->ops->caps & KN_TIER_FAR))) {
            continue;
        }
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_status status = tier->ops->put(tier->self, what, &diag);
        if (!(tier->ops->caps & KN_TIER_FAR)) {
            kn_stats_add(stack->stats, status == KILN_OK ? KN_COUNT_puts : KN_COUNT_put_failures,
                         1);
        }
        if (status != KILN_OK) {
            log_trouble(stack, i, STORE, &diag);
        }
        kiln_diag_clear(&diag);
    }
    if (stack->memory != NULL && !what->below) {
        (void)kn_mem_put(stack->memory, what->key, what->blob); /* without it, disk answers */
    }
}

kiln_status kn_stack_remove(kn_stack *stack, const kiln_key *key, kiln_diag *diag)
{
    kiln_status result = KILN_MISS;
    if (stack->memory != NULL && kn_mem_remove(stack->memory, key)) {
        result = KILN_OK;
    }
    for (size_t i = 0; i < stack->count; i++) {
        const kn_tier *tier = &stack->tiers[i];
        if (!(tier->ops->caps & KN_TIER_WRITES)) {
            continue;
        }
        kiln_status status = tier->ops->remove(tier->self, key, diag);
        if (status != KILN_MISS && result != KILN_E_IO) {
            result = status == KILN_OK ? KILN_OK : KILN_E_IO;
        }
    }
    return result;
}

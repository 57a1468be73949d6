/* Recorded programs as items. */
#include "warm/warm_recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "warm/warm_order.h"

kiln_status warm_recorded_open(const char *path, cli_console *console, warm_recorded *out,
                               kiln_diag *diag)
{
    const char *what = "";
    out->path = path;
    kiln_status status = kiln_recording_open(path, &out->recording, diag);
    const size_t damaged = status == KILN_OK ? kiln_recording_damage(out->recording, &what) : 0;
    if (damaged > 0) {
        console_say(console, "%s: %zu damaged %s left out: %s", path, damaged,
                    damaged == 1 ? "file is" : "files are", what);
    }
    return status;
}

void warm_recorded_close(warm_recorded *recorded)
{
    exec_helpers_destroy(recorded->helpers);
    kiln_recording_close(recorded->recording);
    recorded->helpers = NULL;
    recorded->recording = NULL;
}

/* --- targets ---------------------------------------------------------------------------------- */

static size_t find_target(const cli_targets *targets, const char *name)
{
    size_t index = 0;
    while (index < targets->count && strcmp(targets->items[index].name, name) != 0) {
        index++;
    }
    return index;
}

kiln_status warm_recorded_targets(warm_recorded *recorded, cli_pool *pool, cli_targets *out_targets,
                                  kiln_diag *diag)
{
    const size_t count = kiln_recording_count(recorded->recording);
    memset(out_targets, 0, sizeof(*out_targets));
    recorded->as_recorded = true;
    for (size_t i = 0; i < count; i++) {
        const char *name = kiln_recording_use(recorded->recording, i)->target;
        if (find_target(out_targets, name) < out_targets->count) {
            continue;
        }
        const size_t place = out_targets->count;
        if (out_targets->count == TARGETS_MAX) {
            return kiln_diag_set(diag, KILN_E_INVALID, "name those that you want with --target",
                                 "reading a recording", "it has more than %d targets", TARGETS_MAX);
        }
        char *copy = pool_text(pool, name, strlen(name));
        if (copy == NULL) {
            return diag_no_memory(diag, "reading a recording");
        }
        out_targets->items[out_targets->count++] = (cli_target){.name = copy};
        recorded->names[place] = copy;
        recorded->stand_ins[place] = place;
    }
    return KILN_OK;
}

/* How much of "opencl-pocl-cpu" two targets share, if that is more than "opencl-pocl-". */
static size_t measure_kinship(const char *left, const char *right)
{
    size_t length = 0, words = 0;
    while (left[length] != '\0' && left[length] == right[length]) {
        words += left[length] == '-';
        length++;
    }
    return words >= 2 ? length : 0;
}

/* The target of a device that is here, for the one of `name`; "": the device itself is here, or
 * none is like it. */
static kiln_status find_stand_in(const cli_target *target, cli_pool *pool, const char **out_name,
                                 kiln_diag *diag)
{
    const size_t backend = strcspn(target->name, ":");
    const char *gone = target->name + backend + (target->name[backend] == ':');
    size_t most = 0;
    *out_name = "";
    if (strncmp(gone, target->name, backend) != 0 || gone[backend] != '-') {
        return KILN_OK; /* no device's: what the backend compiles for by its name */
    }
    for (size_t i = 0; i < kiln_runtime_device_count(target->runtime); i++) {
        const kiln_device_info *info =
            kiln_device_get_info(kiln_runtime_device(target->runtime, i));
        const size_t kinship = measure_kinship(gone, info->target);
        if (strcmp(gone, info->target) == 0) {
            *out_name = "";
            return KILN_OK;
        }
        if (kinship > most) {
            most = kinship;
            *out_name = pool_format(pool, "%s:%s", info->backend, info->target);
            if (*out_name == NULL) {
                return diag_no_memory(diag, "reading a recording");
            }
        }
    }
    return KILN_OK;
}

/* A driver's new version may have another name for its device: PoCL 3.1 has "pthread", 5.0 "cpu".
 */
kiln_status warm_recorded_adopt(warm_recorded *recorded, cli_targets *targets, cli_pool *pool,
                                kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    const bool wanted = recorded->stale && recorded->as_recorded;
    for (size_t i = 0; status == KILN_OK && wanted && i < targets->count; i++) {
        const char *name = "";
        if (targets->items[i].runtime != NULL) {
            status = find_stand_in(&targets->items[i], pool, &name, diag);
        }
        if (status == KILN_OK && name[0] != '\0') {
            const size_t there = find_target(targets, name);
            recorded->stand_ins[i] = there < targets->count ? there : i;
            targets->items[i].name = there < targets->count ? targets->items[i].name : name;
        }
    }
    return status;
}

/* Backends that take nothing of a language need not be asked ten thousand times. */
static bool may_be_for(const kiln_recorded_use *use, const char *target)
{
    static const struct {
        kiln_language language;
        const char *backends;
    } rows[] = {
#define KN_LANGUAGE(id, name, ending, other, form, backends, ...) {KILN_LANG_##id, backends},
#define KN_LANGUAGE_INTERNAL(...)
#include "base/languages.def"
    };
    char backend[64];
    bool known = false;
    (void)snprintf(backend, sizeof(backend), "%.*s", (int)strcspn(target, ":"), target);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bool taken = opt_has_word(rows[i].backends, backend);
        if (taken && rows[i].language == use->language) {
            return true;
        }
        known = known || taken;
    }
    return !known; /* a backend that kiln does not bring is asked */
}

/* --- items ------------------------------------------------------------------------------------ */

static warm_item describe_item(const kiln_recorded_use *use, size_t index, size_t target)
{
    return (warm_item){.name = use->name[0] != '\0' ? use->name : "(no name)",
                       .use = use,
                       .use_index = index,
                       .target = target,
                       .variant_name = "",
                       .uses = use->days,
                       .last_use_ns = use->last_ns};
}

static bool is_use_wanted(const warm_recorded *recorded, const kiln_recorded_use *use, int64_t now)
{
    return recorded->within_ns == 0 || now - use->last_ns <= (int64_t)recorded->within_ns;
}

static size_t place_of(const warm_recorded *recorded, const char *name)
{
    size_t index = 0;
    while (strcmp(recorded->names[index], name) != 0) {
        index++; /* each target of a use is there */
    }
    return recorded->stand_ins[index];
}

static size_t list_as_recorded(const warm_recorded *recorded, warm_item *items)
{
    const int64_t now = host_wall();
    size_t made = 0;
    for (size_t i = 0; i < kiln_recording_count(recorded->recording); i++) {
        const kiln_recorded_use *use = kiln_recording_use(recorded->recording, i);
        if (is_use_wanted(recorded, use, now)) {
            items[made++] = describe_item(use, i, place_of(recorded, use->target));
        }
    }
    return made;
}

/* The first use of each program stands for it, but for a target that was recorded its own does:
 * then the key can be compared. `places` has room for a number a program and target, zeroed. */
static size_t list_for_targets(const warm_recorded *recorded, const cli_targets *targets,
                               size_t *places, warm_item *items)
{
    const int64_t now = host_wall();
    size_t made = 0;
    for (size_t i = 0; i < kiln_recording_count(recorded->recording); i++) {
        const kiln_recorded_use *use = kiln_recording_use(recorded->recording, i);
        for (size_t t = 0; t < targets->count && is_use_wanted(recorded, use, now); t++) {
            size_t *place = &places[use->program * targets->count + t];
            const bool own = strcmp(use->target, targets->items[t].name) == 0;
            if (*place == 0 && may_be_for(use, targets->items[t].name)) {
                items[made] = describe_item(use, i, t);
                *place = ++made;
            } else if (*place > 0 && own) {
                items[*place - 1] = describe_item(use, i, t);
            }
        }
    }
    return made;
}

/* Uses of one program for one target, the last one first. */
static int compare_programs(const void *left, const void *right)
{
    const warm_item *a = left;
    const warm_item *b = right;
    if (a->use->program != b->use->program) {
        return a->use->program < b->use->program ? -1 : 1;
    }
    if (a->target != b->target) {
        return a->target < b->target ? -1 : 1;
    }
    if (a->last_use_ns != b->last_use_ns) {
        return a->last_use_ns > b->last_use_ns ? -1 : 1;
    }
    return a->use_index < b->use_index ? -1 : a->use_index > b->use_index;
}

static int compare_first_use(const void *left, const void *right)
{
    const warm_item *a = left;
    const warm_item *b = right;
    return a->use_index < b->use_index ? -1 : a->use_index > b->use_index;
}

/* A program that went through several drivers has a use, and a key, of each: the last one stands
 * for it, with the days of all. Used on most days first, then last. */
static void order_stale(warm_list *list)
{
    size_t kept = 0;
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof(warm_item), compare_programs);
    }
    for (size_t i = 0; i < list->count; i++) {
        warm_item *last = kept > 0 ? &list->items[kept - 1] : NULL;
        if (last != NULL && last->use->program == list->items[i].use->program &&
            last->target == list->items[i].target) {
            last->uses += list->items[i].uses;
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
    if (kept > 1) {
        qsort(list->items, kept, sizeof(warm_item), compare_first_use);
    }
    warm_order(list->items, kept);
}

kiln_status warm_recorded_list(const warm_recorded *recorded, const cli_targets *targets,
                               cli_pool *pool, warm_list *out_list, kiln_diag *diag)
{
    const size_t count = kiln_recording_count(recorded->recording);
    const size_t each = recorded->as_recorded ? 1 : targets->count;
    size_t *places = pool_array(pool, count * each + 1, sizeof(*places));
    *out_list = (warm_list){.items = pool_array(pool, count * each + 1, sizeof(warm_item))};
    if (out_list->items == NULL || places == NULL) {
        return diag_no_memory(diag, "reading a recording");
    }
    out_list->count = recorded->as_recorded
                          ? list_as_recorded(recorded, out_list->items)
                          : list_for_targets(recorded, targets, places, out_list->items);
    if (recorded->stale) {
        order_stale(out_list);
    }
    return KILN_OK;
}

/* --- making ----------------------------------------------------------------------------------- */

/* A key that is another than the recorded one, for the same target, is not a fault by itself:
 * another compiler, or another header of the toolchain, has its own. */
static void compare_keys(const cli_target *target, warm_item *item, const kiln_key *first)
{
    item->compared = strcmp(target->name, item->use->target) == 0;
    item->other_key = item->compared && memcmp(first, &item->use->key, sizeof(*first)) != 0;
}

/* What a worker, or this process, has made of it. */
static kiln_status take_answer(const cli_target *target, warm_item *item,
                               const kn_replay_answer *answer, warm_pack *pack, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    item->outcome = answer->compiled ? WARM_COMPILED : WARM_THERE;
    item->language = item->use->language;
    item->size = answer->size;
    item->compile_ns = answer->compile_ns;
    item->saved_ns = answer->saved_ns;
    if (answer->key_count > 0) {
        compare_keys(target, item, &answer->keys[0]);
    }
    for (size_t i = 0; status == KILN_OK && pack != NULL && i < answer->key_count; i++) {
        status = warm_pack_note_key(pack, &answer->keys[i], item, diag);
    }
    return status;
}

kiln_status warm_recorded_make(warm_recorded *recorded, const cli_target *target, warm_item *item,
                               warm_pack *pack, kiln_diag *diag)
{
    kn_replay_answer answer;
    kiln_status status;
    if (item->use->way == KILN_REPLAY_CALL) {
        const bool same = strcmp(target->name, item->use->target) == 0;
        status = exec_helpers_call(recorded->helpers, item->name, item->use_index,
                                   same ? &item->use->key : NULL, target->name, &answer, diag);
    } else if (target->runtime == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, target->name, "%s", target->reason);
    } else if (!exec_helpers_compile(recorded->helpers, item->name, item->use_index, target->name,
                                     &answer, &status, diag)) {
        memset(&answer, 0, sizeof(answer)); /* no workers in this installation, as on Windows */
        status = kn_replay_compile(recorded->recording, item->use_index, target->runtime,
                                   target->name, &answer, diag);
    }
    return status == KILN_OK ? take_answer(target, item, &answer, pack, diag) : status;
}

/* Must not read a binary: that is what its callers want to spare. */
#include "dropin/opencl_worth.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/stages.h"
#include "base/text.h"
#include "dropin/opencl_budget.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "sys/dylib.h"
#include "sys/file.h"
#include "sys/process.h"

#define NOTE_VERSION 2

/* A library of PoCL 3.1 without any code of the kernel's own has some 12.5 KiB, and takes 60 ms;
 * each KiB more takes 30. Measured from 13 to 90 KiB; the budget corrects it by what it sees. */
#define LIBRARY_BYTES 12800u
#define LIBRARY_NS (60ull * 1000000ull)
#define BYTE_NS 30000ull

typedef struct launched_search {
    const char *names;
    size_t found;
    uint64_t cost;
} launched_search;

static uint64_t cost_of_library(const char *path)
{
    kn_file_facts facts = {0};
    if (kn_file_stat(path, true, &facts, NULL) != KILN_OK) {
        return KN_OPENCL_WORTH_GUESS_NS;
    }
    return LIBRARY_NS + (facts.size > LIBRARY_BYTES ? (facts.size - LIBRARY_BYTES) * BYTE_NS : 0);
}

static kn_module_choice choose_code(void *user, const char *path)
{
    launched_search *search = (launched_search *)user;
    if (kn_pocl_is_code_of(path, search->names)) {
        search->found++;
        search->cost += cost_of_library(path);
    }
    return KN_MODULE_NO;
}

uint64_t kn_opencl_worth_cost(const kn_opencl_api *api, cl_program program, size_t kernels)
{
    char *names = kn_opencl_program_names(api, program);
    launched_search search = {.names = names};
    const bool known = names != NULL && kn_module_select(choose_code, NULL, &search);
    free(names);
    if (!known) {
        return kernels * KN_OPENCL_WORTH_GUESS_NS;
    }
    /* Several sizes of one kernel are launched, or some kernels only: a mean for each. */
    return search.found > 0 ? search.cost / search.found * (kernels > 0 ? kernels : 1) : 0;
}

/* The note's recipe: one of kiln's own, in the place of the program's key. NULL if memory is short.
 */
static kiln_recipe *create_note(const kiln_recipe *recipe)
{
    const kiln_key key = kiln_recipe_key(recipe);
    char text[KILN_KEY_TEXT_SIZE];
    kiln_recipe *note = NULL;
    kiln_key_format(&key, text);
    kiln_status status = kiln_recipe_create(kn_stage_kiln_unread, NOTE_VERSION, &note, NULL);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(note, kn_recipe_target(recipe), NULL);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_text(note, "program", text, sizeof(text) - 1, NULL);
    }
    if (status != KILN_OK) {
        kiln_recipe_destroy(note);
        note = NULL;
    }
    return note;
}

/* Who left it out last, a process's number and when its first build began (the number alone comes
 * again, in a container at each start), and what all builds have taken. */
#define NOTE_SIZE 24

static void write_note(unsigned char note[NOTE_SIZE], uint64_t built_ns)
{
    kn_put_u64(note, kn_process_id());
    kn_put_u64(note + 8, kn_opencl_budget_began());
    kn_put_u64(note + 16, built_ns);
}

/* False where it is this process's own. */
static bool read_note(const kiln_blob *blob, uint64_t *out_built_ns)
{
    const unsigned char *note = (const unsigned char *)kiln_blob_data(blob);
    if (kiln_blob_size(blob) != NOTE_SIZE) {
        return false;
    }
    *out_built_ns = kn_get_u64(note + 16);
    return kn_get_u64(note) != kn_process_id() || kn_get_u64(note + 8) != kn_opencl_budget_began();
}

bool kn_opencl_worth_repeats(kiln_cache *cache, const kiln_recipe *recipe, uint64_t *out_built_ns)
{
    kiln_recipe *note = create_note(recipe);
    kiln_blob *blob = NULL;
    *out_built_ns = 0;
    if (note == NULL) {
        return false;
    }
    const kiln_key key = kiln_recipe_key(note);
    const bool there = kn_cache_get_note(cache, &key, kn_recipe_target(note), &blob) == KILN_OK &&
                       read_note(blob, out_built_ns);
    kiln_blob_release(blob);
    kiln_recipe_destroy(note);
    return there;
}

void kn_opencl_worth_note(kiln_cache *cache, const kiln_recipe *recipe, uint64_t built_ns)
{
    unsigned char bytes[NOTE_SIZE];
    kiln_recipe *note = create_note(recipe);
    kiln_blob *blob = NULL;
    write_note(bytes, built_ns);
    if (note != NULL && kiln_blob_create(bytes, sizeof(bytes), NULL, 0, &blob, NULL) == KILN_OK) {
        /* Where it is lost the next start leaves one. */
        kn_ignore(kiln_cache_put(cache, note, blob, 0, NULL));
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(note);
}

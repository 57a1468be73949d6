/* A small table in a file. Must not know who misses what. */
#include "store/disk/kin.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "key/recipe.h"
#include "store/format/checksum.h"
#include "store/format/recipe_diff.h"
#include "sys/clock.h"
#include "sys/file.h"

#define PLACES 4096u
#define WAYS 4u
#define ROW 40u
#define PLACE (WAYS * ROW)

/* The groups that may differ within a family: these reasons, in their order. */
#define FIRST KILN_WHY_OPTIONS
#define LAST KILN_WHY_STAGE
enum { GROUPS = LAST - FIRST + 1 };

enum { AT_FAMILY = 0, AT_SECONDS = 8, AT_GROUPS = 12 };
_Static_assert(AT_GROUPS + 4 * GROUPS <= ROW, "the row's layout");

typedef struct fingerprint {
    uint64_t family; /* 0: an empty row */
    uint32_t groups[GROUPS];
} fingerprint;

static uint64_t mix(uint64_t sum, kn_span line)
{
    unsigned char checksum[KN_CHECKSUM_SIZE];
    kn_checksum(&line, 1, checksum);
    return (sum ^ kn_get_u64(checksum)) * UINT64_C(0x9e3779b97f4a7c15);
}

static fingerprint take(kn_span recipe)
{
    uint64_t family = 1, groups[GROUPS] = {0};
    kn_recipe_field field;
    while (kn_recipe_next(&recipe, &field)) {
        const char *end = field.value.data + field.value.length;
        const kn_span line = kn_span_of(field.name.data, (size_t)(end - field.name.data));
        const kiln_why why = kn_recipe_about(field.name);
        const bool is_stage = kn_span_equal(field.name, kn_span_of_text("stage"));
        if (why >= FIRST && why <= LAST && !is_stage) {
            groups[why - FIRST] = mix(groups[why - FIRST], line);
        } else {
            family = mix(family, line);
        }
    }
    fingerprint print = {.family = family != 0 ? family : 1};
    for (size_t i = 0; i < GROUPS; i++) {
        print.groups[i] = (uint32_t)(groups[i] >> 32);
    }
    return print;
}

static uint64_t place_of(const fingerprint *print)
{
    return print->family % PLACES * PLACE;
}

static fingerprint read_row(const unsigned char *row)
{
    fingerprint print = {.family = kn_get_u64(row + AT_FAMILY)};
    for (size_t i = 0; i < GROUPS; i++) {
        print.groups[i] = kn_get_u32(row + AT_GROUPS + 4 * i);
    }
    return print;
}

static void write_row(const fingerprint *print, unsigned char row[ROW])
{
    memset(row, 0, ROW);
    kn_put_u64(row + AT_FAMILY, print->family);
    kn_put_u32(row + AT_SECONDS, (uint32_t)(kn_clock_wall_roughly() / 1000000000));
    for (size_t i = 0; i < GROUPS; i++) {
        kn_put_u32(row + AT_GROUPS + 4 * i, print->groups[i]);
    }
}

/* The groups that differ, as bits. */
static uint32_t difference(const fingerprint *a, const fingerprint *b)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        bits |= a->groups[i] != b->groups[i] ? UINT32_C(1) << i : 0;
    }
    return bits;
}

static unsigned count_bits(uint32_t bits)
{
    unsigned count = 0;
    for (; bits != 0; bits &= bits - 1) {
        count++;
    }
    return count;
}

/* The place of a family; what is behind the end of the file is empty. False where there is none. */
static bool open_place(const char *root, const fingerprint *print, bool writable,
                       kn_file **out_file, unsigned char place[PLACE])
{
    char *path = root[0] != '\0' ? kn_path_join(root, "kin") : NULL;
    *out_file = NULL;
    memset(place, 0, PLACE);
    bool good = path != NULL && kn_file_open(path, writable, out_file, NULL) == KILN_OK &&
                kn_file_read_at(*out_file, place_of(print), place, PLACE) != KILN_E_IO;
    free(path);
    return good;
}

void kn_kin_note(const char *root, kn_span recipe)
{
    unsigned char place[PLACE];
    kn_file *file = NULL;
    const fingerprint print = take(recipe);
    if (open_place(root, &print, true, &file, place)) {
        unsigned char *chosen = place;
        for (unsigned i = 0; i < WAYS; i++) {
            unsigned char *row = place + i * ROW;
            const fingerprint there = read_row(row);
            if (there.family == print.family && difference(&there, &print) == 0) {
                chosen = row;
                break;
            }
            /* Empty ones are from the year 1970. */
            if (kn_get_u32(row + AT_SECONDS) < kn_get_u32(chosen + AT_SECONDS)) {
                chosen = row;
            }
        }
        write_row(&print, chosen);
        /* Without it the next miss is "new". */
        kn_ignore(
            kn_file_write_at(file, place_of(&print) + (uint64_t)(chosen - place), chosen, ROW));
    }
    kn_file_close(file);
}

kiln_why kn_kin_find(const char *root, kn_span recipe)
{
    unsigned char place[PLACE];
    kn_file *file = NULL;
    uint32_t nearest = 0; /* none: nothing differs */
    const fingerprint print = take(recipe);
    if (open_place(root, &print, false, &file, place)) {
        for (unsigned i = 0; i < WAYS; i++) {
            const fingerprint there = read_row(place + i * ROW);
            const uint32_t bits = there.family == print.family ? difference(&there, &print) : 0;
            if (bits != 0 && (nearest == 0 || count_bits(bits) < count_bits(nearest))) {
                nearest = bits;
            }
        }
    }
    kn_file_close(file);
    for (unsigned i = 0; i < GROUPS; i++) {
        if (nearest & UINT32_C(1) << i) {
            return (kiln_why)(FIRST + i);
        }
    }
    return KILN_WHY_NEW;
}

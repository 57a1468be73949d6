/* Fingerprints of recipes, in a table of rows. This file must not depend on who misses what. */
#include "store/disk/kin.h"

#include <string.h>

#include "base/checked.h"
#include "key/recipe.h"
#include "store/disk/row_table.h"
#include "store/format/checksum.h"
#include "store/format/recipe_diff.h"
#include "sys/clock.h"

#define PLACES 4096u
#define WAYS 4u /* rows of a place */
#define ROW 40u

static const kn_row_table kin_table = {"kin", PLACES *WAYS, ROW};

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

static uint64_t mix_line(uint64_t sum, kn_span line)
{
    unsigned char checksum[KN_CHECKSUM_SIZE];
    kn_checksum(&line, 1, checksum);
    return (sum ^ kn_get_u64(checksum)) * UINT64_C(0x9e3779b97f4a7c15);
}

static fingerprint take_fingerprint(kn_span recipe)
{
    uint64_t family = 1, groups[GROUPS] = {0};
    kn_recipe_field field;
    while (kn_recipe_next(&recipe, &field)) {
        const char *end = field.value.data + field.value.length;
        const kn_span line = kn_span_of(field.name.data, (size_t)(end - field.name.data));
        const kiln_why why = kn_recipe_about(field.name);
        const bool is_stage = kn_span_equal(field.name, kn_span_of_text("stage"));
        if (why >= FIRST && why <= LAST && !is_stage) {
            groups[why - FIRST] = mix_line(groups[why - FIRST], line);
        } else {
            family = mix_line(family, line);
        }
    }
    fingerprint print = {.family = family != 0 ? family : 1};
    for (size_t i = 0; i < GROUPS; i++) {
        print.groups[i] = (uint32_t)(groups[i] >> 32);
    }
    return print;
}

/* The first row of a family's place. */
static uint64_t place_of(const fingerprint *print)
{
    return print->family % PLACES * WAYS;
}

static fingerprint read_row(const unsigned char *row)
{
    fingerprint print = {.family = kn_get_u64(row + AT_FAMILY)};
    for (size_t i = 0; i < GROUPS; i++) {
        print.groups[i] = kn_get_u32(row + AT_GROUPS + 4 * i);
    }
    return print;
}

static void write_kin_row(const fingerprint *print, unsigned char row[ROW])
{
    memset(row, 0, ROW);
    kn_put_u64(row + AT_FAMILY, print->family);
    kn_put_u32(row + AT_SECONDS, (uint32_t)(kn_clock_wall_roughly() / 1000000000));
    for (size_t i = 0; i < GROUPS; i++) {
        kn_put_u32(row + AT_GROUPS + 4 * i, print->groups[i]);
    }
}

/* The groups that differ, as bits. */
static uint32_t print_difference(const fingerprint *a, const fingerprint *b)
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

void kn_kin_note(const char *root, kn_span recipe)
{
    unsigned char place[WAYS * ROW];
    const fingerprint print = take_fingerprint(recipe);
    kn_file *file = kn_rows_open(&kin_table, root, true);
    if (kn_rows_read(&kin_table, file, place_of(&print), WAYS, place)) {
        unsigned chosen = 0;
        for (unsigned i = 0; i < WAYS; i++) {
            const fingerprint there = read_row(place + i * ROW);
            if (there.family == print.family && print_difference(&there, &print) == 0) {
                chosen = i;
                break;
            }
            /* Empty ones are from the year 1970. */
            if (kn_get_u32(place + i * ROW + AT_SECONDS) <
                kn_get_u32(place + chosen * ROW + AT_SECONDS)) {
                chosen = i;
            }
        }
        unsigned char *row = place + chosen * ROW;
        write_kin_row(&print, row);
        kn_rows_write(&kin_table, file, place_of(&print) + chosen, row);
    }
    kn_rows_close(file);
}

kiln_why kn_kin_find(const char *root, kn_span recipe)
{
    unsigned char place[WAYS * ROW];
    uint32_t nearest = 0; /* none: nothing differs */
    const fingerprint print = take_fingerprint(recipe);
    kn_file *file = kn_rows_open(&kin_table, root, false);
    if (kn_rows_read(&kin_table, file, place_of(&print), WAYS, place)) {
        for (unsigned i = 0; i < WAYS; i++) {
            const fingerprint there = read_row(place + i * ROW);
            const uint32_t bits =
                there.family == print.family ? print_difference(&there, &print) : 0;
            if (bits != 0 && (nearest == 0 || count_bits(bits) < count_bits(nearest))) {
                nearest = bits;
            }
        }
    }
    kn_rows_close(file);
    for (unsigned i = 0; i < GROUPS; i++) {
        if (nearest & UINT32_C(1) << i) {
            return (kiln_why)(FIRST + i);
        }
    }
    return KILN_WHY_NEW;
}

/* A table of words in shared memory. This file must not know what a driver is. */
#include "store/disk/loads.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/shared_page.h"
#include "sys/thread.h"

/* A slot is a process' (of an open table, to be exact), whose number is the byte that it holds; a
 * cell is a load's: when it began, and the key. */
#define SLOTS 32u
#define CELLS 4u
#define CELL 2u
#define CELL_BEGAN 0u
#define CELL_KEY 1u
/* A row is an entry's. */
#define ROWS 63u
#define ROW 4u
#define ROW_KEY 0u
#define ROW_NOTED 1u /* when the last one was noted */
#define ROW_COUNT 2u /* in a row */
#define ROW_BARS 3u  /* how often it has been barred */
#define ROWS_AT (SLOTS * CELLS * CELL)
#define ROWS_BYTE ((uint64_t)SLOTS)

#define DAY_NS (INT64_C(86400) * 1000000000)
#define LONGEST_BAR 5u /* 2^5 days */

_Static_assert(ROWS_AT + ROWS * ROW <= KN_SHARED_PAGE_WORDS, "the page is too small");

struct kn_loads {
    kn_lock_file *file;
    kn_shared_word *words;
    unsigned slot;
    kn_mutex mutex;                   /* guards the rows among our threads */
    _Atomic uintptr_t threads[CELLS]; /* that load; 0: the cell is free */
};

/* Never 0. */
static uint64_t short_key(const kiln_key *key)
{
    return kn_get_u64(key->bytes) | 1u;
}

static char *path_of(const char *root)
{
    return root[0] != '\0' ? kn_path_join(root, "loads") : NULL;
}

static kn_shared_word *cell_at(kn_shared_word *words, unsigned slot, unsigned cell)
{
    return words + (slot * CELLS + cell) * CELL;
}

/* --- rows ------------------------------------------------------------------------------------- */

static kn_shared_word *row_at(kn_shared_word *words, unsigned row)
{
    return words + ROWS_AT + row * ROW;
}

static kn_shared_word *find_load_row(kn_shared_word *words, uint64_t key)
{
    for (unsigned i = 0; i < ROWS; i++) {
        kn_shared_word *row = row_at(words, i);
        if (atomic_load_explicit(&row[ROW_KEY], memory_order_relaxed) == key) {
            return row;
        }
    }
    return NULL;
}

/* A free one, or that which was noted the longest time ago. */
static kn_shared_word *take_row(kn_shared_word *words, uint64_t key)
{
    kn_shared_word *oldest = row_at(words, 0);
    for (unsigned i = 0; i < ROWS && oldest[ROW_KEY] != 0; i++) {
        kn_shared_word *row = row_at(words, i);
        oldest = row[ROW_KEY] == 0 || row[ROW_NOTED] < oldest[ROW_NOTED] ? row : oldest;
    }
    oldest[ROW_NOTED] = oldest[ROW_COUNT] = oldest[ROW_BARS] = 0;
    oldest[ROW_KEY] = key;
    return oldest;
}

static bool is_barred(const kn_shared_word *row, int64_t now)
{
    const uint64_t doublings = row[ROW_BARS] > 0 ? row[ROW_BARS] - 1 : 0;
    const int64_t age = now - (int64_t)row[ROW_NOTED];
    const int64_t days = INT64_C(1) << (doublings < LONGEST_BAR ? doublings : LONGEST_BAR);
    return age > -DAY_NS && age < days * DAY_NS; /* of a time to come: the clock was wrong then */
}

static bool lock_rows(kn_loads *loads)
{
    kn_mutex_lock(&loads->mutex);
    if (kn_lock_try(loads->file, ROWS_BYTE) == KILN_OK) {
        return true;
    }
    kn_mutex_unlock(&loads->mutex);
    return false;
}

static void unlock_rows(kn_loads *loads)
{
    kn_lock_drop(loads->file, ROWS_BYTE);
    kn_mutex_unlock(&loads->mutex);
}

/* With the rows locked. Many processes that are killed together are one event: what began before
 * the last one was noted adds nothing. */
static void note_unended(kn_loads *loads, uint64_t key, int64_t began, int64_t now)
{
    kn_shared_word *row = find_load_row(loads->words, key);
    row = row != NULL ? row : take_row(loads->words, key);
    if (began <= (int64_t)row[ROW_NOTED]) {
        return;
    }
    row[ROW_NOTED] = (uint64_t)now;
    row[ROW_COUNT] = row[ROW_COUNT] + 1;
    row[ROW_BARS] = row[ROW_BARS] + (row[ROW_COUNT] >= KN_LOADS_IN_A_ROW);
}

static void note_ended(kn_loads *loads, uint64_t key)
{
    if (find_load_row(loads->words, key) != NULL && lock_rows(loads)) {
        kn_shared_word *row = find_load_row(loads->words, key);
        if (row != NULL) {
            row[ROW_KEY] = 0;
        }
        unlock_rows(loads);
    }
}

/* --- slots ------------------------------------------------------------------------------------ */

static bool is_empty(kn_shared_word *words, unsigned slot)
{
    bool empty = true;
    for (unsigned i = 0; i < CELLS; i++) {
        empty = empty && cell_at(words, slot, i)[CELL_KEY] == 0;
    }
    return empty;
}

/* With the rows locked, of a slot whose byte is ours: its owner is gone. */
static void judge_slot(kn_loads *loads, unsigned slot, int64_t now)
{
    for (unsigned i = 0; i < CELLS; i++) {
        kn_shared_word *cell = cell_at(loads->words, slot, i);
        const uint64_t key = cell[CELL_KEY];
        if (key != 0) {
            note_unended(loads, key, (int64_t)cell[CELL_BEGAN], now);
            cell[CELL_KEY] = 0;
        }
    }
}

/* Without the rows' lock nothing is judged: the next start does it. */
static void judge_all(kn_loads *loads)
{
    const int64_t now = kn_clock_wall();
    bool locked = false, tried = false;
    for (unsigned i = 0; i < SLOTS; i++) {
        if (is_empty(loads->words, i)) {
            continue;
        }
        locked = tried ? locked : lock_rows(loads);
        tried = true;
        if (locked && (i == loads->slot || kn_lock_try(loads->file, i) == KILN_OK)) {
            judge_slot(loads, i, now);
            if (i != loads->slot) {
                kn_lock_drop(loads->file, i);
            }
        }
    }
    if (locked) {
        unlock_rows(loads);
    }
}

/* SLOTS if none is free, or nobody can tell. */
static unsigned take_slot(kn_lock_file *file)
{
    const unsigned first = kn_process_id() % SLOTS;
    for (unsigned i = 0; i < SLOTS; i++) {
        const unsigned slot = (first + i) % SLOTS;
        const kiln_status status = kn_lock_try(file, slot);
        if (status == KILN_OK) {
            return slot;
        }
        if (status != KILN_E_BUSY) {
            break;
        }
    }
    return SLOTS;
}

/* --- open and close --------------------------------------------------------------------------- */

kn_loads *kn_loads_open(const char *root)
{
    kn_loads *loads = calloc(1, sizeof *loads);
    char *path = path_of(root);
    if (loads == NULL || path == NULL || kn_lock_file_open(path, &loads->file, NULL) != KILN_OK) {
        free(path);
        free(loads);
        return NULL;
    }
    free(path);
    kn_mutex_init(&loads->mutex);
    if (kn_shared_page_map(loads->file, &loads->words, NULL) != KILN_OK ||
        !kn_shared_page_is_ready(loads->words)) {
        kn_loads_close(loads);
        return NULL;
    }
    loads->slot = take_slot(loads->file);
    judge_all(loads);
    kn_lock_file_keep(loads->file);
    return loads;
}

void kn_loads_close(kn_loads *loads)
{
    if (loads != NULL) {
        kn_shared_page_unmap(loads->words);
        kn_lock_file_close(loads->file);
        kn_mutex_deinit(&loads->mutex);
        free(loads);
    }
}

void kn_loads_forget(const char *root)
{
    char *path = path_of(root);
    if (path != NULL) {
        (void)kn_file_remove(path, NULL); /* who has it mapped goes on with that */
    }
    free(path);
}

/* --- one load --------------------------------------------------------------------------------- */

static uint32_t take_cell(kn_loads *loads)
{
    for (uint32_t i = 0; loads->slot < SLOTS && i < CELLS; i++) {
        uintptr_t none = 0;
        if (atomic_compare_exchange_strong(&loads->threads[i], &none, kn_thread_self())) {
            return i + 1;
        }
    }
    return 0;
}

/* `in_a_row` of them that did not end bar it. */
static bool begin_marked(kn_loads *loads, const kiln_key *key, uint64_t in_a_row, kn_load *out_load)
{
    const uint64_t mark = short_key(key);
    *out_load = (kn_load){.cell = 0};
    if (!kn_shared_page_is_ready(loads->words)) {
        return true;
    }
    const int64_t now = kn_clock_wall();
    const kn_shared_word *row = find_load_row(loads->words, mark);
    if (row != NULL && row[ROW_COUNT] >= in_a_row && is_barred(row, now)) {
        return false;
    }
    out_load->suspect = row != NULL;
    out_load->cell = take_cell(loads);
    if (out_load->cell != 0) {
        kn_shared_word *cell = cell_at(loads->words, loads->slot, out_load->cell - 1);
        atomic_store_explicit(&cell[CELL_BEGAN], (uint64_t)now, memory_order_relaxed);
        atomic_store_explicit(&cell[CELL_KEY], mark, memory_order_release);
    }
    return true;
}

bool kn_loads_begin(kn_loads *loads, const kiln_key *key, kn_load *out_load)
{
    return begin_marked(loads, key, KN_LOADS_IN_A_ROW, out_load);
}

bool kn_loads_begin_work(kn_loads *loads, const kiln_key *key, kn_load *out_load)
{
    return begin_marked(loads, key, 1, out_load);
}

void kn_loads_end(kn_loads *loads, const kiln_key *key, const kn_load *load)
{
    if (kn_shared_page_is_ready(loads->words)) {
        note_ended(loads, short_key(key));
    }
    kn_loads_cancel(loads, load);
}

void kn_loads_cancel(kn_loads *loads, const kn_load *load)
{
    if (load->cell == 0) {
        return;
    }
    if (kn_shared_page_is_ready(loads->words)) {
        kn_shared_word *cell = cell_at(loads->words, loads->slot, load->cell - 1);
        atomic_store_explicit(&cell[CELL_KEY], 0, memory_order_release);
    }
    atomic_store(&loads->threads[load->cell - 1], 0);
}

void kn_loads_leave(kn_loads *loads)
{
    for (unsigned i = 0; loads->slot < SLOTS && i < CELLS; i++) {
        const uintptr_t thread = atomic_load(&loads->threads[i]);
        if (thread != 0 && thread != kn_thread_self() && kn_shared_page_is_ready(loads->words)) {
            atomic_store(&cell_at(loads->words, loads->slot, i)[CELL_KEY], 0);
        }
    }
}

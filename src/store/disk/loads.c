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

#define SLOTS 32u
#define CELLS 4u
#define ROWS 63u
#define ROWS_BYTE ((uint64_t)SLOTS) /* of the lock file; those before it are the slots' */
#define DAY_NS (INT64_C(86400) * 1000000000)

/* A load that has begun. */
typedef struct cell {
    kn_shared_word began, key; /* key 0: free */
} cell;

/* An entry whose last load did not end. */
typedef struct row {
    kn_shared_word key; /* 0: free */
    kn_shared_word noted, count;
    kn_shared_word bars; /* written by earlier versions */
} row;

/* A slot of cells is a process' (of an open table, to be exact), as long as it holds the byte of
 * that number. */
typedef struct page {
    cell cells[SLOTS][CELLS];
    row rows[ROWS];
} page;

_Static_assert(sizeof(page) <= KN_SHARED_PAGE_WORDS * sizeof(kn_shared_word), "it is too small");

struct kn_loads {
    kn_lock_file *file;
    kn_shared_word *words; /* the page */
    page *page;
    unsigned slot;                    /* SLOTS: none */
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

/* --- rows ------------------------------------------------------------------------------------- */

static row *find_load_row(page *p, uint64_t key)
{
    for (unsigned i = 0; i < ROWS; i++) {
        if (atomic_load_explicit(&p->rows[i].key, memory_order_relaxed) == key) {
            return &p->rows[i];
        }
    }
    return NULL;
}

/* A free one, or that which was noted the longest time ago. */
static row *take_load_row(page *p, uint64_t key)
{
    row *taken = find_load_row(p, 0);
    for (unsigned i = 0; i < ROWS && (taken == NULL || taken->key != 0); i++) {
        taken = taken == NULL || p->rows[i].noted < taken->noted ? &p->rows[i] : taken;
    }
    taken->noted = taken->count = taken->bars = 0;
    taken->key = key;
    return taken;
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
static void note_unended(page *p, const cell *load, int64_t now)
{
    row *of = find_load_row(p, load->key);
    of = of != NULL ? of : take_load_row(p, load->key);
    if ((int64_t)load->began > (int64_t)of->noted) {
        of->noted = (uint64_t)now;
        of->count = of->count + 1;
    }
}

static void note_ended(kn_loads *loads, uint64_t key)
{
    if (find_load_row(loads->page, key) != NULL && lock_rows(loads)) {
        row *of = find_load_row(loads->page, key);
        if (of != NULL) {
            of->key = 0;
        }
        unlock_rows(loads);
    }
}

/* --- slots ------------------------------------------------------------------------------------ */

static bool is_empty(const cell cells[CELLS])
{
    bool empty = true;
    for (unsigned i = 0; i < CELLS; i++) {
        empty = empty && cells[i].key == 0;
    }
    return empty;
}

/* Whose byte can be taken is gone: what it has in its cells did not end. Without the rows' lock
 * nothing is judged: the next start does it. */
static void judge_slots(kn_loads *loads)
{
    bool locked = false;
    for (unsigned i = 0; i < SLOTS; i++) {
        cell *cells = loads->page->cells[i];
        if (is_empty(cells)) {
            continue;
        }
        locked = locked || lock_rows(loads);
        if (!locked || (i != loads->slot && kn_lock_try(loads->file, i) != KILN_OK)) {
            continue;
        }
        for (unsigned j = 0; j < CELLS; j++) {
            if (cells[j].key != 0) {
                note_unended(loads->page, &cells[j], kn_clock_wall());
                cells[j].key = 0;
            }
        }
        if (i != loads->slot) {
            kn_lock_drop(loads->file, i);
        }
    }
    if (locked) {
        unlock_rows(loads);
    }
}

/* SLOTS if none is free, or nobody can tell. */
static unsigned take_slot(kn_lock_file *file)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        const unsigned slot = (kn_process_id() + i) % SLOTS;
        const kiln_status status = kn_lock_try(file, slot);
        if (status != KILN_E_BUSY) {
            return status == KILN_OK ? slot : SLOTS;
        }
    }
    return SLOTS;
}

/* --- open and close --------------------------------------------------------------------------- */

kn_loads *kn_loads_open(const char *root)
{
    kn_loads *loads = calloc(1, sizeof *loads);
    char *path = path_of(root);
    const bool opened =
        loads != NULL && path != NULL && kn_lock_file_open(path, &loads->file, NULL) == KILN_OK;
    free(path);
    if (!opened) {
        free(loads);
        return NULL;
    }
    kn_mutex_init(&loads->mutex);
    if (kn_shared_page_map(loads->file, &loads->words, NULL) != KILN_OK ||
        !kn_shared_page_is_ready(loads->words)) {
        kn_loads_close(loads);
        return NULL;
    }
    loads->page = (page *)loads->words;
    loads->slot = take_slot(loads->file);
    judge_slots(loads);
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

bool kn_loads_begin(kn_loads *loads, const kiln_key *key, uint32_t in_a_row, kn_load *out_load)
{
    const uint64_t mark = short_key(key);
    *out_load = (kn_load){.cell = 0};
    if (!kn_shared_page_is_ready(loads->words)) {
        return true;
    }
    const int64_t now = kn_clock_wall();
    const row *of = find_load_row(loads->page, mark);
    const int64_t age = of != NULL ? now - (int64_t)of->noted : 0;
    /* Of a time to come: the clock was wrong then. */
    if (of != NULL && of->count >= in_a_row && age > -DAY_NS && age < DAY_NS) {
        return false;
    }
    out_load->suspect = of != NULL;
    out_load->cell = take_cell(loads);
    if (out_load->cell != 0) {
        cell *own = &loads->page->cells[loads->slot][out_load->cell - 1];
        atomic_store_explicit(&own->began, (uint64_t)now, memory_order_relaxed);
        atomic_store_explicit(&own->key, mark, memory_order_release);
    }
    return true;
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
        cell *own = &loads->page->cells[loads->slot][load->cell - 1];
        atomic_store_explicit(&own->key, 0, memory_order_release);
    }
    atomic_store(&loads->threads[load->cell - 1], 0);
}

void kn_loads_leave(kn_loads *loads)
{
    for (unsigned i = 0; loads->slot < SLOTS && i < CELLS; i++) {
        const uintptr_t thread = atomic_load(&loads->threads[i]);
        if (thread != 0 && thread != kn_thread_self() && kn_shared_page_is_ready(loads->words)) {
            atomic_store(&loads->page->cells[loads->slot][i].key, 0);
        }
    }
}

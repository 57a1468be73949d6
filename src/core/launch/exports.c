/* What bindings have handed to others by DLPack, and what of it is done with. Adding to the list
 * takes no lock: it happens in deleters, wherever those are called. */
#include "kiln/unstable/native.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/diag.h"

/* Lies before a tensor; as large as the strictest alignment, so that the tensor is aligned, too. */
typedef union export_head {
    struct {
        union export_head *next; /* in the list of those that are done with */
        kiln_exports *of;
    } link;
    max_align_t alignment;
} export_head;

struct kiln_exports {
    _Atomic(export_head *) ended;
    _Atomic(kiln_exports_wake_fn *) wake;
    kiln_exports_run_fn *run;
};

kiln_status kiln_exports_create(kiln_exports_wake_fn *wake, kiln_exports_run_fn *run,
                                kiln_exports **out_exports, kiln_diag *diag)
{
    *out_exports = NULL;
    kiln_exports *exports = (kiln_exports *)calloc(1, sizeof(*exports));
    if (exports == NULL) {
        return kn_no_memory(diag, "exporting a buffer");
    }
    atomic_init(&exports->ended, NULL);
    atomic_init(&exports->wake, wake);
    exports->run = run;
    *out_exports = exports;
    return KILN_OK;
}

void kiln_exports_destroy(kiln_exports *exports)
{
    if (exports != NULL) {
        for (void *managed = NULL; (managed = kiln_exports_take(exports)) != NULL;) {
            kiln_export_free(managed);
        }
        free(exports);
    }
}

void kiln_exports_silence(kiln_exports *exports)
{
    atomic_store(&exports->wake, NULL);
}

kiln_status kiln_exports_add(kiln_exports *exports, size_t size, void **out_managed,
                             kiln_diag *diag)
{
    export_head *head = NULL;
    *out_managed = NULL;
    if (size <= SIZE_MAX - sizeof(*head)) {
        head = (export_head *)calloc(1, sizeof(*head) + size);
    }
    if (head == NULL) {
        return kn_no_memory(diag, "exporting a buffer");
    }
    head->link.of = exports;
    *out_managed = head + 1;
    return KILN_OK;
}

/* Puts a chain of tensors in front of the list; true if that was empty. */
static bool push_ended(kiln_exports *exports, export_head *first, export_head *last)
{
    export_head *before = atomic_load(&exports->ended);
    do {
        last->link.next = before;
    } while (!atomic_compare_exchange_weak(&exports->ended, &before, first));
    return before == NULL;
}

void kiln_export_end(void *managed)
{
    if (managed == NULL) {
        return;
    }
    export_head *head = (export_head *)managed - 1;
    kiln_exports *exports = head->link.of;
    if (push_ended(exports, head, head)) {
        kiln_exports_wake_fn *wake = atomic_load(&exports->wake);
        if (wake != NULL) {
            (void)wake(exports->run, NULL); /* else it waits for the next who takes */
        }
    }
}

void *kiln_exports_take(kiln_exports *exports)
{
    /* The whole list, so that nobody else can take and free what is read here; the rest goes back.
     */
    export_head *first = atomic_exchange(&exports->ended, NULL);
    if (first == NULL) {
        return NULL;
    }
    export_head *rest = first->link.next;
    if (rest != NULL) {
        export_head *last = rest;
        while (last->link.next != NULL) {
            last = last->link.next;
        }
        (void)push_ended(exports, rest, last);
    }
    return first + 1;
}

void kiln_export_free(void *managed)
{
    if (managed != NULL) {
        free((export_head *)managed - 1);
    }
}

/* The objects of level 3 as core sees them. A runtime owns its drivers and devices; everything else
 * borrows a device, and with it the runtime.
 *
 * kn_device_handle is in device.c, kn_probe_open in driver_probe.c; what wakes drivers and lists
 * them in device_listing.c. */
#ifndef KILN_CORE_RUNTIME_H
#define KILN_CORE_RUNTIME_H

#include <stdatomic.h>

#include "kiln/kiln.h"

#include "base/map.h"
#include "core/runtime/driver.h"
#include "core/runtime/trace.h"
#include "exec/thread_pool.h"
#include "sys/thread.h"

#define KN_DRIVERS_MAX 32
#define KN_REPORTS_MAX 48

struct kiln_device {
    kiln_runtime *runtime;
    kn_driver *driver;
    kiln_device_info info;
    kiln_target target;
    size_t rank;        /* of the backend, in order of preference */
    uint32_t languages; /* of a recalled one: bit n, it took the kiln_language n */
    bool has_target;    /* target is the driver's own; false until the driver is awake */
    kn_mutex mutex;
    void *handle; /* opened on first use, under the mutex */
};

/* The backends that are listed one after the other, and what the children of some of them said
 * (driver_probe.c). */
typedef struct kn_ahead {
    const kiln_backend *backends[KN_DRIVERS_MAX];
    size_t count;
    bool asked;
    struct kn_child *children;
    size_t child_count;
} kn_ahead;

struct kiln_runtime {
    kn_trace *trace; /* NULL: no trace */
    kiln_cache *cache;
    bool owns_cache;
    bool strict;
    bool isolate_probe;
    bool fresh_probe; /* nothing remembered is looked at */
    char *skip_probe; /* backends that no child looks at first, or NULL */
    bool recalled;    /* something in the lists is from memory */
    bool listed;      /* the lists are in the caller's hands: they change no more */
    bool compile_only;
    bool untuned;
    uint32_t probe_ms;
    char *backend; /* what was asked for, or NULL */
    char *device;
    char *target; /* the only one that will be compiled for, or NULL */
    char *backend_path;
    char *summary;

    kn_mutex drivers_mutex; /* opening one later, for kiln_compile */
    kn_driver *drivers[KN_DRIVERS_MAX];
    size_t driver_count;
    kiln_probe_report *reports[KN_REPORTS_MAX]; /* 2 KB each, and most runtimes have one or two */
    size_t report_count;
    kn_ahead *ahead;       /* while backends are listed */
    kiln_device **devices; /* best first */
    size_t device_count;

    kn_mutex mutex;             /* programs, expecting, capture_worker, capture_ends, pool, uses */
    kn_map programs;            /* (device, keys of all stages) -> kiln_program, weak */
    struct kn_build *expecting; /* builds whose program is loaded and not in `programs` yet */
    kn_cond adopted;            /* one of them is there now, or will not be */
    kn_worker *capture_worker;  /* started with the first capture */
    _Atomic uint64_t grew_at;   /* the last launch that a capture is wanted for, kn_clock_now */
    bool capture_ends;          /* the runtime goes: captures no longer wait for quiet */
    kn_cond capture_hurry;      /* that has become so */
    atomic_bool capture_stop;   /* the runtime goes: give pending captures up */
    void (*finish_captures)(kiln_runtime *runtime); /* set with the first capture; called once */
    kn_thread_pool *pool; /* compiles that nobody waits for; started with the first */
    kn_map uses;          /* key of a program's first stage -> builds of it, as a number */
};

/* The runtime's threads for compiles in the background: as many as $KILN_COMPILE_JOBS, else one a
 * processor and at most one a GiB of memory. NULL when out of memory, or the variable is malformed
 * (diag). */
kn_thread_pool *kn_runtime_thread_pool(kiln_runtime *runtime, kiln_diag *diag);

/* Opens the device if nobody did yet. Blocks: driver. */
kiln_status kn_device_handle(kiln_device *device, void **out_handle, kiln_diag *diag);

/* The open driver of a backend by name, opened now if it is not (NULL: it cannot be; diag says
 * why). */
kn_driver *kn_runtime_driver(kiln_runtime *runtime, const char *name, kiln_diag *diag);

/* Opens the driver if it is known from memory alone. KILN_E_UNAVAILABLE if it cannot be, or is not
 * what was remembered. Blocks: driver. */
kiln_status kn_driver_wake(kiln_runtime *runtime, kn_driver *driver, kiln_diag *diag);

/* Probes one backend, in a child first if the runtime wants that or if it loads a driver that has
 * not been seen before, and opens it; the report is filled in every case. `unknown`: the caller has
 * looked, and it is not remembered. */
kiln_status kn_probe_open(kiln_runtime *runtime, const kiln_backend *backend, bool unknown,
                          kn_driver *driver, kiln_probe_report *report, kiln_diag *diag);

/* --- what is listed (device_listing.c) -------------------------------------------------------- */

/* Lists a backend, remembered or opened. Only want of memory is a failure: all else is in the
 * report. */
kiln_status kn_listing_add(kiln_runtime *runtime, const kiln_backend *backend, size_t rank,
                           kiln_diag *diag);
void kn_listing_add_report(kiln_runtime *runtime, const kiln_probe_report *report);
kiln_probe_report *kn_listing_report(kiln_runtime *runtime, const char *backend);
/* Whether the backend is asked for its compiler alone. */
bool kn_listing_compiles_apart(const kiln_runtime *runtime, const kiln_backend *backend);
/* Closes and forgets all of it. */
void kn_listing_clear(kiln_runtime *runtime);

/* --- selection (select.c) --------------------------------------------------------------------- */

/* The position of a backend in a comma-separated list of names, or SIZE_MAX. */
size_t kn_request_position(const char *list, const char *backend);
/* True if the device is one that the runtime was asked for (or nothing was asked for). */
bool kn_device_wanted(const kiln_runtime *runtime, const kiln_device *device);
/* Puts the devices in order, best first. */
void kn_devices_sort(kiln_runtime *runtime);
/* The line "requested=… detected=[…] selected=…"; malloc'ed, NULL when out of memory. */
char *kn_runtime_describe(kiln_runtime *runtime);

/* --- uses (uses_report.c): in memory while the runtime lives, then in the store's table ------- */

/* Counts a program by the key of its first stage; one that has no key (zeros) is not counted. */
void kn_uses_note(kiln_runtime *runtime, const kiln_key *first_key);
void kn_uses_flush(kiln_runtime *runtime);

/* --- options (runtime_options.c) -------------------------------------------------------------- */

/* Checks options as a caller or the environment gave them. */
kiln_status kn_options_check(const kiln_runtime_options *options, kiln_diag *diag);

#endif

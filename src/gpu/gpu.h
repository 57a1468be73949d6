/* The device half of a backend on a driver API of CUDA's shape: buffers, streams, events, programs,
 * launches. CUDA and HIP bind their libraries into the same table of calls, and say in a
 * kn_gpu_vendor what they do in ways of their own. Knows no vendor. */
#ifndef KILN_GPU_GPU_H
#define KILN_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "kiln/sys/backend.h"
#include "sys/thread.h"

#define X(name, args) int(*name) args;
typedef struct kn_gpu_driver {
#include "gpu/driver.def"
} kn_gpu_driver;
#undef X

/* What the calls are called, for messages. */
#define X(name, args) const char *name;
typedef struct kn_gpu_names {
#include "gpu/driver.def"
} kn_gpu_names;
#undef X

typedef struct kn_gpu_vendor kn_gpu_vendor;

/* An opened device: the first member of the vendor's own. */
typedef struct kn_gpu_device {
    const kn_gpu_vendor *vendor;
    const kn_gpu_driver *driver;
    const kiln_host *host;
    int ordinal; /* as the driver counts */
    /* The kind of memory that is a device's: HIP 6 numbers them as CUDA does, HIP 5 otherwise. */
    unsigned int device_memory;
} kn_gpu_device;

typedef struct kn_gpu_program {
    kn_gpu_device *device;
    void *library; /* NULL where it was loaded as a module */
    void *module;
    const void *image; /* the driver may read it later, while it loads lazily */
    size_t image_size;
    char *image_copy; /* NULL: it lies where the cache has it */
    char **entries;
    char **lowered; /* parallel to entries; NULL: the entry's own name */
    size_t entry_count;
    kn_mutex lock;
    kn_map functions; /* entry -> kn_gpu_function */
} kn_gpu_program;

typedef struct kn_gpu_function {
    void *function;
    size_t param_count; /* SIZE_MAX where nobody knows */
    bool shared_known;
    int shared_limit; /* dynamic shared memory allowed so far; both under the program's lock */
    kiln_param *params;
} kn_gpu_function;

typedef struct kn_gpu_queue {
    kn_gpu_device *device;
    void *stream;
    bool borrowed; /* the stream is others' */
} kn_gpu_queue;

/* A launch as the driver takes it. */
typedef struct kn_gpu_shape {
    unsigned int grid[3], block[3];
    unsigned int shared_bytes;
} kn_gpu_shape;

struct kn_gpu_vendor {
    const char *label; /* "CUDA", in messages */
    kn_gpu_names calls;
    uint64_t grid_max[3]; /* groups */
    uint64_t items_max;   /* in one dimension of a grid */
    uint64_t block_max_z; /* where kiln chooses the group */
    int not_found;        /* the result for a kernel that is not there */

    /* Makes the device current for a few calls; every enter that succeeds is paired with a leave on
     * the same thread, which restores what was current before. */
    kiln_status (*enter)(const kn_gpu_device *device, int *out_before, kiln_diag *diag);
    void (*leave)(const kn_gpu_device *device, int before);
    kiln_status (*fail)(const kn_gpu_device *device, int result, const char *what, kiln_diag *diag);
    /* All below with the device current. */
    /* `count` times a pattern of 2 or 4 words. */
    int (*fill_words)(const kn_gpu_device *device, uint64_t to, const uint32_t *words,
                      size_t word_count, size_t count, void *stream);
    kiln_status (*load)(kn_gpu_program *program, bool eager, kiln_diag *diag);
    void (*unload)(kn_gpu_program *program); /* NULL: it is a module */
    /* Fills function, and params and param_count if they are known. *out_result is the driver's;
     * the status is about memory. */
    kiln_status (*find)(kn_gpu_program *program, const char *name, kn_gpu_function *function,
                        int *out_result, kiln_diag *diag);
    /* So much dynamic shared memory, more than nothing: the driver's result. NULL: all that there
     * is may be used without asking. */
    int (*allow_shared)(kn_gpu_program *program, kn_gpu_function *function, int bytes);
    /* A launch with cooperation or clusters. */
    kiln_status (*launch_with)(const kn_gpu_device *device, const kiln_sys_launch *launch,
                               const kn_gpu_function *function, const kn_gpu_shape *shape,
                               void *stream, void **params, kiln_diag *diag);
    /* Of a binary that a caller gives; NULL where only the compiler's are loaded. */
    bool (*image_is_whole)(const void *data, size_t size);
};

/* memory.c, program.c, queue.c, launch.c: kiln_device_ops of the same names. */
kiln_status kn_gpu_buffer_create(void *device, size_t size, void **out_buffer, kiln_diag *diag);
void kn_gpu_buffer_destroy(void *device, void *buffer);
kiln_status kn_gpu_buffer_wrap(void *device, uint64_t address, size_t size, void **out_buffer,
                               kiln_diag *diag);
uint64_t kn_gpu_buffer_address(void *device, void *buffer);
kiln_status kn_gpu_queue_write(void *queue, void *buffer, size_t offset, const void *data,
                               size_t size, void **out_event, kiln_diag *diag);
kiln_status kn_gpu_queue_read(void *queue, void *buffer, size_t offset, void *data, size_t size,
                              void **out_event, kiln_diag *diag);
kiln_status kn_gpu_queue_fill(void *queue, void *buffer, size_t offset, const void *pattern,
                              size_t pattern_size, size_t size, kiln_diag *diag);
kiln_status kn_gpu_queue_copy(void *queue, void *from, size_t from_offset, void *to,
                              size_t to_offset, size_t size, kiln_diag *diag);

kiln_status kn_gpu_program_load(void *device, const kiln_load_request *request, void **out_program,
                                kiln_diag *diag);
void kn_gpu_program_unload(void *device, void *program);
const char *kn_gpu_program_entry(void *device, void *program, size_t index);
kiln_status kn_gpu_program_params(void *device, void *program, const char *entry,
                                  const kiln_param **out_params, size_t *out_count,
                                  kiln_diag *diag);

kiln_status kn_gpu_queue_create(void *device, void **out_queue, kiln_diag *diag);
void kn_gpu_queue_destroy(void *device, void *queue);
kiln_status kn_gpu_queue_wrap(void *device, uint64_t native, void **out_queue, kiln_diag *diag);
uint64_t kn_gpu_queue_native(void *device, void *queue);
kiln_status kn_gpu_queue_mark(void *queue, void **out_event, kiln_diag *diag);
kiln_status kn_gpu_queue_launch(void *queue, const kiln_sys_launch *launch, void **out_event,
                                kiln_diag *diag);
kiln_status kn_gpu_queue_finish(void *queue, kiln_diag *diag);
kiln_status kn_gpu_queue_wait(void *queue, void *event, kiln_diag *diag);
bool kn_gpu_event_done(void *device, void *event);
kiln_status kn_gpu_event_wait(void *device, void *event, kiln_diag *diag);
kiln_status kn_gpu_event_elapsed(void *device, void *event, uint64_t *out_ns, kiln_diag *diag);
void kn_gpu_event_destroy(void *device, void *event);

/* All of them, for the vendor's table; device_info, device_open and device_close are its own. */
#define KN_GPU_DEVICE_OPS                                                                          \
    .buffer_create = kn_gpu_buffer_create, .buffer_destroy = kn_gpu_buffer_destroy,                \
    .program_load = kn_gpu_program_load, .program_unload = kn_gpu_program_unload,                  \
    .program_entry = kn_gpu_program_entry, .program_params = kn_gpu_program_params,                \
    .queue_create = kn_gpu_queue_create, .queue_destroy = kn_gpu_queue_destroy,                    \
    .queue_write = kn_gpu_queue_write, .queue_read = kn_gpu_queue_read,                            \
    .queue_fill = kn_gpu_queue_fill, .queue_copy = kn_gpu_queue_copy,                              \
    .queue_launch = kn_gpu_queue_launch, .queue_finish = kn_gpu_queue_finish,                      \
    .queue_wait = kn_gpu_queue_wait, .event_done = kn_gpu_event_done,                              \
    .event_wait = kn_gpu_event_wait, .event_elapsed = kn_gpu_event_elapsed,                        \
    .event_destroy = kn_gpu_event_destroy, .buffer_wrap = kn_gpu_buffer_wrap,                      \
    .buffer_address = kn_gpu_buffer_address, .queue_wrap = kn_gpu_queue_wrap,                      \
    .queue_native = kn_gpu_queue_native, .queue_mark = kn_gpu_queue_mark

/* Of use to the vendors, too. */
/* KILN_OK, or what `what` failed with. */
kiln_status kn_gpu_check(const kn_gpu_device *device, int result, const char *what,
                         kiln_diag *diag);
/* What a result of the driver's means; `fix` may be NULL. */
typedef struct kn_gpu_result {
    int result;
    kiln_status status;
    const char *fix;
} kn_gpu_result;

/* A diag for a result, by the vendor's table: one that it lacks is KILN_E_INTERNAL. `name` and
 * `text` are the driver's; an empty `text` is left out. */
kiln_status kn_gpu_fail(const kn_gpu_result *rows, size_t count, int result, const char *what,
                        const char *name, const char *text, kiln_diag *diag);

/* probe.c */
void kn_gpu_probe_answer(kiln_probe_report *report, kiln_probe_outcome outcome, const char *fix,
                         const char *why);
/* Whether this user may not open a device's file. */
bool kn_gpu_no_permission(const char *path);

/* The vendor's numbers of attributes, in the order of kiln_device_info. */
typedef struct kn_gpu_limits {
    int compute_units, max_group_size, max_group_dim[3], subgroup_size, local_bytes, integrated;
} kn_gpu_limits;
/* What the driver says of a device: name, limits, class and memory. The driver's result. */
int kn_gpu_describe(const kn_gpu_driver *driver, int ordinal, const kn_gpu_limits *limits,
                    kiln_device_info *info);
/* An attribute of a device; 0 for what cannot be one. */
int kn_gpu_attribute(const kn_gpu_driver *driver, int ordinal, int which);

/* Sets `status` to what one call of the driver's comes to, made with the device current. */
#define KN_GPU_CALL(status, device, row, arguments, diag)                                          \
    do {                                                                                           \
        int before_ = 0;                                                                           \
        (status) = (device)->vendor->enter((device), &before_, (diag));                            \
        if ((status) == KILN_OK) {                                                                 \
            const int result_ = (device)->driver->row arguments;                                   \
            (device)->vendor->leave((device), before_);                                            \
            (status) = kn_gpu_check((device), result_, (device)->vendor->calls.row, (diag));       \
        }                                                                                          \
    } while (0)
/* Threads that a group of it may have: asked each time, which takes longer than a first launch
 * should wait (15 us on an H200). */
int kn_gpu_function_threads(const kn_gpu_device *device, const kn_gpu_function *function);
/* An attribute of a function; both vendors number these two alike. */
enum { KN_GPU_FUNCTION_THREADS = 0, KN_GPU_FUNCTION_SHARED_BYTES = 1 };

/* For the files here. */
kiln_status kn_gpu_program_function(kn_gpu_program *program, const char *entry,
                                    kn_gpu_function **out_function, kiln_diag *diag);
/* An event of a queue: recorded at once; it has a start only where it is timed. */
kiln_status kn_gpu_event_begin(kn_gpu_queue *queue, bool timed, void **out_event, kiln_diag *diag);
kiln_status kn_gpu_event_end(kn_gpu_queue *queue, void *event, kiln_diag *diag);
/* An untimed one, begun and ended: what the queue has to do by now. */
kiln_status kn_gpu_event_mark(kn_gpu_queue *queue, void **out_event, kiln_diag *diag);

#endif

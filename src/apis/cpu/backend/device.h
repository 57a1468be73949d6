/* The device half of the cpu backend: the objects, and who makes them. A launch or a copy in flight
 * holds references, so that objects may be destroyed while a queue still uses them. */
#ifndef KILN_CPU_BACKEND_DEVICE_H
#define KILN_CPU_BACKEND_DEVICE_H

#include <stdatomic.h>

#include "kiln/cpu.h"
#include "kiln/sys/backend.h"

#include "apis/cpu/backend/instance.h"
#include "sys/dylib.h"
#include "sys/thread.h"

enum {
    CPU_ALIGNMENT = 64,
    CPU_PARAM_LIMIT = 16,
    CPU_GROUP_LIMIT = 4096,       /* items in a work-group */
    CPU_LOCAL_LIMIT = 1024 * 1024 /* bytes of work-group memory given at launch */
};

typedef struct cpu_device {
    cpu_instance *cpu;
} cpu_device;

/* --- memory.c --------------------------------------------------------------------------------- */

typedef struct cpu_buffer {
    atomic_uint references;
    size_t size;
    unsigned char *data;
    bool borrowed; /* the memory is others' */
} cpu_buffer;

cpu_buffer *kn_cpu_buffer_retain(cpu_buffer *buffer);
void kn_cpu_buffer_release(cpu_buffer *buffer); /* NULL is allowed */
/* NULL when out of memory; released with kn_cpu_memory_release. `size` may be 0. */
void *kn_cpu_memory_create(size_t size);
void kn_cpu_memory_release(void *memory);

/* --- program.c -------------------------------------------------------------------------------- */

typedef struct cpu_program {
    atomic_uint references;
    kn_dylib *object; /* NULL for kernels of the program itself */
    const kiln_cpu_kernel **kernels;
    kiln_param **params; /* for reflection, a list a kernel */
    size_t count;
} cpu_program;

cpu_program *kn_cpu_program_retain(cpu_program *program);
void kn_cpu_program_release(cpu_program *program); /* NULL is allowed */
/* KILN_MISS, with a diag that lists the kernels there are. */
kiln_status kn_cpu_program_find(const cpu_program *program, const char *entry,
                                const kiln_cpu_kernel **out_kernel, kiln_diag *diag);

/* --- event.c ---------------------------------------------------------------------------------- */

typedef struct cpu_event {
    atomic_uint references;
    kn_mutex mutex;
    kn_cond cond;
    bool done;
    uint64_t begin_ns, end_ns;
} cpu_event;

cpu_event *kn_cpu_event_create(void); /* two references: the queue's and the caller's */
void kn_cpu_event_release(cpu_event *event);
cpu_event *kn_cpu_event_retain(cpu_event *event);
void kn_cpu_event_complete(cpu_event *event, uint64_t begin_ns, uint64_t end_ns);

/* --- launch.c: a checked launch, ready to run ------------------------------------------------- */

typedef struct cpu_launch {
    cpu_program *program;
    const kiln_cpu_kernel *kernel;
    kiln_cpu_group shape; /* id, first and last are filled in per group */
    size_t groups;
    size_t local_offset[CPU_PARAM_LIMIT]; /* of work-group memory in a worker's part of scratch */
    size_t scratch_each;                  /* bytes a worker */
    unsigned char *scratch;
    unsigned char *values; /* copies of values */
    cpu_buffer *buffers[CPU_PARAM_LIMIT];
    void *args[CPU_PARAM_LIMIT]; /* work-group memory: NULL here */
} cpu_launch;

kiln_status kn_cpu_launch_create(cpu_instance *cpu, const kiln_sys_launch *request,
                                 cpu_launch **out_launch, kiln_diag *diag);
void kn_cpu_launch_destroy(cpu_launch *launch); /* NULL is allowed */
void kn_cpu_launch_run(cpu_instance *cpu, cpu_launch *launch);

#endif

/* The fake backend: no hardware, no vendor library; everything else as in a real one. It compiles a
 * toy language (README.md) in two stages and runs it. It is the reference for what a backend does,
 * the template of scripts/new_backend.sh, and, with its scripted faults, what drives every path of
 * kiln that a real driver takes only when it is broken.
 *
 * This header is what its files share, and what tests may look at. */
#ifndef KILN_FAKE_BACKEND_FAKE_H
#define KILN_FAKE_BACKEND_FAKE_H

#include <stdatomic.h>

#include "kiln/sys/backend.h"

#include "apis/fake/backend/faults.h"
#include "apis/fake/backend/language.h"

#define FAKE_DEVICES 2u
#define FAKE_PARAMS_MAX 16u
#define FAKE_SHAPES_MAX 64u
#define FAKE_EVENTS 32

extern const kiln_backend kn_backend_fake;

/* An open backend. Real ones keep the libraries they opened and the tables bound from them here. */
typedef struct kn_fake_instance {
    const kiln_host *host;
    kn_fake_faults faults;
    char driver[64];  /* $KILN_FAKE_DRIVER: the driver's version */
    char build[64];   /* $KILN_FAKE_BUILD_ID: of the compiler's library */
    char device[64];  /* $KILN_FAKE_DEVICE: what the devices are called */
    uint32_t devices; /* $KILN_FAKE_DEVICES */
    bool bound;       /* $KILN_FAKE_BOUND: binaries can only be made where the device is */
} kn_fake_instance;

typedef struct kn_fake_event {
    uint64_t ns;
    int32_t place; /* in the device's events; -1: allocated */
} kn_fake_event;

typedef struct kn_fake_device {
    kn_fake_instance *instance;
    uint32_t index;
    kn_fake_event events[FAKE_EVENTS]; /* used again and again: a driver has such a pool, too */
    _Atomic uint32_t events_taken;     /* bit n: events[n] */
} kn_fake_device;

typedef struct kn_fake_buffer {
    size_t size;
    unsigned char *bytes;
    bool borrowed; /* the memory is others' */
} kn_fake_buffer;

typedef struct kn_fake_queue {
    kn_fake_device *device;
    uint64_t native; /* the stream of a wrapped one; else 0, and it is its own */
} kn_fake_queue;

/* A program on a device: the parsed code, and the shapes it is finished for. */
typedef struct kn_fake_program {
    kn_fake_device *device;
    kn_fake_code code;
    kiln_param params[FAKE_KERNELS_MAX][FAKE_PARAMS_MAX];
    _Atomic uint64_t shapes; /* bit n: a launch with local size n was made; see capture */
    _Atomic uint64_t captured;
} kn_fake_program;

/* What a stage's fact or a binary must begin with for this driver to take it. */
void kn_fake_binary_stamp(const kn_fake_instance *instance, uint32_t device, char *stamp,
                          size_t size);

/* probe.c */
kiln_status kn_fake_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                         kiln_diag *diag);
void kn_fake_close(void *instance);
kiln_status kn_fake_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                                kiln_diag *diag);
kiln_status kn_fake_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag);
void kn_fake_device_close(void *device);

/* identity.c */
kiln_status kn_fake_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                     kiln_diag *diag);
kiln_status kn_fake_target_parse(void *instance, const char *name, kiln_target *out_target,
                                 kiln_diag *diag);
void kn_fake_target_destroy(void *instance, kiln_target *target);
kiln_status kn_fake_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                             const kiln_identity *identity, kiln_diag *diag);

/* compile.c */
const kiln_stage *kn_fake_stages(void *instance, const kiln_target *target, kiln_language language,
                                 size_t *out_count);
const char *kn_fake_system_include_dir(void *instance, const kiln_target *target, size_t index);
bool kn_fake_ships_header(void *instance, const kiln_target *target, const char *name);
const char *kn_fake_uncacheable_option(void *instance, const kiln_source *source);
uint32_t kn_fake_option_effects(void *instance, const kiln_source *source);
kiln_status kn_fake_compile(void *instance, const kiln_compile_request *request,
                            kiln_artifact *artifact, void **out_live, kiln_diag *diag);

/* program.c */
kiln_status kn_fake_program_create(kn_fake_device *device, const void *binary, size_t size,
                                   kn_fake_program **out_program, kiln_diag *diag);
kiln_status kn_fake_program_load(void *device, const kiln_load_request *request, void **out_program,
                                 kiln_diag *diag);
void kn_fake_program_unload(void *device, void *program);
bool kn_fake_program_grew(void *device, void *program);
kiln_status kn_fake_program_capture(void *device, void *program, kiln_artifact *artifact,
                                    kiln_diag *diag);
const char *kn_fake_program_entry(void *device, void *program, size_t index);
kiln_status kn_fake_program_params(void *device, void *program, const char *entry,
                                   const kiln_param **out_params, size_t *out_count,
                                   kiln_diag *diag);

/* memory.c */
kiln_status kn_fake_buffer_create(void *device, size_t size, void **out_buffer, kiln_diag *diag);
void kn_fake_buffer_destroy(void *device, void *buffer);
kiln_status kn_fake_buffer_wrap(void *device, uint64_t address, size_t size, void **out_buffer,
                                kiln_diag *diag);
uint64_t kn_fake_buffer_address(void *device, void *buffer);
kiln_status kn_fake_queue_write(void *queue, void *buffer, size_t offset, const void *data,
                                size_t size, void **out_event, kiln_diag *diag);
kiln_status kn_fake_queue_read(void *queue, void *buffer, size_t offset, void *data, size_t size,
                               void **out_event, kiln_diag *diag);
kiln_status kn_fake_queue_fill(void *queue, void *buffer, size_t offset, const void *pattern,
                               size_t pattern_size, size_t size, kiln_diag *diag);
kiln_status kn_fake_queue_copy(void *queue, void *from, size_t from_offset, void *to,
                               size_t to_offset, size_t size, kiln_diag *diag);

/* launch.c */
kiln_status kn_fake_queue_create(void *device, void **out_queue, kiln_diag *diag);
void kn_fake_queue_destroy(void *device, void *queue);
kiln_status kn_fake_queue_wrap(void *device, uint64_t native, void **out_queue, kiln_diag *diag);
uint64_t kn_fake_queue_native(void *device, void *queue);
kiln_status kn_fake_queue_mark(void *queue, void **out_event, kiln_diag *diag);
kiln_status kn_fake_queue_launch(void *queue, const kiln_sys_launch *launch, void **out_event,
                                 kiln_diag *diag);
kiln_status kn_fake_queue_finish(void *queue, kiln_diag *diag);
kiln_status kn_fake_queue_wait(void *queue, void *event, kiln_diag *diag);
kiln_status kn_fake_event_create(kn_fake_device *device, void **out_event, uint64_t ns,
                                 kiln_diag *diag);
bool kn_fake_event_done(void *device, void *event);
kiln_status kn_fake_event_wait(void *device, void *event, kiln_diag *diag);
kiln_status kn_fake_event_elapsed(void *device, void *event, uint64_t *out_ns, kiln_diag *diag);
void kn_fake_event_destroy(void *device, void *event);

#endif

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

/* identity.c: what a stage's fact or a binary must begin with for this driver to take it. */
void kn_fake_binary_stamp(const kn_fake_instance *instance, uint32_t device, char *stamp,
                          size_t size);

/* probe.c */
kiln_status kn_fake_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                         kiln_diag *diag);
void kn_fake_close(void *instance);

/* The operations, each in the file that its subject names. */
#define KN_OPERATION(name) kn_fake_##name
#include "hal/operations.h"

/* program.c */
kiln_status kn_fake_program_create(kn_fake_device *device, const void *binary, size_t size,
                                   kn_fake_program **out_program, kiln_diag *diag);

/* launch.c */
kiln_status kn_fake_event_create(kn_fake_device *device, void **out_event, uint64_t ns,
                                 kiln_diag *diag);

#endif

/* A frontend without a compiler, which gives and does what a test tells it, in the shapes that
 * kiln's frontends have. */
#ifndef KILN_TESTS_ENGINE_FAKE_H
#define KILN_TESTS_ENGINE_FAKE_H

#include <stdatomic.h>

#include "engine/job.h"

typedef struct kt_fake {
    /* what happens */
    kn_outcome gives;             /* a compile; NONE stands for STORED */
    kn_change change;             /* found after a compile */
    kn_loaded loads;              /* the next load of a hit */
    bool always;                  /* and all later ones */
    bool partial;                 /* a failing compile leaves something with the caller */
    const struct kt_fake *leader; /* another thread, which may defer its result */
    const kn_frontend *frontend;
    kiln_cache *cache;
    struct kt_fake *inner; /* run in the compile */
    void (*during)(struct kt_fake *fake);
    void *user;
    /* what happened */
    unsigned compiles, loaded, kept, reports, adopted;
    atomic_uint defers;
    bool has; /* the caller has a result */
    char origin[16];
} kt_fake;

extern const kn_frontend kt_shim;   /* NVRTC, hipRTC, ptxas: bytes are handed to the caller */
extern const kn_frontend kt_driver; /* OpenCL, OpenGL, Vulkan: a driver loads what was cached */
extern const kn_frontend kt_stage;  /* the runtime's build: results without bytes are shared */

kn_request kt_request(kiln_cache *cache, kiln_recipe *recipe);
/* Runs a job for `recipe`, checks what it left with the caller, and returns the outcome. */
kn_outcome kt_fake_run(kt_fake *fake, kiln_recipe *recipe);
void kt_fake_output(kt_fake *fake, kn_output *output, kiln_diag *diag);

#endif

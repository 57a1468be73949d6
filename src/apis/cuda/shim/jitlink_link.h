/* One nvJitLinkHandle of a caller: its options and inputs, and the real link behind it, which is
 * made only when something is asked that the cache cannot answer. Callers hold the link's lock. */
#ifndef KILN_CUDA_SHIM_JITLINK_LINK_H
#define KILN_CUDA_SHIM_JITLINK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "apis/cuda/shim/jitlink_api.h"
#include "kiln/cache.h"
#include "sys/thread.h"

typedef struct kn_jitlink_input {
    unsigned release;
    int type;
    void *data;
    size_t size;
    char *name; /* NULL: none was given */
} kn_jitlink_input;

typedef struct kn_jitlink_link {
    kn_mutex lock;
    const kn_jitlink_real *library;
    unsigned release; /* of its creation */
    char **options;
    uint32_t option_count;
    kn_jitlink_input *inputs;
    size_t input_count;
    kiln_key step; /* of all that was done so far */
    bool plain;    /* the real link has the last word */
    bool counted;  /* what became of it is in the report */
    bool failed;   /* the last step that was looked up */
    bool completed;
    unsigned completed_release;
    kiln_blob *blob; /* of the completed link; NULL: the real one has it */
    nvJitLinkHandle real;
    size_t real_inputs; /* of the inputs that the real link has */
    bool real_completed;
    uint64_t took_ns, saved_ns;
} kn_jitlink_link;

/* Copies the options. NULL when out of memory. */
kn_jitlink_link *kn_jitlink_link_create(const kn_jitlink_real *library, unsigned release,
                                        uint32_t count, const char *const *options);
/* The link behind a handle, which is no handle from now on: it is yours, to destroy. NULL if the
 * handle is not that of a link which is alive. Threads: any. */
kn_jitlink_link *kn_jitlink_link_take(nvJitLinkHandle handle);
/* Destroys the link, and the real one, whose answer it gives; 0 if there is none. */
nvJitLinkResult kn_jitlink_link_destroy(kn_jitlink_link *link, unsigned release);
/* The link behind a handle; NULL if the handle is not that of one which is alive: it is the real
 * library's. It is not read. Threads: any. */
kn_jitlink_link *kn_jitlink_link_of(nvJitLinkHandle handle);
/* Copies the input. False when out of memory. */
bool kn_jitlink_link_add(kn_jitlink_link *link, unsigned release, int type, const void *data,
                         size_t size, const char *name);

/* Makes the real link as far as the caller has come. The code is that of the last step that it
 * took, 0 if there was none to take. */
nvJitLinkResult kn_jitlink_link_catch_up(kn_jitlink_link *link);

#endif

/* What a program wants built, copied: texts with their options, for devices of a context. Shared by
 * the build itself, by a thread that does it in the background and by what is kept for a later
 * capture. Knows no driver. */
#ifndef KILN_OPENCL_DROPIN_WISH_H
#define KILN_OPENCL_DROPIN_WISH_H

#include <stdatomic.h>

#include "kiln/opencl.h"

typedef struct kn_opencl_text {
    char *text; /* its strings, one after the other */
    size_t length;
    char *options; /* never NULL */
    kiln_header *headers;
    size_t header_count;
} kn_opencl_text;

typedef struct kn_opencl_wish {
    atomic_uint references;
    struct _cl_context *context;
    struct _cl_device_id **devices;
    size_t device_count;
    kn_opencl_text *texts;
    size_t text_count;
    bool link;          /* clCompileProgram and clLinkProgram, not clBuildProgram */
    char *link_options; /* never NULL */
} kn_opencl_wish;

/* KILN_E_INVALID for what no driver could build: no context, device or text. */
kiln_status kn_opencl_wish_create(const kiln_opencl_request *request, kn_opencl_wish **out_wish,
                                  kiln_diag *diag);
/* One text for one device. */
kiln_status kn_opencl_wish_create_plain(struct _cl_context *context, struct _cl_device_id *device,
                                        const char *text, const char *options,
                                        kn_opencl_wish **out_wish, kiln_diag *diag);
/* Which of its devices that is; false: none. */
bool kn_opencl_wish_find(const kn_opencl_wish *wish, const struct _cl_device_id *device,
                         uint32_t *out_index);
kn_opencl_wish *kn_opencl_wish_retain(kn_opencl_wish *wish);
void kn_opencl_wish_release(kn_opencl_wish *wish);

#endif

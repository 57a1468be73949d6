/* Standing in for the callback of a build, so that the layer knows when the driver has called it.
 */
#ifndef KILN_LAYERS_OPENCL_NOTIFY_H
#define KILN_LAYERS_OPENCL_NOTIFY_H

#include "layers/opencl/api.h"
#include "sys/thread.h"

typedef struct kn_layer_notice {
    kn_mutex lock;
    kn_cond cond;
    bool taken;
} kn_layer_notice;

void kn_layer_notice_init(kn_layer_notice *notice);
void kn_layer_notice_deinit(kn_layer_notice *notice);
/* What the driver is given as its callback, with the notice. */
void CL_CALLBACK kn_layer_notice_take(cl_program program, void *notice);
void kn_layer_notice_wait(kn_layer_notice *notice);

#endif

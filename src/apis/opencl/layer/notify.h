/* Standing in for the callback of a build, so that the layer knows when the driver has called it. A
 * driver that reports an error may call it all the same, and later: the notice outlives the build
 * that it was made for. */
#ifndef KILN_OPENCL_LAYER_NOTIFY_H
#define KILN_OPENCL_LAYER_NOTIFY_H

#include <stdbool.h>

#include "apis/opencl/layer/api.h"

typedef struct kn_layer_notice kn_layer_notice;

/* For the application's callback; NULL when out of memory. */
kn_layer_notice *kn_layer_notice_create(kn_cl_notify *notify, void *user);
/* What the driver is given as its callback, with the notice. */
void CL_CALLBACK kn_layer_notice_take(cl_program program, void *notice);
void kn_layer_notice_wait(kn_layer_notice *notice);
/* True: the driver has called back, and the application's callback is the caller's to call. False:
 * of a build that began it is called when the driver calls; where it never does, the notice stays.
 * NULL is allowed. */
bool kn_layer_notice_release(kn_layer_notice *notice, bool began);

#endif

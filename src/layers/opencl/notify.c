/* See notify.h. */
#include "layers/opencl/notify.h"

void kn_layer_notice_init(kn_layer_notice *notice)
{
    kn_mutex_init(&notice->lock);
    kn_cond_init(&notice->cond);
    notice->taken = false;
}

void kn_layer_notice_deinit(kn_layer_notice *notice)
{
    kn_cond_deinit(&notice->cond);
    kn_mutex_deinit(&notice->lock);
}

void CL_CALLBACK kn_layer_notice_take(cl_program program, void *notice)
{
    kn_layer_notice *taken = (kn_layer_notice *)notice;
    (void)program;
    kn_mutex_lock(&taken->lock);
    taken->taken = true;
    kn_cond_broadcast(&taken->cond);
    kn_mutex_unlock(&taken->lock);
}

void kn_layer_notice_wait(kn_layer_notice *notice)
{
    kn_mutex_lock(&notice->lock);
    while (!notice->taken) {
        kn_cond_wait(&notice->cond, &notice->lock);
    }
    kn_mutex_unlock(&notice->lock);
}

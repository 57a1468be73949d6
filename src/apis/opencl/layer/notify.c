/* See notify.h. */
#include "apis/opencl/layer/notify.h"

#include <stdlib.h>

#include "sys/thread.h"

struct kn_layer_notice {
    kn_mutex lock;
    kn_cond cond;
    kn_cl_notify *notify; /* the application's */
    void *user;
    bool taken;    /* the driver has called */
    bool released; /* the layer has no more use for it */
};

kn_layer_notice *kn_layer_notice_create(kn_cl_notify *notify, void *user)
{
    kn_layer_notice *notice = calloc(1, sizeof(*notice));
    if (notice != NULL) {
        notice->notify = notify;
        notice->user = user;
        kn_mutex_init(&notice->lock);
        kn_cond_init(&notice->cond);
    }
    return notice;
}

static void destroy_notice(kn_layer_notice *notice)
{
    kn_cond_deinit(&notice->cond);
    kn_mutex_deinit(&notice->lock);
    free(notice);
}

void CL_CALLBACK kn_layer_notice_take(cl_program program, void *notice)
{
    kn_layer_notice *taken = (kn_layer_notice *)notice;
    kn_mutex_lock(&taken->lock);
    const bool late = taken->released;
    taken->taken = true;
    kn_cond_broadcast(&taken->cond);
    kn_mutex_unlock(&taken->lock);
    if (late) {
        taken->notify(program, taken->user);
        destroy_notice(taken);
    }
}

void kn_layer_notice_wait(kn_layer_notice *notice)
{
    kn_mutex_lock(&notice->lock);
    while (!notice->taken) {
        kn_cond_wait(&notice->cond, &notice->lock);
    }
    kn_mutex_unlock(&notice->lock);
}

bool kn_layer_notice_release(kn_layer_notice *notice, bool began)
{
    if (notice == NULL) {
        return false;
    }
    kn_mutex_lock(&notice->lock);
    const bool taken = notice->taken;
    notice->released = true;
    kn_mutex_unlock(&notice->lock);
    if (taken || !began) {
        destroy_notice(notice);
    }
    return taken;
}

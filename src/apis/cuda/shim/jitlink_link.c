/* See jitlink_link.h. */
#include "apis/cuda/shim/jitlink_link.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "interpose/handles.h"

#define INTERNAL_ERROR 6 /* NVJITLINK_ERROR_INTERNAL */

static kn_handles links;

/* All but the real link. */
static void free_link(kn_jitlink_link *link)
{
    for (uint32_t i = 0; link->options != NULL && i < link->option_count; i++) {
        free(link->options[i]);
    }
    for (size_t i = 0; i < link->input_count; i++) {
        free(link->inputs[i].data);
        free(link->inputs[i].name);
    }
    free((void *)link->options);
    free(link->inputs);
    kiln_blob_release(link->blob);
    kn_mutex_deinit(&link->lock);
    free(link);
}

kn_jitlink_link *kn_jitlink_link_create(const kn_jitlink_real *library, unsigned release,
                                        uint32_t count, const char *const *options)
{
    kn_jitlink_link *link = (kn_jitlink_link *)calloc(1, sizeof(*link));
    if (link == NULL) {
        return NULL;
    }
    kn_mutex_init(&link->lock);
    link->library = library;
    link->release = release;
    link->options = (char **)calloc((size_t)count + 1, sizeof(*link->options));
    bool copied = link->options != NULL;
    for (uint32_t i = 0; copied && i < count; i++) {
        link->options[i] = kn_text_copy(options[i]);
        copied = link->options[i] != NULL;
        link->option_count++;
    }
    if (!copied || !kn_handles_add(&links, link)) {
        free_link(link);
        return NULL;
    }
    return link;
}

kn_jitlink_link *kn_jitlink_link_take(nvJitLinkHandle handle)
{
    return kn_handles_remove(&links, handle) ? (kn_jitlink_link *)(void *)handle : NULL;
}

nvJitLinkResult kn_jitlink_link_destroy(kn_jitlink_link *link, unsigned release)
{
    const kn_jitlink_calls *real = link->real != NULL ? link->library->open(release) : NULL;
    const nvJitLinkResult code =
        real != NULL && real->destroy != NULL ? real->destroy(&link->real) : 0;
    free_link(link);
    return code;
}

kn_jitlink_link *kn_jitlink_link_of(nvJitLinkHandle handle)
{
    return kn_handles_have(&links, handle) ? (kn_jitlink_link *)(void *)handle : NULL;
}

bool kn_jitlink_link_add(kn_jitlink_link *link, unsigned release, int type, const void *data,
                         size_t size, const char *name)
{
    kn_jitlink_input *grown =
        (kn_jitlink_input *)realloc(link->inputs, (link->input_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    link->inputs = grown;
    kn_jitlink_input *input = &grown[link->input_count];
    *input = (kn_jitlink_input){.release = release, .type = type, .size = size};
    /* nvJitLink takes a text for PTX only where a NUL follows it, counted in its size or not. */
    input->data = calloc(1, size + 1);
    if (input->data != NULL) {
        memcpy(input->data, data, size);
    }
    input->name = name != NULL ? kn_text_copy(name) : NULL;
    if (input->data == NULL || (name != NULL && input->name == NULL)) {
        free(input->data);
        free(input->name);
        return false;
    }
    link->input_count++;
    return true;
}

static nvJitLinkResult make_real(kn_jitlink_link *link)
{
    const kn_jitlink_calls *calls = link->library->open(link->release);
    if (link->real != NULL) {
        return 0;
    }
    return calls != NULL && calls->create != NULL
               ? calls->create(&link->real, link->option_count, (const char *const *)link->options)
               : INTERNAL_ERROR;
}

static nvJitLinkResult add_to_real(kn_jitlink_link *link, const kn_jitlink_input *input)
{
    const kn_jitlink_calls *calls = link->library->open(input->release);
    return calls != NULL && calls->add_data != NULL
               ? calls->add_data(link->real, input->type, input->data, input->size, input->name)
               : INTERNAL_ERROR;
}

nvJitLinkResult kn_jitlink_link_catch_up(kn_jitlink_link *link)
{
    nvJitLinkResult code = make_real(link);
    while (code == 0 && link->real_inputs < link->input_count) {
        code = add_to_real(link, &link->inputs[link->real_inputs++]);
    }
    if (code == 0 && link->completed && !link->real_completed) {
        const kn_jitlink_calls *calls = link->library->open(link->completed_release);
        link->real_completed = true;
        code =
            calls != NULL && calls->complete != NULL ? calls->complete(link->real) : INTERNAL_ERROR;
    }
    return code;
}

/* The bytes of the opengl backend's artifact: a flattened text, its file names, and the driver's
 * binaries of the programs linked from it, one for each work-group size. All numbers are
 * little-endian; every one of them is checked when it is read. */
#ifndef KILN_OPENGL_BACKEND_CONTAINER_H
#define KILN_OPENGL_BACKEND_CONTAINER_H

#include "apis/opengl/backend/flatten.h"
#include "kiln/status.h"

enum { KN_GL_MAX_VARIANTS = 64 };

typedef struct kn_gl_part {
    uint32_t local[3];
    uint32_t format;
    const void *data;
    size_t size;
} kn_gl_part;

typedef struct kn_gl_container {
    const char *text, *names;
    size_t text_size, head, names_size;
    bool local_open[3];
    kn_gl_part parts[KN_GL_MAX_VARIANTS];
    size_t part_count;
} kn_gl_container;

/* Appends; out of memory shows in `out`. */
void kn_gl_container_write(const kn_gl_container *container, kn_strbuf *out);
/* Points into `data`. False if that is not whole and in order. */
bool kn_gl_container_read(const void *data, size_t size, kn_gl_container *out_container);

#endif

/* GLSL as one text: includes put in their places, definitions after #version, file and line kept
 * through #line, work-group sizes that are left open turned into macros. Pure: reads files, calls
 * no OpenGL.
 *
 * OpenGL's GLSL has neither #include nor specialisation constants (OpenGL 4.6, 7.1; they need
 * SPIR-V), and a #line takes a number for the file: kn_gl_text.names says which is which. */
#ifndef KILN_OPENGL_BACKEND_FLATTEN_H
#define KILN_OPENGL_BACKEND_FLATTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "kiln/source.h"

typedef struct kn_gl_text {
    kn_strbuf text;
    size_t head;        /* bytes up to and with the #version line: macros go after them */
    bool local_open[3]; /* local_size_*_id: set by macros KILN_LOCAL_SIZE_X, _Y, _Z */
    kn_strbuf names;    /* of the files, by string number, each with its NUL */
} kn_gl_text;

void kn_gl_text_init(kn_gl_text *text);
void kn_gl_text_deinit(kn_gl_text *text);

/* KILN_E_INVALID: nested too deeply; KILN_E_NOMEM, also when over 16 MiB. A file that is not found
 * becomes an #error in its place, so that one in a branch not taken does no harm. */
kiln_status kn_gl_flatten(const kiln_source *source, kn_gl_text *out_text, kiln_diag *diag);

/* layout.c: copies GLSL, rewriting the layouts that only Vulkan knows: local_size_*_id becomes a
 * macro, constant_id and set = 0 go. Line breaks stay where they are. */
void kn_gl_rewrite_layouts(const char *text, size_t length, kn_strbuf *out, bool local_open[3]);

#endif

/* What the two backends that take GLSL share: where an include is, the size of a launch's
 * work-groups, and what is said of arguments that do not fit. */
#ifndef KILN_HAL_GLSL_H
#define KILN_HAL_GLSL_H

#include "kiln/sys/backend.h"

/* The operations that both answer alike. */
const char *kn_glsl_system_include_dir(void *instance, const kiln_target *target, size_t index);
bool kn_glsl_ships_header(void *instance, const kiln_target *target, const char *name);
const char *kn_glsl_uncacheable_option(void *instance, const kiln_source *source);

enum { KN_GLSL_FILE_LIMIT = 16 << 20, KN_GLSL_DEPTH = 64 };

/* A file that a source includes. */
typedef struct kn_glsl_file {
    char *name;  /* malloc'ed: its path, or of one in memory what it is included as */
    void *owned; /* malloc'ed; NULL in memory */
    const char *text;
    size_t length;
    bool in_memory;
} kn_glsl_file;

/* Looks for it where kiln's own resolver does, in the same order: in memory, beside `includer` (a
 * path; NULL: not there), in the include directories. False if it is nowhere. */
bool kn_glsl_find(const kiln_source *source, const char *includer, const char *name,
                  kn_glsl_file *out_file);
void kn_glsl_file_deinit(kn_glsl_file *file);

/* Past the comment that begins at `at`, or `at` itself. A backslash joins lines in a comment. */
size_t kn_glsl_skip_comment(const char *text, size_t length, size_t at);

typedef struct kn_glsl_groups {
    uint32_t size, dim[3], count[3]; /* items in a group, in a dimension; groups in a dimension */
} kn_glsl_groups;

/* The size of the work-groups: what the shader fixes (`fixed` NULL: not known yet, and 0 is given),
 * and in dimensions that it leaves `open` what is asked for, else as much as fits. KILN_E_INVALID:
 * too much, or another size than the shader's. */
kiln_status kn_glsl_choose_local(const kn_glsl_groups *most, const bool open[3],
                                 const uint32_t *fixed, const uint64_t asked[3],
                                 const uint64_t global[3], const char *name, uint32_t out_local[3],
                                 kiln_diag *diag);
kiln_status kn_glsl_count_groups(const kn_glsl_groups *most, const kiln_sys_launch *launch,
                                 const uint32_t local[3], uint32_t out_groups[3], kiln_diag *diag);
/* KILN_E_INVALID: a buffer's offset is not aligned; a value has another size than `size`. */
kiln_status kn_glsl_check_offset(const kiln_sys_launch *launch, size_t index, uint64_t alignment,
                                 kiln_diag *diag);
kiln_status kn_glsl_check_value(const kiln_sys_launch *launch, size_t index, const char *type,
                                const char *name, size_t size, kiln_diag *diag);

#endif

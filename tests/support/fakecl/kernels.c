/* See fakecl.h. */
#include "support/fakecl/fakecl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_uint kernel_count(const char *text)
{
#if defined(FAKE_POCL) || defined(FAKE_NVIDIA)
    cl_uint found = 0;
    while (found < FAKECL_KERNELS && (text = strstr(text, "__kernel")) != NULL) {
        text++;
        found++;
    }
    return found;
#else
    (void)text;
    return 1;
#endif
}

cl_uint fakecl_count_kernels(cl_program program)
{
    const cl_uint found = kernel_count(program->text);
    return found - (program->is_code && strstr(program->text, "lost") != NULL);
}

cl_uint fakecl_make_list(cl_program program)
{
    const cl_uint found = fakecl_count_kernels(program);
#ifdef FAKE_NVIDIA
    if (found > 70) { /* "k;k1; ... k70", 264 bytes */
        abort();
    }
#endif
    return found;
}

#ifdef FAKE_NVIDIA
static size_t put_name(char *text, size_t size, cl_uint index, const char *before,
                       const char *after)
{
    char number[16] = "";
    if (index > 0) {
        (void)snprintf(number, sizeof(number), "%u", index);
    }
    return (size_t)snprintf(text, size, "%sk%s%s", before, number, after);
}

void fakecl_list_kernels(cl_program program, char names[FAKECL_NAMES])
{
    size_t length = 0;
    names[0] = '\0';
    for (cl_uint i = fakecl_make_list(program); i > 0; i--) { /* in an order of its own */
        length += put_name(names + length, FAKECL_NAMES - length, i - 1, length > 0 ? ";" : "", "");
    }
}

cl_int fakecl_make_ptx(cl_program program)
{
    char *whole = calloc(1, program->length + 4096);
    if (whole == NULL) {
        return CL_OUT_OF_HOST_MEMORY;
    }
    memcpy(whole, program->text, program->length);
    size_t length = strlen(whole);
    for (cl_uint i = 0; i < kernel_count(program->text); i++) {
        length += put_name(whole + length, 64, i, "\n.visible .entry ", "(\n)");
    }
    free(program->text);
    program->text = whole;
    program->length = length + 2; /* as the real one: two NULs */
    return CL_SUCCESS;
}
#endif

void fakecl_may_die(const char *variable, const char *text)
{
    const char *deadly = getenv(variable);
    if (deadly != NULL && (text == NULL || strstr(text, deadly) != NULL)) {
        abort();
    }
}

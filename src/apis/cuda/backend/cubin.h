/* What a CUBIN says of a kernel's parameters: how many there are. The driver reports the size of
 * each (cuFuncGetParamInfo) but their number only by failing past the last, which takes it longer
 * than a launch and makes compute-sanitizer report an error. The sections that hold it are NVIDIA's
 * own and in no document, so this is a hint that must agree with itself, and its users ask the
 * driver where it is not known. Opens nothing, knows no driver. */
#ifndef KILN_CUDA_BACKEND_CUBIN_H
#define KILN_CUDA_BACKEND_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of any kind, and the kernel's name as the CUBIN has it (lowered). SIZE_MAX if they are not
 * a CUBIN, or are ambiguous. Every offset is checked against `size`. */
size_t kn_cubin_param_count(const void *image, size_t size, const char *kernel);

/* Whether the bytes of a CUBIN or a fat binary are all there. The driver gets no size and goes by
 * what the headers say: on a file that was cut off it reads past the end. True of text (PTX) and
 * whatever else is the driver's to judge. */
bool kn_cuda_image_is_whole(const void *data, size_t size);

#endif

/* The part of the path that kiln's libraries are preloaded by which AddressSanitizer's runtime
 * looks for: sanitizer.c. It leads into a directory and out of it again, so that the path of the
 * file, as a process has it mapped, is without it: a runtime that is linked statically refuses a
 * process that has a file of this name mapped. */
#ifndef KILN_INTERPOSE_MARK_H
#define KILN_INTERPOSE_MARK_H

#define KN_PRELOAD_MARK "before-libclang_rt.asan/.."

#endif

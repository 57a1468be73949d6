/* Visibility and compiler attributes for the public headers.
 *
 * Every public declaration in kiln is marked KILN_API; everything else in the library is hidden.
 * KILN_MUST_CHECK marks functions whose status must not be dropped: write `(void)f()` only where a
 * comment says why the result does not matter. */
#ifndef KILN_EXPORT_H
#define KILN_EXPORT_H

#if defined(_WIN32) && defined(KILN_SHARED)
#ifdef KILN_BUILDING
#define KILN_API __declspec(dllexport)
#else
#define KILN_API __declspec(dllimport)
#endif
#elif defined(__GNUC__) && !defined(_WIN32)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

#if defined(__GNUC__)
#if defined(__MINGW32__) && !defined(__clang__)
#define KILN_PRINTF_KIND gnu_printf /* what the library formats with, whatever the program has */
#else
#define KILN_PRINTF_KIND printf
#endif
#define KILN_MUST_CHECK __attribute__((warn_unused_result))
#define KILN_PRINTF(format_index, first_arg)                                                       \
    __attribute__((format(KILN_PRINTF_KIND, format_index, first_arg)))
#else
#define KILN_MUST_CHECK
#define KILN_PRINTF(format_index, first_arg)
#endif

#ifdef __cplusplus
#define KILN_BEGIN_DECLS extern "C" {
#define KILN_END_DECLS }
#else
#define KILN_BEGIN_DECLS
#define KILN_END_DECLS
#endif

#endif

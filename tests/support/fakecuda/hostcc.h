/* What the fake compilers share: a program of nvrtcCreateProgram's shape, and the system's C++
 * compiler, which makes a shared object of it behind prelude.hpp, with one caller a kernel. */
#ifndef KILN_TESTS_HOSTCC_H
#define KILN_TESTS_HOSTCC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOSTCC_EXPRESSIONS = 32, HOSTCC_HEADERS = 32, HOSTCC_ROOM = 16 };

typedef struct hostcc {
    char *text;
    char *expressions[HOSTCC_EXPRESSIONS], *lowered[HOSTCC_EXPRESSIONS];
    int expression_count;
    char *header_names[HOSTCC_HEADERS], *header_texts[HOSTCC_HEADERS];
    int header_count;
    char *log;
    char *object;       /* HOSTCC_ROOM bytes for a header, then the shared object */
    size_t object_size; /* without that room */
} hostcc;

/* False: too many headers. What was filled is released by hostcc_deinit in either case. */
bool hostcc_init(hostcc *unit, const char *text, int header_count, const char *const *headers,
                 const char *const *names);
void hostcc_deinit(hostcc *unit);
bool hostcc_add_expression(hostcc *unit, const char *name);
/* False: not added. $FAKE_LIE may make NULL of it, as a `value` of `query`. */
bool hostcc_lower(const hostcc *unit, const char *name, const char *query, const char **lowered);

/* Fills log and, if it compiles, object. -1: there was no place to compile in; else whether it
 * compiled. */
int hostcc_compile(hostcc *unit, int option_count, const char *const *options);

/* What is said of an output of `size` bytes, and given of it: as many as were named where $FAKE_LIE
 * names another `length` for `query`. */
size_t hostcc_size(const char *query, size_t size);
void hostcc_give(const char *query, char *to, const char *from, size_t size);
/* The same of the log; what has no room is given without its end. */
size_t hostcc_log_size(const hostcc *unit, const char *query);
void hostcc_give_log(const hostcc *unit, const char *query, char *to);

/* "compile OPTION...": a line in the file that `variable` names, if it is set. */
void hostcc_note(const char *variable, int option_count, const char *const *options);

#endif

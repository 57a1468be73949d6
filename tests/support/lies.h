/* What a fake driver says instead of the truth, chosen by $FAKE_LIE while it runs:
 *
 *     "QUERY KIND NUMBER"   clGetProgramInfo:1165 length 2400
 *
 * QUERY is the call, and for a call that answers many questions the question in hexadecimal. KIND
 * is `length` (the size that the driver names), `value` (each eight bytes of the answer), or
 * `error` (the code that the call returns). A fake never writes more than the caller gave room for:
 * whatever memory is damaged, kiln has damaged it. */
#ifndef KILN_TESTS_LIES_H
#define KILN_TESTS_LIES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool lie_is_told(const char *query, const char *kind, uint64_t *out_number)
{
    const char *lie = getenv("FAKE_LIE");
    char its_query[64], its_kind[16];
    return lie != NULL && sscanf(lie, "%63s %15s %" SCNu64, its_query, its_kind, out_number) == 3 &&
           strcmp(its_query, query) == 0 && strcmp(its_kind, kind) == 0;
}

/* The truth, or what is told instead: as a value, or as the length of an answer. */
static inline uint64_t lie_or(const char *query, const char *kind, uint64_t truth)
{
    uint64_t number = 0;
    return lie_is_told(query, kind, &number) ? number : truth;
}

static inline bool lie_is_told_of(const char *call, unsigned question, const char *kind,
                                  uint64_t *out_number)
{
    char query[64];
    (void)snprintf(query, sizeof(query), "%s:%x", call, question);
    return lie_is_told(query, kind, out_number);
}

/* Fills an answer of `size` bytes. */
static inline void lie_fill(void *answer, size_t size, uint64_t number)
{
    for (size_t at = 0; answer != NULL && at < size; at += sizeof(number)) {
        const size_t left = size - at;
        memcpy((char *)answer + at, &number, left < sizeof(number) ? left : sizeof(number));
    }
}

#endif

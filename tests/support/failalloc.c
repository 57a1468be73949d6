/* The failing allocator; see failalloc.h. */
#include "support/failalloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* The linker's names for the wrapped functions; reserved, but given by --wrap. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);

#define MAX_RUNS 100000

static _Atomic uint64_t asked;
static _Atomic uint64_t fail_at; /* 0: disarmed */
static atomic_bool keep_failing;
static atomic_bool fired;

void kt_failalloc_arm(uint64_t n, bool on)
{
    atomic_store(&fail_at, 0);
    atomic_store(&asked, 0);
    atomic_store(&fired, false);
    atomic_store(&keep_failing, on);
    atomic_store(&fail_at, n);
}

void kt_failalloc_disarm(void)
{
    atomic_store(&fail_at, 0);
}

uint64_t kt_failalloc_count(void)
{
    return atomic_load(&asked);
}

bool kt_failalloc_fired(void)
{
    return atomic_load(&fired);
}

static bool must_fail(void)
{
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at == 0) {
        return false;
    }
    uint64_t number = atomic_fetch_add(&asked, 1) + 1;
    if (number == at || (number > at && atomic_load(&keep_failing))) {
        atomic_store(&fired, true);
        errno = ENOMEM;
        return true;
    }
    return false;
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return must_fail() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}

uint64_t kt_failalloc_each(bool (*body)(void *user), void *user)
{
    for (uint64_t n = 1; n < MAX_RUNS; n++) {
        kt_failalloc_arm(n, false);
        bool worked = body(user);
        bool failed_one = kt_failalloc_fired();
        kt_failalloc_disarm();
        if (!failed_one) {
            if (!worked) {
                (void)fprintf(stderr, "failalloc: no allocation failed, and yet the body did\n");
                abort();
            }
            return n - 1;
        }
    }
    (void)fprintf(stderr, "failalloc: no end after %d runs\n", MAX_RUNS);
    abort();
}

/* forward FRONT NAME VARIABLE RECORDER: calls the function NAME of kiln's library FRONT, for which
 * VARIABLE says that RECORDER is the real one, with a value of its own in every register of
 * arguments and on the stack. The real function must find all of them: at the first call, when
 * eight threads make it at once, and later. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registers.h"

enum { THREADS = 8, CALLS = 3, RETURNED = 0x5151 };

#if defined(__x86_64__)
enum { WORDS = 8 };
#else
enum { WORDS = 9 };
#endif

static void (*forwarded)(void);
static pthread_barrier_t together;

static size_t vector_width(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return 64;
    }
    return __builtin_cpu_supports("avx") ? 32 : 16;
#else
    return 16;
#endif
}

/* Values that no register has by chance. */
static void fill(registers *in, registers *seen, unsigned seed)
{
    memset(in, 0, sizeof(*in));
    memset(seen, 0, sizeof(*seen));
    in->width = seen->width = vector_width();
    for (size_t i = 0; i < 8; i++) {
        in->stack[i] = UINT64_C(0xa5a5000000000000) + seed * 256 + i;
        for (size_t j = 0; j < in->width; j++) {
            in->vectors[i][j] = (unsigned char)(seed * 41 + i * 67 + j + 1);
        }
    }
    for (size_t i = 0; i < WORDS; i++) {
        in->words[i] = UINT64_C(0x5a5a000000000000) + seed * 256 + i;
    }
    in->words[0] = (uint64_t)(uintptr_t)seen;
}

static bool call_once(unsigned seed)
{
    registers in;
    registers seen;
    fill(&in, &seen, seed);
    const uint64_t returned = call_with_registers(forwarded, &in);
    if (returned != RETURNED) {
        (void)fprintf(stderr, "it returned %#llx\n", (unsigned long long)returned);
        return false;
    }
    bool same = true;
    for (size_t i = 0; i < WORDS; i++) {
        if (in.words[i] != seen.words[i]) {
            same = false;
            (void)fprintf(stderr, "word %zu is %#llx\n", i, (unsigned long long)seen.words[i]);
        }
    }
    for (size_t i = 0; i < 8; i++) {
        if (in.stack[i] != seen.stack[i]) {
            same = false;
            (void)fprintf(stderr, "word %zu of the stack is %#llx\n", i,
                          (unsigned long long)seen.stack[i]);
        }
        if (memcmp(in.vectors[i], seen.vectors[i], in.width) != 0) {
            same = false;
            (void)fprintf(stderr, "vector register %zu differs\n", i);
        }
    }
    return same;
}

/* "endbr64", "bti c" */
static bool is_landing(const void *code)
{
#if defined(__x86_64__)
    return memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0;
#else
    return memcmp(code, "\x5f\x24\x03\xd5", 4) == 0;
#endif
}

static void *call_often(void *number)
{
    const unsigned seed = (unsigned)(uintptr_t)number;
    bool good = true;
    (void)pthread_barrier_wait(&together);
    for (unsigned i = 0; i < CALLS; i++) {
        good = call_once(seed * CALLS + i) && good;
    }
    return good ? number : NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int failed = 0;
    if (argc != 5 || setenv(argv[3], argv[4], 1) != 0) {
        return 2;
    }
    void *front = dlopen(argv[1], RTLD_NOW);
    void *symbol = front != NULL ? dlsym(front, argv[2]) : NULL;
    if (symbol == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    if (!is_landing(symbol)) {
        (void)fprintf(stderr, "%s does not begin with what an indirect branch may land on\n",
                      argv[2]);
        return 1;
    }
    memcpy(&forwarded, &symbol, sizeof(symbol));
    if (pthread_barrier_init(&together, NULL, THREADS) != 0) {
        return 2;
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, call_often, (void *)(i + 1)) != 0) {
            return 2;
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *good = NULL;
        failed += pthread_join(threads[i], &good) != 0 || good == NULL;
    }
    (void)printf("%d of %d threads failed, vectors of %zu bytes\n", failed, THREADS,
                 vector_width());
    return failed != 0;
}

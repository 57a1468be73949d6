/* The matrix product on the processor by hand: `cc -shared`, dlopen, a call. */
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/process/by_hand.h"
#include "bench/warm.h"

static const char text[] =
    "void matmul(const float *a, const float *b, float *c, int n)\n"
    "{\n"
    "    for (int y = 0; y < n; y++) {\n"
    "        for (int x = 0; x < n; x++) {\n"
    "            float sum = 0.0f;\n"
    "            for (int i = 0; i < n; i++) { sum += a[y * n + i] * b[i * n + x]; }\n"
    "            c[y * n + x] = sum;\n"
    "        }\n"
    "    }\n"
    "}\n";

bool by_hand_cpu_compile(const char *path)
{
    char source[600];
    pid_t child = 0;
    int status = 1;
    (void)snprintf(source, sizeof(source), "%s.c", path);
    char *argv[] = {"cc",    "-std=c17", "-O3",        "-march=native", "-shared",
                    "-fPIC", "-o",       (char *)path, source,          NULL};
    FILE *file = fopen(source, "wb");
    const bool written = file != NULL && fputs(text, file) >= 0;
    if (file == NULL || fclose(file) != 0 || !written ||
        posix_spawnp(&child, "cc", NULL, NULL, argv, environ) != 0) {
        return false;
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

bool by_hand_cpu(const char *path)
{
    static float ones[WARM_SIZE * WARM_SIZE], product[WARM_SIZE * WARM_SIZE];
    void (*matmul)(const float *, const float *, float *, int) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "matmul") : NULL;
    if (symbol == NULL) {
        return false;
    }
    memcpy(&matmul, &symbol, sizeof(matmul));
    for (int i = 0; i < WARM_SIZE * WARM_SIZE; i++) {
        ones[i] = 1.0F;
    }
    matmul(ones, ones, product, WARM_SIZE);
    printf("%g\n", (double)product[0]);
    return product[0] == (float)WARM_SIZE;
}

bool by_hand_cpu_cold(const char *path)
{
    return by_hand_cpu_compile(path) && by_hand_cpu(path);
}

/* Questions to short child processes: the compiler, and the system's loader. */
#ifndef KILN_CPU_BACKEND_ASK_H
#define KILN_CPU_BACKEND_ASK_H

#include "kiln/status.h"

#include "sys/process.h"

typedef struct cpu_ask {
    const char *argv[10];     /* NULL-terminated */
    const char *variable;     /* one more for its environment, or NULL */
    kiln_diag *diag;          /* why it could not be asked; NULL: nobody wants to know */
    kiln_status status;       /* filled: KILN_OK if it answered, whatever it says */
    kn_process_result result; /* filled */
} cpu_ask;

/* Asks all of them at once, as far as threads can be started; in English, in `directory`. */
void kn_cpu_ask_together(const char *dir, cpu_ask *asks, size_t count);
/* NULL-safe. */
void kn_cpu_asks_deinit(cpu_ask *asks, size_t count);

#endif

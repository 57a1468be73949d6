/* What one opened cpu backend holds. */
#ifndef KILN_BACKENDS_CPU_INSTANCE_H
#define KILN_BACKENDS_CPU_INSTANCE_H

#include "kiln/sys/backend.h"

#include "backends/cpu/pool.h"
#include "backends/cpu/target.h"
#include "backends/cpu/toolchain.h"
#include "sys/processor.h"

typedef struct cpu_instance {
    const kiln_host *host;
    kn_processor processor;
    cpu_target native; /* the machine's features, masked */
    uint32_t threads;
    cpu_tools tools;
    cpu_pool pool;
} cpu_instance;

/* The backend's table, for the list of built-in ones. */
extern const kiln_backend kn_backend_cpu;

#endif

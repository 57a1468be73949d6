/* What one opened cpu backend holds. */
#ifndef KILN_CPU_BACKEND_INSTANCE_H
#define KILN_CPU_BACKEND_INSTANCE_H

#include "kiln/sys/backend.h"

#include "apis/cpu/backend/pool.h"
#include "apis/cpu/backend/target.h"
#include "apis/cpu/backend/toolchain.h"
#include "sys/processor.h"

typedef struct cpu_instance {
    const kiln_host *host;
    kn_processor processor;
    cpu_target native; /* the machine's features, masked */
    uint32_t threads;
    cpu_tools tools;
    cpu_pool pool;
} cpu_instance;

#define KN_OPERATION(name) kn_cpu_##name
#include "hal/operations.h"

/* The backend's table, for the list of built-in ones. */
extern const kiln_backend kn_backend_cpu;

#endif

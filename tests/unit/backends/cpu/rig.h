/* An opened cpu backend without core: the host's functions of hal, a memo kept in memory, and short
 * ways to compile, load and run. */
#ifndef KILN_TESTS_CPU_RIG_H
#define KILN_TESTS_CPU_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/cpu.h"
#include "kiln/sys/backend.h"

#include "apis/cpu/backend/instance.h"
#include "hal/artifact.h"

/* What one memo holds; shared by rigs that play processes one after the other. */
typedef struct rig_memo {
    char *names[16];
    void *data[16];
    size_t sizes[16];
    size_t count, gets, puts;
} rig_memo;
void rig_memo_clear(rig_memo *memo);

typedef struct rig {
    kiln_host host;
    void *instance;
    kiln_probe_report report;
    kiln_target target; /* of the device */
    void *device, *queue;
    kiln_diag diag;
} rig;

void rig_open(rig *r, rig_memo *memo); /* memo may be NULL */
void rig_close(rig *r);
cpu_instance *rig_cpu(rig *r);

/* The facts of identify, a line each "name=value"; free(). Fails the test unless it succeeds. */
char *rig_identity(rig *r, const kiln_target *target);

kiln_source rig_source(const char *name, const char *text);
kiln_status rig_compile(rig *r, const kiln_source *source, kn_artifact *artifact);
kiln_status rig_load(rig *r, const kiln_source *source, const kn_artifact *artifact,
                     void **out_program);
/* Compiles and loads; fails the test unless both succeed. */
void *rig_build(rig *r, const kiln_source *source);

void *rig_buffer(rig *r, const void *data, size_t size);
void rig_read(rig *r, void *buffer, void *data, size_t size);

/* A script that stands for a compiler; its path, free(). */
char *rig_script(const char *dir, const char *name, const char *text);

/* Where what a load needs of an object ends; the table of sections, say, lies after it. */
size_t rig_loaded_size(const kn_artifact *artifact);

#endif

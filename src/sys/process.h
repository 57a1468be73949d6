/* Child processes: run a program with bounded time and output. Uses posix_spawn, never fork, and
 * gives no signal handler, no descriptor but 0-2, and its own process group to the child. Who this
 * process descends from is in ancestry.c. */
#ifndef KILN_SYS_PROCESS_H
#define KILN_SYS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

typedef struct kn_process_request {
    const char *const *argv;        /* NULL-terminated; argv[0] is an absolute path */
    const char *const *environment; /* extra "NAME=value", NULL-terminated; may be NULL */
    const char *dir;                /* working directory; NULL: the caller's */
    const void *input;              /* standard input; NULL: /dev/null */
    size_t input_size;
    size_t output_limit; /* bytes kept of each of stdout and stderr; 0: 1 MiB */
    uint64_t limit_ns;   /* 0: none; then the child's group is killed */
} kn_process_request;

typedef struct kn_process_result {
    int exit_code; /* -1 if it did not exit by itself */
    int signal;    /* that killed it, or 0 */
    bool timed_out;
    bool lost; /* with KILN_E_UNAVAILABLE: it ran, and another part of this program waited for it */
    char *out, *err; /* NUL-terminated, free(); NULL if nothing was written */
    size_t out_size, err_size;
} kn_process_result;

/* KILN_OK when the child ran and exited, whatever its status; KILN_E_UNAVAILABLE if it could not be
 * started. A child stuck in the kernel is abandoned after the limit plus one second
 * (result.timed_out). */
kiln_status kn_process_run(const kn_process_request *request, kn_process_result *out_result,
                           kiln_diag *diag);
void kn_process_result_deinit(kn_process_result *result);

/* Who this process is to the system's checks of rights: "uid:gid:group,group". Groups past the
 * 256th are left out. */
void kn_process_rights(char *text, size_t size);

/* The number of this process, and the reason a signal has ("SIGSEGV"). */
uint32_t kn_process_id(void);
const char *kn_process_signal_name(int signal);

/* This process, its parent, and so on up to the first or to `room`: the numbers, and how many there
 * are. Where the system does not say who the parent is, there is only this one. */
size_t kn_process_ancestry(uint32_t *out_ids, size_t room);
/* Differs between those who mean other processes by the same numbers (hosts, containers); 0 where
 * the system does not say. */
uint64_t kn_process_space(void);
/* Differs between those to whom a process has started at other times (time namespaces); 0 where the
 * system does not say. */
uint64_t kn_process_clock(void);

/* The number of this process and the lowest bits of its start time, which tell it from a later
 * process with that number; 0 where the system does not say. For processes of the same space and
 * clock. */
uint32_t kn_process_tag(void);
/* Whether a process has ended, or is stopped by a signal or a debugger. False where the system does
 * not say. */
bool kn_process_is_halted(uint32_t tag);

#endif

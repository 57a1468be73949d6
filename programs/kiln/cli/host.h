/* What the command needs of the operating system, in one place: files, directories, the clock, the
 * terminal. The library has its own (src/sys); a program may not look into that. */
#ifndef KILN_PROGRAM_HOST_H
#define KILN_PROGRAM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kiln/status.h>

#include "cli/pool.h"

/* Monotonic and wall-clock time in nanoseconds. */
uint64_t host_now(void);
int64_t host_wall(void);
void host_sleep(uint64_t ns);

/* Takes the places of standard streams that the command was started without, so that no file that
 * is opened later gets them: what is printed would be written into it. */
void host_keep_streams(void);
bool host_is_terminal(FILE *file);
/* Columns of the terminal, 80 if unknown. */
unsigned host_columns(void);

/* Reads a whole regular file of at most `limit` bytes into malloc'ed memory, with a NUL after it.
 * KILN_E_INVALID with a diag that names the file and the cause. */
kiln_status host_read_file(const char *path, size_t limit, char **out_data, size_t *out_size,
                           kiln_diag *diag);
/* The same for the first `most` bytes of a file of any length. */
kiln_status host_read_start(const char *path, size_t most, char **out_data, size_t *out_size,
                            kiln_diag *diag);
/* Writes a whole file, replacing it. KILN_E_IO. */
kiln_status host_write_file(const char *path, const void *data, size_t size, kiln_diag *diag);

/* A mutex; the library's progress and log calls come from its own threads. NULL: no memory. */
typedef struct host_mutex host_mutex; /* create/destroy */
host_mutex *host_mutex_create(void);
void host_mutex_destroy(host_mutex *mutex);
void host_mutex_lock(host_mutex *mutex);
void host_mutex_unlock(host_mutex *mutex);

/* `path`, with "./" before a bare name: the library takes only what has a directory for a path, and
 * looks for headers next to it. Returns `buffer` or `path`. */
const char *host_spell(const char *path, char *buffer, size_t size);
/* The path from the root on; NULL: no memory, or no current directory. */
char *host_absolute(cli_pool *pool, const char *path);
bool host_is_folder(const char *path);
bool host_exists(const char *path);
/* The directory part of a path ("." if it has none), and the name after it. */
char *host_folder_of(cli_pool *pool, const char *path);
const char *host_name_of(const char *path);
/* `path` seen from `folder`: itself if it is absolute. */
char *host_join(cli_pool *pool, const char *folder, const char *path);

/* Bytes and files below a directory, links not followed. False if it is not there or not
 * readable. */
bool host_folder_size(const char *path, uint64_t *out_bytes, uint64_t *out_files);
bool host_is_writable(const char *path);

/* From now on Ctrl-C and its like are passed on to the programs that the library has started, and
 * then end this one as usual. What is ignored stays ignored. */
void host_pass_on_interrupts(void);
/* Such a signal has come: whatever fails now need not be reported. */
bool host_is_ending(void);
/* Then does not return: the exit code is the signal's. */
void host_end_if_interrupted(void);

#endif

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
/* Whether it is a terminal that obeys escape sequences; makes it one where that is a setting. */
bool host_can_draw(FILE *file);
/* Of a stream that could not be written: it is a pipe that nobody reads any more. False where a
 * signal ends a program for that. */
bool host_reader_is_gone(FILE *file);
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

/* Threads. NULL: none can be started; join waits for its end and gives it back. */
typedef struct host_thread host_thread; /* create/join */
typedef void host_thread_fn(void *user);
host_thread *host_thread_create(host_thread_fn *run, void *user);
void host_thread_join(host_thread *thread);
/* Of the machine, at least one; and its memory in bytes, 0 if unknown. */
size_t host_processors(void);
uint64_t host_memory(void);

/* An environment variable as UTF-8; NULL: unset, or no memory. */
const char *host_variable(cli_pool *pool, const char *name);
/* Sets one, or removes it (`value` NULL); false: it could not. While there is one thread. */
bool host_set_variable(const char *name, const char *value);
/* Every "NAME=value"; the text lives for the call. */
void host_each_variable(void (*visit)(void *user, const char *variable), void *user);

/* A file to print to, for text that is wanted in one piece. NULL: out of memory or of disk. When
 * all is printed, finish() gives *text, malloc'ed; false: something could not be kept. The file is
 * closed as any other is, and *text freed, in either case. */
FILE *host_text_open(char **text, size_t *size);
bool host_text_finish(FILE *file, char **text, size_t *size);

/* What stands between the paths of a list. */
extern const char host_list_separator;
extern const bool host_is_windows;
bool host_is_absolute(const char *path);
/* `path`, with "./" before a bare name: the library takes only what has a directory for a path, and
 * looks for headers next to it. Returns `buffer` or `path`. */
const char *host_spell(const char *path, char *buffer, size_t size);
/* The path from the root on; NULL: no memory, or no current directory. */
char *host_absolute(cli_pool *pool, const char *path);
bool host_is_dir(const char *path);
bool host_exists(const char *path);
/* The directory part of a path ("." if it has none), and the name after it. */
char *host_dir_of(cli_pool *pool, const char *path);
const char *host_name_of(const char *path);
/* Joins `dir` and `path`; an absolute path stays as it is. */
char *host_join(cli_pool *pool, const char *dir, const char *path);

/* Bytes and files below a directory, links not followed. False if it is not there or not
 * readable. */
bool host_dir_size(const char *path, uint64_t *out_bytes, uint64_t *out_files);
bool host_is_writable(const char *path);

/* Forks, before any thread or file is open. The parent waits for the child; if a signal asks the
 * child to end (SIGINT, SIGTERM), the parent ends by it too. HOST_WHOLE: fork isn't available.
 * host_share: zeroed memory that both processes see; NULL: not available. */
typedef enum host_side { HOST_WHOLE, HOST_CHILD, HOST_PARENT } host_side;
host_side host_split(int *out_code, int *out_signal);
void *host_share(size_t size);
/* "Aborted" for SIGABRT; "it exited" for 0. */
const char *host_signal_name(int number);

/* From now on Ctrl-C and its like are passed on to the programs that the library has started, and
 * then end this one as usual. What is ignored stays ignored. */
void host_pass_on_interrupts(void);
/* Such a signal has come: whatever fails now need not be reported. */
bool host_is_ending(void);
/* Then does not return: the exit code is the signal's. */
void host_end_if_interrupted(void);

#endif

/* The C compiler of this machine, identified by what it is: the files that take part in a compile
 * (driver, cc1, assembler, linker, and the libraries these load) with their build ids, what the
 * compiler calls itself, and the directories it searches for headers.
 *
 * Asking the compiler costs a dozen child processes, so the answer is kept in the process and,
 * through the host's memo, for later ones. It is believed only as long as every file it was made
 * from has the same size, times and inode, every program found on $PATH is still the first of its
 * name there, and nothing that was missing has appeared where the compiler looks. */
#ifndef KILN_CPU_BACKEND_TOOLCHAIN_H
#define KILN_CPU_BACKEND_TOOLCHAIN_H

#include "kiln/sys/backend.h"

#include "apis/cpu/backend/ask.h"
#include "base/strbuf.h"
#include "sys/file.h"
#include "sys/processor.h"
#include "sys/thread.h"

enum {
    CPU_TOOL_LIMIT = 64, /* files of one toolchain */
    CPU_DIR_LIMIT = 64,
    CPU_ABSENT_LIMIT = 192,
};

typedef struct cpu_tool {
    char *name;          /* "cc1"; of a library its file's name */
    char *path;          /* absolute */
    char id[192];        /* kn_cpu_object_identify */
    bool on_path;        /* was found by its name on $PATH */
    kn_file_facts facts; /* links followed */
} cpu_tool;

typedef struct cpu_toolchain {
    char *question; /* compiler's path and the environment: what this is the answer to */
    char *version;  /* "gcc version 12.2.0 (Debian ...)" */
    char *machine;  /* "x86_64-linux-gnu" */
    cpu_tool tools[CPU_TOOL_LIMIT]; /* the driver first */
    size_t tool_count;
    char *dirs[CPU_DIR_LIMIT]; /* searched for <headers> */
    size_t dir_count;
    char
        *absent[CPU_ABSENT_LIMIT]; /* files and directories that would be used if they were there */
    size_t absent_count;
    bool indirect; /* it, or a program of it, starts others that it does not name: not to be cached
                    */
    struct cpu_toolchain *older; /* kept: their directories may be in use */
} cpu_toolchain;

/* What finds and keeps the toolchain; part of the instance. */
typedef struct cpu_tools {
    const kiln_host *host;
    kn_mutex mutex;
    cpu_toolchain *current;
    uint32_t asked; /* times the compiler itself was asked: for tests */
} cpu_tools;

void kn_cpu_tools_init(cpu_tools *tools, const kiln_host *host);
void kn_cpu_tools_deinit(cpu_tools *tools);

/* The compiler's absolute path (KILN_CC, then cc, gcc, clang on $PATH), malloc'ed.
 * KILN_E_UNAVAILABLE says what to install or to set. */
kiln_status kn_cpu_compiler_find(char **out_path, kiln_diag *diag);

/* The toolchain as it is now. Borrowed until kn_cpu_tools_deinit. KILN_E_UNAVAILABLE if there is
 * none, or it does not answer as a C compiler does. */
kiln_status kn_cpu_toolchain_get(cpu_tools *tools, const cpu_toolchain **out_toolchain,
                                 kiln_diag *diag);
/* Reads the memo of an earlier process, if there is one; asks nobody and checks nothing. For when
 * the device is opened: each build checks it all the same. */
void kn_cpu_toolchain_recall(cpu_tools *tools);
/* The path of what is not as it was when the toolchain was asked; NULL: nothing has changed. A few
 * microseconds. */
const char *kn_cpu_toolchain_change(const cpu_toolchain *toolchain);

/* --- made of toolchain.c, probe.c (asks), places.c, toolchain_memo.c (text) ------------------- */

cpu_toolchain *kn_cpu_toolchain_create(const char *question);
void kn_cpu_toolchain_destroy(cpu_toolchain *toolchain);
/* Adds a file once; false if it cannot be identified or there is no room. */
bool kn_cpu_toolchain_add(cpu_toolchain *toolchain, const char *name, const char *path,
                          bool on_path, bool *out_dynamic);
/* Adds the libraries that the program at `path` loads, the system's own apart (libraries.c, on
 * Windows libraries_pe.c); children run in `dir`. Sets *lost if another part of this program took
 * an answer. */
bool kn_cpu_libraries_add(cpu_toolchain *toolchain, const char *path, const char *dir, bool *lost);
/* The same in two steps, of which the first can be taken for several programs at once: the question
 * that the system's loader answers (false: it need not be asked, there are none), and the answer,
 * which is changed. */
bool kn_cpu_libraries_question(const char *path, cpu_ask *out_ask);
bool kn_cpu_libraries_take(cpu_toolchain *toolchain, cpu_ask *ask);
/* Adds a copy of a text to one of its lists; false if memory or room is short. */
bool kn_cpu_list_add(char **list, size_t *count, size_t limit, const char *text);
/* Whether a file has not been changed or replaced between two looks at it. */
bool kn_cpu_same_file(const kn_file_facts *a, const kn_file_facts *b);
/* An empty file, by the name that the compiler knows. */
extern const char kn_cpu_null_device[];
/* Cuts the next line off `*text`; NULL at the end. */
char *kn_cpu_next_line(char **text);
/* Asks the compiler at `path`. */
kiln_status kn_cpu_toolchain_probe(const char *path, cpu_toolchain *toolchain, kiln_diag *diag);
/* Adds what is not there; false if memory or room is short. */
bool kn_cpu_toolchain_miss(cpu_toolchain *toolchain, const char *path);
/* Adds what the compiler would take if it were there: by its answer to -print-search-dirs, which is
 * changed, and next to its driver. False if memory or room is short. */
bool kn_cpu_places_watch(cpu_toolchain *toolchain, char *text);
bool kn_cpu_places_watch_driver(cpu_toolchain *toolchain, const char *driver);
/* The text form; decode makes a toolchain or NULL. Encode is false for what the text cannot hold.
 */
bool kn_cpu_toolchain_encode(const cpu_toolchain *toolchain, kn_strbuf *text);
cpu_toolchain *kn_cpu_toolchain_decode(const char *question, const char *text, size_t size);

#endif

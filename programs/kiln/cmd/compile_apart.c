/* See compile_apart.h. */
#include "cmd/compile_apart.h"

#include <stdatomic.h>

#include "cli/host.h"

typedef enum file_state { FILE_WAITS, FILE_BEGUN, FILE_FAILED, FILE_DONE, FILE_CRASHED } file_state;

/* In memory that the processes share. */
typedef struct shared_file {
    atomic_int state; /* file_state */
    int signal;       /* that ended the process which compiled it; 0: it exited */
    compile_facts facts;
} shared_file;

struct compile_apart {
    size_t count;
    shared_file *files;
    bool slow;
};

compile_apart *compile_apart_create(cli_pool *pool, size_t count)
{
    compile_apart *apart = pool_alloc(pool, sizeof(*apart));
    shared_file *files = apart != NULL ? host_share(count * sizeof(*files)) : NULL;
    if (files == NULL) {
        return NULL;
    }
    *apart = (compile_apart){.count = count, .files = files};
    return apart;
}

bool compile_apart_is_slow(const compile_apart *apart)
{
    return apart != NULL && apart->slow;
}

/* After the end of a process: whether another one has something to find out. */
static bool judge_end(compile_apart *apart, int signal)
{
    size_t begun = 0, last = 0;
    for (size_t i = 0; i < apart->count; i++) {
        if (atomic_load(&apart->files[i].state) == FILE_BEGUN) {
            begun++;
            last = i;
        }
    }
    if (begun == 1) {
        apart->files[last].signal = signal;
        atomic_store(&apart->files[last].state, FILE_CRASHED);
    }
    for (size_t i = 0; begun > 1 && i < apart->count; i++) {
        if (atomic_load(&apart->files[i].state) == FILE_BEGUN) {
            atomic_store(&apart->files[i].state, FILE_WAITS);
        }
    }
    apart->slow = apart->slow || begun > 1;
    return begun > 0;
}

bool compile_apart_watch(compile_apart *apart, const cmd_context *context, exit_code *out_code)
{
    while (apart != NULL) {
        int code = 0, signal = 0;
        if (host_split(&code, &signal) != HOST_PARENT) {
            return false;
        }
        *out_code = (exit_code)code;
        if (!judge_end(apart, signal)) {
            if (signal != 0) {
                console_say(context->console, "compile: its process ended by %s (run it again)",
                            host_signal_name(signal));
                *out_code = EXIT_TROUBLE;
            }
            return true;
        }
    }
    return false;
}

compile_turn compile_apart_begin(compile_apart *apart, size_t index, const char *file,
                                 compile_facts *out_facts, kiln_diag *diag)
{
    static const char fix[] = "report it to the maintainers of the driver or compiler";
    shared_file *shared = apart != NULL ? &apart->files[index] : NULL;
    const int state = shared != NULL ? atomic_load(&shared->state) : FILE_WAITS;
    if (state == FILE_DONE) {
        *out_facts = shared->facts;
        return COMPILE_DONE;
    }
    if (state == FILE_CRASHED) {
        (void)kiln_diag_set(diag, KILN_E_COMPILE, fix, file, "compiling it ended the process: %s",
                            host_signal_name(shared->signal));
        return COMPILE_CRASHED;
    }
    if (shared != NULL) {
        atomic_store(&shared->state, FILE_BEGUN);
    }
    return COMPILE_NOW;
}

void compile_apart_end(compile_apart *apart, size_t index, const compile_facts *facts)
{
    if (apart != NULL) {
        apart->files[index].facts = facts != NULL ? *facts : (compile_facts){0};
        atomic_store(&apart->files[index].state, facts != NULL ? FILE_DONE : FILE_FAILED);
    }
}

/* A request to run a program, in the form that CreateProcessW takes. For src/sys/windows alone. */
#ifndef KILN_SYS_WINDOWS_COMMAND_H
#define KILN_SYS_WINDOWS_COMMAND_H

#include <stdbool.h>
#include <windows.h>

#include "base/text.h"
#include "sys/process.h"

typedef struct kn_command {
    wchar_t *program;
    wchar_t *line;        /* all arguments, quoted as the C library takes them apart */
    wchar_t *environment; /* this process's with the request's over it; NULL: unchanged */
    wchar_t *dir;         /* NULL: the current one */
} kn_command;

/* False leaves the last error and nothing to deinit. */
bool kn_command_init(kn_command *command, const kn_process_request *request);
void kn_command_deinit(kn_command *command);

#endif

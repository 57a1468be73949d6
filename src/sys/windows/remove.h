/* Removing and renaming through handles. For src/sys/windows alone. */
#ifndef KILN_SYS_WINDOWS_REMOVE_H
#define KILN_SYS_WINDOWS_REMOVE_H

#include <stdbool.h>
#include <windows.h>

/* Takes the name of an open file (DELETE access) away: at once where the file system knows POSIX
 * removal, else with the last handle to it. False leaves the last error. */
bool kn_remove_open(HANDLE handle);

/* Gives an open file (DELETE access) another name, in the place of what has that name: also of a
 * file that others have open, where the file system knows POSIX renaming. False leaves the last
 * error; KN_RENAME_UNKNOWN is that of a system without such a call. */
#define KN_RENAME_UNKNOWN ERROR_CALL_NOT_IMPLEMENTED
bool kn_rename_open(HANDLE handle, const wchar_t *to);

#endif

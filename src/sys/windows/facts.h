/* What the system says of an open file, as kiln keeps it. For src/sys/windows alone. */
#ifndef KILN_SYS_WINDOWS_FACTS_H
#define KILN_SYS_WINDOWS_FACTS_H

#include <stdbool.h>
#include <windows.h>

#include "sys/file.h"

/* False, and the last error, if it does not say. There are no permission bits here: `mode` is what
 * kiln would have given it (0600, directories 0700), `owner` 0; who may write is a question for
 * access.h. */
bool kn_file_take_facts(HANDLE handle, kn_file_facts *out);

#endif

/* Environment variables as they are; see env.h. */
#include <stdlib.h>

#include "sys/env.h"

extern char **environ; /* POSIX names it, and no header of C's does */

const char *kn_env_get(const char *name)
{
    return getenv(name);
}

void kn_env_each(kn_env_visit *visit, void *user)
{
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        visit(user, *at);
    }
}

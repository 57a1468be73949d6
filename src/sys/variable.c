/* Environment variables as they are; see env.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/env.h"

/* A program that runs with another user's rights does not do what its caller's variables say. */
const char *kn_env_shell(const char *name)
{
#ifdef __GLIBC__
    return secure_getenv(name);
#else
    return issetugid() == 0 ? getenv(name) : NULL;
#endif
}

bool kn_env_may_have(const char prefix[2], const char *third)
{
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        const char *name = *at;
        if (name[0] == prefix[0] && name[1] == prefix[1] && strchr(third, name[2]) != NULL) {
            return true;
        }
    }
    return false;
}

void kn_env_each(kn_env_visit *visit, void *user)
{
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        visit(user, *at);
    }
}

bool kn_env_set(const char *name, const char *value)
{
    return (value != NULL ? setenv(name, value, 1) : unsetenv(name)) == 0;
}

kn_env_kept kn_env_keep(const char *name)
{
    const char *at = getenv(name);
    return (kn_env_kept){name, at, at != NULL ? kn_text_copy(at) : NULL};
}

void kn_env_mend(kn_env_kept *kept)
{
    char *now = getenv(kept->name);
    /* Another place is another value. Nothing but the ends of its pieces was written in this one.
     */
    if (now != NULL && now == kept->at && kept->copy != NULL && strcmp(now, kept->copy) != 0) {
        memcpy(now, kept->copy, strlen(kept->copy) + 1);
    }
    free(kept->copy);
    kept->copy = NULL;
}

/* The names of temporaries, the same on every system: so that a sweep does not take a file that
 * another program has put there. */
#include <string.h>

#include "sys/publish.h"

#define DIGITS "0123456789abcdef"
#define RANDOM_DIGITS 16

/* The length of the hexadecimal number at the start of `text`. */
static size_t digits_at(const char *text)
{
    return strspn(text, DIGITS);
}

bool kn_publish_is_temporary(const char *name)
{
    const size_t process = digits_at(name);
    if (process == RANDOM_DIGITS && strcmp(name + process, ".old") == 0) {
        return true; /* set aside by Windows' publish */
    }
    if (process == 0 || name[process] != '-') {
        return false;
    }
    name += process + 1;
    const size_t counter = digits_at(name);
    if (counter == 0 || name[counter] != '-') {
        return false;
    }
    name += counter + 1;
    return digits_at(name) == RANDOM_DIGITS && name[RANDOM_DIGITS] == '\0';
}

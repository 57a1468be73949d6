/* The names of temporaries, the same on every system: so that a sweep does not take a file that
 * another program has put there. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/publish.h"
#include "sys/random.h"

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

/* Process, counter, and random bits for processes that share a directory but not their numbers
 * (containers, hosts). */
char *kn_publish_name_temporary(const char *tmp_dir)
{
    static _Atomic uint64_t counter;
    char name[64];
    kn_text_putf(name, sizeof name, "%" PRIx64 "-%" PRIx64 "-%016" PRIx64,
                 (uint64_t)kn_process_id(), (uint64_t)atomic_fetch_add(&counter, 1),
                 kn_random_u64());
    return kn_path_join(tmp_dir, name);
}

int kn_publish_make_dir_of(const char *path)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *dir = kn_path_dir(path);
    const kiln_status status =
        dir != NULL ? kn_file_make_dir(dir, &diag) : kn_fail_nomem(&diag, "cannot publish", path);
    const int error = status == KILN_OK ? 0 : (int)diag.vendor_code;
    free(dir);
    kiln_diag_clear(&diag);
    return error;
}

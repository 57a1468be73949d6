/* A file that claims to be an ELF program: the libraries that it names are read within the bounds
 * of what it says, and the same when asked again. */
#include <unistd.h>

#include "apis/cpu/backend/object.h"
#include "fuzz/fuzz.h"

typedef struct reading {
    size_t names, bytes;
} reading;

static bool count_name(void *user, const char *name)
{
    reading *r = user;
    r->names++;
    r->bytes += strlen(name); /* each of them, for a sanitizer */
    return r->names < 1000;
}

static bool read_names(const char *path, reading *out)
{
    kn_file *file = NULL;
    *out = (reading){0, 0};
    if (kn_file_open(path, false, &file, NULL) != KILN_OK) {
        abort();
    }
    const bool good = kn_cpu_object_each_needed(file, count_name, out);
    kn_file_close(file);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz_needed.XXXXXX";
    const int fd = mkstemp(path);
    reading first;
    reading second;
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0) {
        abort();
    }
    const bool good = read_names(path, &first);
    const bool again = read_names(path, &second);
    if (unlink(path) != 0 || again != good || memcmp(&first, &second, sizeof(first)) != 0) {
        abort();
    }
    return 0;
}

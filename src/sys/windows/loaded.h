/* A library that is open; for src/sys/windows alone. */
#ifndef KILN_SYS_WINDOWS_LOADED_H
#define KILN_SYS_WINDOWS_LOADED_H

#include <stdbool.h>
#include <windows.h>

struct kn_dylib {
    HMODULE handle;
    char *path;
    bool temporary; /* the file is ours, and goes with the library */
};

#endif

/* A C compiler for Wine: hands its directory and command line to bridge.sh, which runs Debian's
 * cross compiler on the system below, and gives back what that printed and its exit code. Files in
 * %KILN_CC_BRIDGE%.
 */
#include <fcntl.h>
#include <io.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { PAUSE_MS = 5, PAUSES = 6000 };

static bool make_path(char *path, size_t size, const char *kind)
{
    char dir[1024];
    const DWORD length = GetEnvironmentVariableA("KILN_CC_BRIDGE", dir, sizeof dir);
    return length > 0 && length < sizeof dir &&
           snprintf(path, size, "%s/%lu.%s", dir, GetCurrentProcessId(), kind) < (int)size;
}

static void copy_file(const char *kind, FILE *to)
{
    char path[1200];
    char block[4096];
    FILE *from = make_path(path, sizeof path, kind) ? fopen(path, "rb") : NULL;
    for (size_t n = 0; from != NULL && (n = fread(block, 1, sizeof block, from)) > 0;) {
        (void)fwrite(block, 1, n, to);
    }
    if (from != NULL) {
        (void)fclose(from);
        (void)remove(path);
    }
}

static bool ask(int argc, char **argv)
{
    char asking[1200];
    char asked[1200];
    FILE *file =
        make_path(asking, sizeof asking, "asking") && make_path(asked, sizeof asked, "asked")
            ? fopen(asking, "wb")
            : NULL;
    char dir[1024];
    const DWORD length = GetCurrentDirectoryA(sizeof dir, dir);
    for (char *at = dir; length > 0 && *at != '\0'; at++) {
        *at = *at == '\\' ? '/' : *at;
    }
    if (file != NULL && length > 0) {
        (void)fprintf(file, "%s\n", dir);
    }
    for (int i = 1; file != NULL && i < argc; i++) {
        (void)fprintf(file, "%s\n", argv[i]);
    }
    return file != NULL && fclose(file) == 0 && rename(asking, asked) == 0;
}

int main(int argc, char **argv)
{
    char path[1200];
    int code = 99;
    (void)_setmode(1, _O_BINARY);
    (void)_setmode(2, _O_BINARY);
    if (!ask(argc, argv) || !make_path(path, sizeof path, "done")) {
        return code;
    }
    for (int i = 0; i < PAUSES; i++) {
        FILE *file = fopen(path, "rb");
        if (file != NULL) {
            const bool known = fscanf(file, "%d", &code) == 1;
            (void)fclose(file);
            (void)remove(path);
            copy_file("out", stdout);
            copy_file("err", stderr);
            return known ? code : 98;
        }
        Sleep(PAUSE_MS);
    }
    return 97;
}

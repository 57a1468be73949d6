/* kiln-nvrtc NVRTC BUILTINS: one compile, asked on standard input and answered on standard output.
 *
 * NVRTC takes a precompiled header only at the addresses at which it was made, so this process
 * starts itself again without address randomisation and with a fixed stack limit, which the kernel
 * derives the addresses from; for the same reason nothing is allocated before NVRTC is loaded.
 * Where that is refused (seccomp) it compiles all the same, without precompiled headers.
 * Exit: 0 an answer was written, 1 not, 2 wrong use. */
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

enum { REQUEST_MAX = 64 << 20 };

static char bytes[REQUEST_MAX + 1];
static request asked;

/* True if the addresses are fixed. */
static bool fix_addresses(char **argv)
{
    static const char again[] = "KILN_NVRTC_AGAIN";
    int now = personality(0xffffffff);
    if (now != -1 && (now & ADDR_NO_RANDOMIZE) != 0 && getenv(again) != NULL) {
        return true;
    }
    struct rlimit stack;
    if (getenv(again) != NULL || now == -1 ||
        personality((unsigned long)now | ADDR_NO_RANDOMIZE) == -1 ||
        getrlimit(RLIMIT_STACK, &stack) != 0) {
        return false;
    }
    stack.rlim_cur = (rlim_t)8 << 20;
    if ((stack.rlim_max != RLIM_INFINITY && stack.rlim_max < stack.rlim_cur) ||
        setrlimit(RLIMIT_STACK, &stack) != 0 || setenv(again, "1", 1) != 0) {
        return false;
    }
    (void)unsetenv("LD_PRELOAD");
    (void)execv("/proc/self/exe", argv);
    return false;
}

static size_t read_all(void)
{
    size_t size = 0;
    while (size < REQUEST_MAX) {
        ssize_t got = read(STDIN_FILENO, bytes + size, REQUEST_MAX - size);
        if (got <= 0) {
            return got == 0 ? size : 0;
        }
        size += (size_t)got;
    }
    return 0; /* too long */
}

static uint32_t length_at(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool take_field(char letter, char *body)
{
    switch (letter) {
    case 'V':
        return strcmp(body, "1") == 0;
    case 'S':
        asked.source = body;
        return true;
    case 'N':
        asked.name = body;
        return true;
    case 'O':
        asked.options[asked.option_count] = body;
        return asked.option_count++ < MAX_OPTIONS;
    case 'E':
        asked.expressions[asked.expression_count] = body;
        return ++asked.expression_count < MAX_EXPRESSIONS;
    case 'K':
        asked.kind = body[0];
        return true;
    case 'P':
        asked.pch = body;
        return true;
    case 'T':
        asked.leading = strtoul(body, NULL, 10);
        return true;
    case 'F':
        asked.files[asked.file_count] = body;
        return ++asked.file_count < MAX_FILES;
    default:
        return false;
    }
}

static bool parse_request(size_t size)
{
    size_t at = 0;
    while (at < size) {
        if (size - at < 6) {
            return false;
        }
        size_t length = length_at(bytes + at + 1);
        if (size - at - 6 < length || bytes[at + 5 + length] != '\0' ||
            !take_field(bytes[at], bytes + at + 5)) {
            return false;
        }
        at += length + 6;
    }
    return asked.source != NULL && asked.name != NULL && asked.kind != '\0' &&
           asked.leading <= strlen(asked.source);
}

int main(int argc, char **argv)
{
    char path[4096] = "";
    bool refused = false;
    if (argc != 3) {
        (void)fprintf(stderr, "usage: kiln-nvrtc NVRTC BUILTINS (started by kiln only)\n");
        return 2;
    }
    const bool fixed = fix_addresses(argv);
    asked.nvrtc = argv[1];
    asked.builtins = argv[2];
    if (!parse_request(read_all())) {
        return 2;
    }
    const pch_use use = fixed && asked.pch != NULL ? precompile(&asked, path) : PCH_NONE;
    const bool good = compile(&asked, use, path, true, &refused);
    if (refused) {
        (void)unlink(path); /* made on another kernel, say: the next compile makes it again */
    }
    return good ? 0 : 1;
}

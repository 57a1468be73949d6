/* fake_ptxas INPUT -o OUTPUT [OPTION]...: in the place of CUDA's ptxas. OUTPUT is a line of its own
 * and the input; each compile is a line in $FAKEPTXAS_LOG. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool copy_file(const char *from, const char *to)
{
    char bytes[4096];
    size_t size = 0;
    FILE *input = fopen(from, "rb");
    FILE *output = input != NULL ? fopen(to, "wb") : NULL;
    bool good = output != NULL && fputs("\177ELF fake machine code\n", output) >= 0;
    while (good && (size = fread(bytes, 1, sizeof(bytes), input)) > 0) {
        good = fwrite(bytes, 1, size, output) == size;
    }
    if (input != NULL) {
        good = fclose(input) == 0 && good;
    }
    return output != NULL && fclose(output) == 0 && good;
}

static bool write_line(const char *path)
{
    FILE *log = path != NULL ? fopen(path, "a") : NULL;
    const bool written = log != NULL && fputs("compile\n", log) >= 0;
    return path == NULL || (log != NULL && fclose(log) == 0 && written);
}

int main(int argc, char **argv)
{
    const char *input = NULL;
    const char *output = "elf.o";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0) {
            return puts("ptxas: fake, release 1.0") < 0;
        }
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            output = argv[++i];
        } else if (argv[i][0] != '-') {
            input = argv[i];
        }
    }
    if (input == NULL || !copy_file(input, output)) {
        (void)fprintf(stderr, "ptxas fatal   : No input file\n");
        return 255;
    }
    return !write_line(getenv("FAKEPTXAS_LOG"));
}

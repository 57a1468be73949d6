/* Where Windows starts the command: main() gets its arguments as UTF-8, whatever the code page. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/exit.h"
#include "windows/wide.h"

/* No argument is a pattern that the C library replaces by names of files. */
extern int _dowildcard;
int _dowildcard = 0;

int main(int argc, char **argv);
int wmain(int argc, wchar_t **argv);

int wmain(int argc, wchar_t **argv)
{
    char **narrow = calloc((size_t)argc + 1, sizeof(*narrow));
    int code = EXIT_TROUBLE;
    int made = 0;
    while (narrow != NULL && made < argc && (narrow[made] = narrow_text(argv[made])) != NULL) {
        made++;
    }
    if (narrow != NULL && made == argc) {
        code = main(argc, narrow);
    } else {
        (void)fputs("kiln: out of memory\n", stderr);
    }
    for (int i = 0; i < made; i++) {
        free(narrow[i]);
    }
    free(narrow);
    return code;
}

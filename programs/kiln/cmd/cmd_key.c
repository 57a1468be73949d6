/* kiln key: makes keys to sign entries with, and shows their public half. */
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/remote.h>

#include "cli/cmd.h"

typedef struct key_options {
    bool unused; /* there are none */
} key_options;

static const opt_spec specs[] = {OPT_END};

static exit_code run_key(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const char *action = arguments->items[0], *path = arguments->items[1];
    char line[KILN_PUBLIC_KEY_TEXT_SIZE];
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status;
    (void)fields;
    if (strcmp(action, "generate") == 0) {
        status = kiln_signing_key_generate(path, line, &diag);
    } else if (strcmp(action, "show") == 0) {
        status = kiln_signing_key_show(path, line, &diag);
    } else {
        status = kiln_diag_set(&diag, KILN_E_INVALID, "give generate or show", "",
                               "kiln key has no action \"%.60s\"", action);
    }
    if (status != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    (void)printf("%s\n", line);
    return EXIT_FINE;
}

const cli_command cmd_key = {
    .name = "key",
    .usage = "generate|show FILE",
    .summary = "Makes keys to sign what goes to remotes, and shows their public half",
    .details =
        "generate  writes a private key to FILE, which must be new; KILN_SIGNING_KEY=FILE signs\n"
        "          with it\n"
        "show      reads FILE\n\n"
        "Both print the public key: a line for the file that KILN_TRUSTED_KEYS names.",
    .options = specs,
    .options_size = sizeof(key_options),
    .min_arguments = 2,
    .max_arguments = 2,
    .run = run_key,
};

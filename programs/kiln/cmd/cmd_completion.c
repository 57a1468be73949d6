/* kiln completion: what shells need to complete the command line, made of the commands' own tables,
 * so that it cannot say anything else than --help. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/probe.h>

#include "cli/cmd.h"
#include "cmd/completion_words.h"

static const opt_spec specs[] = {OPT_END};

/* --- what the tables say ---------------------------------------------------------------------- */

static bool is_end(const opt_spec *spec)
{
    return spec->name == NULL && spec->letter == 0;
}

static bool is_named(const opt_spec *spec, const char *name)
{
    return spec->name != NULL && strcmp(spec->name, name) == 0;
}

static bool takes_path(const opt_spec *spec)
{
    return spec->value != NULL &&
           (strcmp(spec->value, "FILE") == 0 || strcmp(spec->value, "PATH") == 0);
}

static bool takes_folder(const opt_spec *spec)
{
    return spec->value != NULL && strcmp(spec->value, "DIR") == 0;
}

/* What the words after an option come from: a list that never changes, or what `kiln completion
 * WORDS` prints at the time; neither for most options. */
typedef struct value_words {
    const char *fixed;
    const char *asked;
} value_words;

static value_words words_of(const cli_command *command, const opt_spec *spec)
{
    static const char *const compilers[] = {"compile", "explain", "warm"};
    if (is_named(spec, "language")) {
        return (value_words){NULL, "languages"};
    }
    if (is_named(spec, "arg")) {
        return (value_words){"value: in: out: inout: local:", NULL};
    }
    if (is_named(spec, "device")) {
        return (value_words){NULL, "devices"};
    }
    if (is_named(spec, "target")) {
        for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]); i++) {
            if (strcmp(command->name, compilers[i]) == 0) {
                return (value_words){NULL, "targets"};
            }
        }
        return (value_words){NULL, "stored"};
    }
    return (value_words){NULL, NULL};
}

static bool takes_keys(const cli_command *command)
{
    return strstr(command->usage, "KEY") != NULL;
}

/* The length of the list "create|add|..." that the command's usage begins with; 0 if the first
 * argument is something else. */
static size_t verbs_length(const cli_command *command)
{
    size_t length = strcspn(command->usage, " ");
    for (size_t i = 0; i < length; i++) {
        if (islower((unsigned char)command->usage[i]) == 0 && command->usage[i] != '|') {
            return 0;
        }
    }
    return length;
}

static bool takes_commands(const cli_command *command)
{
    return strstr(command->usage, "COMMAND") != NULL;
}

static bool takes_files(const cli_command *command)
{
    return strstr(command->usage, "FILE") != NULL || strstr(command->usage, "MANIFEST") != NULL;
}

/* --- printing --------------------------------------------------------------------------------- */

/* The verbs, with blanks between them. */
static void put_verbs(const cli_command *command)
{
    size_t length = verbs_length(command);
    for (size_t i = 0; i < length; i++) {
        (void)putchar(command->usage[i] == '|' ? ' ' : command->usage[i]);
    }
}

static void put_backends(void)
{
    for (size_t i = 0; kiln_backend_name(i) != NULL; i++) {
        if (strcmp(kiln_backend_name(i), "fake") != 0) { /* for tests of kiln itself */
            (void)printf("%s%s", i > 0 ? " " : "", kiln_backend_name(i));
        }
    }
}

static void put_commands(void)
{
    for (const cli_command *const *command = cmd_list(); *command != NULL; command++) {
        (void)printf("%s%s", command == cmd_list() ? "" : " ", (*command)->name);
    }
}

/* Text inside single quotes; `escaped` gets a backslash before it. */
static void put_text(const char *text, const char *escaped, const char *quote)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)fputs(quote, stdout);
            continue;
        }
        if (strchr(escaped, *text) != NULL) {
            (void)putchar('\\');
        }
        (void)putchar(*text);
    }
}

/* --- bash ------------------------------------------------------------------------------------- */

static void bash_names(const opt_spec *spec, const char *command, const char *between)
{
    if (spec->name != NULL) {
        (void)printf("%s%s%s", command, opt_dashes(spec), spec->name);
    }
    if (spec->letter != 0) {
        (void)printf("%s%s-%c", spec->name != NULL ? between : "", command, spec->letter);
    }
}

/* What may follow an option that takes a value. */
static void bash_value(const cli_command *command, const opt_spec *spec)
{
    char before[64];
    (void)snprintf(before, sizeof(before), "%s,", command->name);
    (void)printf("    ");
    bash_names(spec, before, " | ");
    (void)printf(") ");
    const value_words words = words_of(command, spec);
    if (is_named(spec, "backend")) {
        (void)printf("words='");
        put_backends();
        (void)printf("'");
    } else if (words.fixed != NULL) {
        (void)printf("words='%s'", words.fixed);
    } else if (words.asked != NULL) {
        (void)printf("words=$(\"$1\" completion %s 2>/dev/null)", words.asked);
    } else {
        (void)printf("%s", takes_path(spec) ? "files=-f" : takes_folder(spec) ? "files=-d" : ":");
    }
    (void)puts(" ;;");
}

static void bash_command(const cli_command *command)
{
    (void)printf("    %s)\n        options='", command->name);
    for (const opt_spec *spec = command->options; !is_end(spec); spec++) {
        bash_names(spec, "", " ");
        (void)putchar(' ');
    }
    (void)printf("--color --help -h'\n");
    if (verbs_length(command) > 0) {
        (void)printf("        [[ $COMP_CWORD = 2 ]] && words='");
        put_verbs(command);
        (void)puts("'");
    } else if (takes_commands(command)) {
        (void)printf("        words='");
        put_commands();
        (void)puts("'");
    }
    if (takes_keys(command)) {
        (void)printf("        [[ $word = -* || ($COMP_CWORD = 2 && -n $words) ]] ||\n"
                     "            words=$(\"$1\" completion keys 2>/dev/null)\n");
    }
    if (takes_files(command)) {
        (void)puts("        files=-f");
    }
    (void)puts("        ;;");
}

static void print_bash(void)
{
    (void)puts(
        "# Completion of kiln for bash, made by: kiln completion bash\n"
        "_kiln()\n"
        "{\n"
        "    local i=$COMP_CWORD word=${COMP_WORDS[COMP_CWORD]}\n"
        /* opencl:0 and --name=VALUE come in three pieces */
        "    while [[ $i -gt 2 && (${COMP_WORDS[i]} = : || ${COMP_WORDS[i - 1]} = :) ]]; do\n"
        "        i=$((i - 1)) word=${COMP_WORDS[i]}$word\n"
        "    done\n"
        "    local before=${COMP_WORDS[i - 1]}\n"
        "    if [[ $word = = ]]; then\n"
        "        word=''\n"
        "    elif [[ $before = = ]]; then\n"
        "        before=${COMP_WORDS[i - 2]}\n"
        "    fi\n"
        "    local IFS=$' \\n' options='' words='' files=''\n"
        "    local at=\"${COMP_WORDS[1]},$before\"\n"
        "    [[ $COMP_CWORD -gt 1 ]] || at=''\n"
        "    case $at in");
    (void)printf("    '') words='");
    put_commands();
    (void)puts(" --help --version' ;;");
    for (const cli_command *const *command = cmd_list(); *command != NULL; command++) {
        for (const opt_spec *spec = (*command)->options; !is_end(spec); spec++) {
            if (spec->kind != OPT_FLAG) {
                bash_value(*command, spec);
            }
        }
    }
    (void)puts("    *) case ${COMP_WORDS[1]} in");
    for (const cli_command *const *command = cmd_list(); *command != NULL; command++) {
        bash_command(*command);
    }
    (void)puts("    esac ;;\n"
               "    esac\n"
               "    [[ $word = -* ]] && words=${options:-$words} files=''\n"
               "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
               "    if [[ -n $files ]]; then\n"
               "        IFS=$'\\n'\n"
               "        COMPREPLY+=($(compgen $files -- \"$word\"))\n"
               "        compopt -o filenames 2>/dev/null\n"
               "    fi\n"
               /* bash replaces what comes after the last colon only */
               "    if [[ $word = *:* && $COMP_WORDBREAKS = *:* ]]; then\n"
               "        COMPREPLY=(\"${COMPREPLY[@]#\"${word%\"${word##*:}\"}\"}\")\n"
               "    fi\n"
               "    return 0\n"
               "}\n"
               "complete -F _kiln kiln");
}

/* --- zsh -------------------------------------------------------------------------------------- */

static void zsh_text(const char *text)
{
    put_text(text, "[]:\\", "'\\''");
}

/* ":VALUE:" and where its words come from. */
static void zsh_value(const cli_command *command, const opt_spec *spec)
{
    const value_words words = words_of(command, spec);
    (void)putchar(':');
    zsh_text(spec->value);
    (void)putchar(':');
    if (is_named(spec, "backend")) {
        (void)putchar('(');
        put_backends();
        (void)putchar(')');
    } else if (words.fixed != NULL) {
        (void)printf("{compadd -- %s}", words.fixed);
    } else if (words.asked != NULL) {
        (void)printf("{_kiln_words %s}", words.asked);
    } else {
        (void)printf("%s", takes_path(spec) ? "_files" : takes_folder(spec) ? "_files -/" : " ");
    }
}

static void zsh_option(const cli_command *command, const opt_spec *spec)
{
    const bool both = spec->name != NULL && spec->letter != 0;
    const bool value = spec->kind != OPT_FLAG;
    (void)printf(" \\\n            ");
    if (spec->kind == OPT_LIST) {
        (void)printf("'*'");
    } else if (both) {
        (void)printf("'(-%c --%s)'", spec->letter, spec->name);
    }
    if (both) {
        (void)printf("{-%c%s,--%s%s}'", spec->letter, value ? "+" : "", spec->name,
                     value ? "=" : "");
    } else if (spec->name != NULL) {
        const bool equals = spec->name[strlen(spec->name) - 1] == '=';
        const bool dashed = *opt_dashes(spec) == '\0';
        (void)printf("'%s%s%s", opt_dashes(spec), spec->name,
                     equals   ? "-"
                     : !value ? ""
                     : dashed ? "+"
                              : "=");
    } else {
        (void)printf("'-%c%s", spec->letter, value ? "+" : "");
    }
    (void)putchar('[');
    zsh_text(spec->help);
    (void)putchar(']');
    if (value) {
        zsh_value(command, spec);
    }
    (void)putchar('\'');
}

static void zsh_command(const cli_command *command)
{
    (void)printf("    %s)\n        _arguments -s", command->name);
    for (const opt_spec *spec = command->options; !is_end(spec); spec++) {
        zsh_option(command, spec);
    }
    (void)printf(" \\\n            '--color=[color]:when:(auto always never)'");
    (void)printf(" \\\n            '(-h --help)'{-h,--help}'[show this page]'");
    if (verbs_length(command) > 0) {
        (void)printf(" \\\n            '1:what:(");
        put_verbs(command);
        (void)printf(")'");
    } else if (takes_commands(command)) {
        (void)printf(" \\\n            '1:command:(");
        put_commands();
        (void)printf(")'");
    }
    if (takes_keys(command)) {
        (void)printf(" \\\n            '*:key:{_kiln_words keys%s}'",
                     takes_files(command) ? "; _files" : "");
    } else if (takes_files(command)) {
        (void)printf(" \\\n            '*:file:_files'");
    }
    (void)puts("\n        ;;");
}

static void print_zsh(void)
{
    (void)puts("#compdef kiln\n"
               "# Completion of kiln for zsh, made by: kiln completion zsh\n"
               "_kiln_words()\n"
               "{\n"
               "    compadd -- ${(f)\"$(kiln completion $1 2>/dev/null)\"}\n"
               "}\n"
               "_kiln()\n"
               "{\n"
               "    local -a commands\n"
               "    commands=(");
    for (const cli_command *const *command = cmd_list(); *command != NULL; command++) {
        (void)printf("        '%s:", (*command)->name);
        zsh_text((*command)->summary);
        (void)puts("'");
    }
    (void)puts("    )\n"
               "    if ((CURRENT == 2)); then\n"
               "        _describe -t commands 'kiln command' commands\n"
               "        return\n"
               "    fi\n"
               "    shift words\n"
               "    ((CURRENT--))\n"
               "    case $words[1] in");
    for (const cli_command *const *command = cmd_list(); *command != NULL; command++) {
        zsh_command(*command);
    }
    (void)puts("    esac\n"
               "}\n"
               "if [[ $funcstack[1] = _kiln ]]; then\n"
               "    _kiln \"$@\"\n"
               "else\n"
               "    compdef _kiln kiln\n"
               "fi");
}

/* --- fish ------------------------------------------------------------------------------------- */

static void fish_text(const char *text)
{
    (void)printf(" -d '");
    put_text(text, "\\", "\\'");
    (void)puts("'");
}

static void fish_option(const cli_command *command, const opt_spec *spec)
{
    const value_words words = words_of(command, spec);
    (void)printf("complete -c kiln -n '__kiln_is %s'", command->name);
    if (spec->letter != 0) {
        (void)printf(" -s %c", spec->letter);
    }
    if (spec->name != NULL) {
        const bool dashed = *opt_dashes(spec) == '\0';
        (void)printf(" -%c %.*s", dashed ? 'o' : 'l', (int)strcspn(spec->name + dashed, "="),
                     spec->name + dashed);
    }
    if (is_named(spec, "backend")) {
        (void)printf(" -x -a '");
        put_backends();
        (void)printf("'");
    } else if (words.fixed != NULL) {
        (void)printf(" -x -a '%s'", words.fixed);
    } else if (words.asked != NULL) {
        (void)printf(" -x -a '(kiln completion %s 2>/dev/null)'", words.asked);
    } else if (takes_path(spec)) {
        (void)printf(" -r -F");
    } else if (takes_folder(spec)) {
        (void)printf(" -x -a '(__fish_complete_directories)'");
    } else if (spec->kind != OPT_FLAG) {
        (void)printf(" -x");
    }
    fish_text(spec->help);
}

static void fish_command(const cli_command *command)
{
    (void)printf("complete -c kiln -n '__kiln_words 1' -a %s", command->name);
    fish_text(command->summary);
    for (const opt_spec *spec = command->options; !is_end(spec); spec++) {
        fish_option(command, spec);
    }
    if (verbs_length(command) > 0) {
        (void)printf("complete -c kiln -n '__kiln_is %s; and __kiln_words 2' -a '", command->name);
        put_verbs(command);
        (void)puts("'");
    } else if (takes_commands(command)) {
        (void)printf("complete -c kiln -n '__kiln_is %s' -a '", command->name);
        put_commands();
        (void)puts("'");
    }
    if (takes_keys(command)) {
        (void)printf("complete -c kiln -n '__kiln_is %s' -a '(kiln completion keys 2>/dev/null)'\n",
                     command->name);
    }
    if (takes_files(command)) {
        (void)printf("complete -c kiln -n '__kiln_is %s' -F\n", command->name);
    }
}

static void print_fish(void)
{
    (void)puts("# Completion of kiln for fish, made by: kiln completion fish\n"
               "function __kiln_is\n"
               "    set -l words (commandline -opc)\n"
               "    test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
               "end\n"
               "function __kiln_words\n"
               "    test (count (commandline -opc)) = $argv[1]\n"
               "end\n"
               "complete -c kiln -f\n"
               "complete -c kiln -l color -x -a 'auto always never' -d color\n"
               "complete -c kiln -s h -l help -d 'show a page of help'");
    for (const cli_command *const *command = cmd_list(); *command != NULL; command++) {
        fish_command(*command);
    }
}

/* --- the command ------------------------------------------------------------------------------ */

static exit_code run_completion(const cmd_context *context, void *fields, const opt_list *arguments)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    (void)fields; /* has none */
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(arguments->items[0], shells[i].shell) == 0) {
            shells[i].print();
            return EXIT_FINE;
        }
    }
    if (completion_words_print(context, arguments->items[0])) {
        return EXIT_FINE;
    }
    kiln_diag diag = KILN_DIAG_INIT;
    (void)kiln_diag_set(&diag, KILN_E_INVALID, "give bash, zsh or fish", "",
                        "there is no completion for the shell \"%.60s\"", arguments->items[0]);
    return cmd_fail_as(context, EXIT_USAGE, &diag);
}

const cli_command cmd_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .summary = "Prints what a shell needs to complete kiln's command line",
    .details = "cmake --install puts it where the shells look. By hand:\n"
               "  bash   source <(kiln completion bash)\n"
               "  zsh    source <(kiln completion zsh), after compinit\n"
               "  fish   kiln completion fish | source\n"
               "The shells ask for words of this machine with kiln completion devices, targets,\n"
               "stored (the targets of entries) and keys.",
    .options = specs,
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_completion,
};

/* kiln completion: a script for each shell that asks `kiln completion words` what may stand at a
 * place of the command line. The answer is made of the commands' own tables, so that it cannot say
 * anything else than --help; without one the shell completes files. Nothing is said where something
 * fails: a shell would show it in the middle of a line. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/probe.h>

#include "cli/cmd.h"

static const opt_spec specs[] = {OPT_END};
enum { WORDS_ARGUMENTS = 4 };

/* --- what may stand at a place ---------------------------------------------------------------- */

/* A line is a word, a tab and what it means. */
static void put_word(const char *dashes, const char *word, const char *meaning)
{
    (void)printf("%s%s\t%s\n", dashes, word, meaning);
}

static void put_commands(void)
{
    for (const cli_command *const *command = cmd_list(); *command != NULL; command++) {
        put_word("", (*command)->name, (*command)->summary);
    }
}

static void put_options(const cli_command *command)
{
    for (const opt_spec *spec = command->options; spec->name != NULL || spec->letter != 0; spec++) {
        const char letter[2] = {spec->letter, '\0'};
        if (spec->name != NULL) {
            put_word(opt_dashes(spec), spec->name, spec->help);
        }
        if (spec->letter != 0) {
            put_word("-", letter, spec->help);
        }
    }
    put_word("--", "color", "auto, always or never");
    put_word("--", "help", "show this page");
    put_word("-", "h", "show this page");
}

static bool is_option(const opt_spec *spec, const char *word)
{
    const size_t dashes = strlen(opt_dashes(spec));
    return (spec->letter != 0 && word[0] == '-' && word[1] == spec->letter && word[2] == '\0') ||
           (spec->name != NULL && strncmp(word, opt_dashes(spec), dashes) == 0 &&
            strcmp(word + dashes, spec->name) == 0);
}

/* The option whose value follows `before`; NULL: there is none. */
static const opt_spec *find_option(const cli_command *command, const char *before)
{
    for (const opt_spec *spec = command->options; spec->name != NULL || spec->letter != 0; spec++) {
        if (spec->kind != OPT_FLAG && is_option(spec, before)) {
            return spec;
        }
    }
    return NULL;
}

static void put_values(const opt_spec *spec)
{
    const char *name = spec->name != NULL ? spec->name : "";
    if (strcmp(name, "language") == 0) {
#define KN_LANGUAGE(id, name, ...) put_word("", name, "");
#define KN_LANGUAGE_INTERNAL(...)
#include "base/languages.def"
    }
    for (size_t i = 0; strcmp(name, "backend") == 0 && kiln_backend_name(i) != NULL; i++) {
        if (strcmp(kiln_backend_name(i), "fake") != 0) { /* for tests of kiln itself */
            put_word("", kiln_backend_name(i), "");
        }
    }
}

/* The verbs of "create|add|... FILE"; nothing if the first argument is something else. */
static void put_verbs(const char *usage)
{
    const size_t length = strcspn(usage, " ");
    for (size_t i = 0; i < length; i++) {
        if (islower((unsigned char)usage[i]) == 0 && usage[i] != '|') {
            return;
        }
    }
    for (const char *at = usage; at < usage + length; at += strcspn(at, "| ") + 1) {
        (void)printf("%.*s\t\n", (int)strcspn(at, "| "), at);
    }
}

/* "words COMMAND BEFORE WORD": the word that is being typed, and the one before it. */
static void print_place(const opt_list *arguments)
{
    const char *before = arguments->items[2];
    const char *word = arguments->items[3];
    const cli_command *command = cmd_find(arguments->items[1], NULL);
    const opt_spec *spec = command != NULL ? find_option(command, before) : NULL;
    if (*arguments->items[1] == '\0') {
        put_commands();
        if (word[0] == '-') {
            put_word("--", "help", "list the commands");
            put_word("--", "version", "print the version");
        }
    } else if (spec != NULL) {
        put_values(spec);
    } else if (command != NULL && word[0] == '-') {
        put_options(command);
    } else if (command != NULL && strcmp(before, command->name) == 0) {
        put_verbs(command->usage);
        if (strstr(command->usage, "COMMAND") != NULL) {
            put_commands();
        }
    }
}

/* --- the scripts ------------------------------------------------------------------------------ */

/* In bash --name=VALUE comes in three words. */
static const char bash_script[] =
    "# Completion of kiln for bash, made by: kiln completion bash\n"
    "_kiln()\n"
    "{\n"
    "    local i=$COMP_CWORD command='' word IFS=$'\\n'\n"
    "    word=${COMP_WORDS[i]#=}\n"
    "    [[ ${COMP_WORDS[i]} = = || ${COMP_WORDS[i - 1]} != = ]] || i=$((i - 1))\n"
    "    [[ $i -le 1 ]] || command=${COMP_WORDS[1]}\n"
    "    COMPREPLY=($(compgen -W \"$(\"$1\" completion -- words \"$command\" "
    "\"${COMP_WORDS[i - 1]}\" \"$word\" 2>/dev/null | cut -f 1)\" -- \"$word\"))\n"
    "}\n"
    "complete -o bashdefault -o default -F _kiln kiln\n";

static const char zsh_script[] =
    "#compdef kiln\n"
    "# Completion of kiln for zsh, made by: kiln completion zsh\n"
    "_kiln()\n"
    "{\n"
    "    local line word=$words[CURRENT] before=$words[CURRENT-1] command=''\n"
    "    local -a found\n"
    "    [[ $CURRENT -le 2 ]] || command=$words[2]\n"
    "    if [[ $word = --*=* ]]; then\n"
    "        before=${word%%=*}\n"
    "        compset -P '*='\n"
    "    fi\n"
    "    for line in ${(f)\"$(kiln completion -- words \"$command\" \"$before\" \"$word\" "
    "2>/dev/null)\"}; do\n"
    "        found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done\n"
    "    if [[ -n $found ]]; then _describe -t words 'kiln' found; else _files; fi\n"
    "}\n"
    "if [[ $funcstack[1] = _kiln ]]; then _kiln \"$@\"; else compdef _kiln kiln; fi\n";

static const char fish_script[] =
    "# Completion of kiln for fish, made by: kiln completion fish\n"
    "function __kiln_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    set -l before $words[-1]\n"
    "    set -l start ''\n"
    "    if string match -q -- '--*=*' $word\n"
    "        set before (string replace -r '=.*' '' -- $word)\n"
    "        set start $before=\n"
    "    end\n"
    "    set -l found (kiln completion -- words \"$words[2]\" \"$before\" \"$word\" 2>/dev/null)\n"
    "    test -n \"$found\"; or __fish_complete_path $word\n"
    "    for line in $found\n"
    "        printf '%s%s\\n' \"$start\" $line\n"
    "    end\n"
    "end\n"
    "complete -c kiln -f -a '(__kiln_complete)'\n";

/* --- the command ------------------------------------------------------------------------------ */

static exit_code run_completion(const cmd_context *context, void *fields, const opt_list *arguments)
{
    static const char *const shells[][2] = {
        {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    const char *what = arguments->items[0];
    (void)fields; /* has none */
    for (size_t i = 0; arguments->count == 1 && i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(what, shells[i][0]) == 0) {
            (void)fputs(shells[i][1], stdout);
            return EXIT_FINE;
        }
    }
    if (strcmp(what, "words") == 0 && arguments->count == WORDS_ARGUMENTS) {
        print_place(arguments);
        return EXIT_FINE;
    }
    kiln_diag diag = KILN_DIAG_INIT;
    (void)kiln_diag_set(&diag, KILN_E_INVALID, "give bash, zsh or fish", "",
                        "there is no completion for the shell \"%.60s\"", what);
    return cmd_fail_as(context, EXIT_USAGE, &diag);
}

const cli_command cmd_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .summary = "Prints what a shell needs to complete kiln's command line",
    .details = "cmake --install puts it where the shells look. By hand:\n"
               "  bash   source <(kiln completion bash)\n"
               "  zsh    source <(kiln completion zsh), after compinit\n"
               "  fish   kiln completion fish | source",
    .options = specs,
    .min_arguments = 1,
    .max_arguments = WORDS_ARGUMENTS,
    .run = run_completion,
};

/* kiln completion: a script for each shell that asks `kiln completion words` what may stand at a
 * place of the command line. The answer is made of the commands' own tables, so that it cannot say
 * anything else than --help. Nothing is said where something fails: a shell would show it in the
 * middle of a line. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/probe.h>

#include "cli/cmd.h"
#include "cli/listing.h"

static const opt_spec specs[] = {OPT_END};
enum { WORDS_ARGUMENTS = 5 };

/* --- words of this machine -------------------------------------------------------------------- */

/* Targets that can be compiled for without a device. */
static const char *const offline[] = {
    "vulkan:spirv", "cpu:native", "cpu:x86-64", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4",
    "cpu:aarch64",  "cuda:sm_75", "cuda:sm_80", "cuda:sm_86",    "cuda:sm_89",    "cuda:sm_90"};

static kiln_cache *open_cache(void)
{
    kiln_cache *cache = NULL;
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
    return kiln_cache_create(NULL, &cache, NULL) == KILN_OK ? cache : NULL;
}

static void print_device_words(const cmd_context *context)
{
    kiln_cache *cache = open_cache();
    kiln_runtime *runtime = NULL;
    kiln_runtime_options options = {0};
    (void)context;
    if (cache != NULL && kiln_runtime_options_init(&options, NULL) == KILN_OK) {
        options.cache = cache;
        if (kiln_runtime_create(&options, &runtime, NULL) == KILN_OK) {
            for (size_t i = 0; i < kiln_runtime_device_count(runtime); i++) {
                const kiln_device_info *info =
                    kiln_device_properties(kiln_runtime_device(runtime, i));
                (void)printf("%s:%u\n", info->backend, info->index);
            }
            kiln_runtime_destroy(runtime);
        }
    }
    kiln_cache_destroy(cache);
}

static void print_targets(const cmd_context *context)
{
    print_device_words(context);
    for (size_t i = 0; i < sizeof(offline) / sizeof(offline[0]); i++) {
        (void)puts(offline[i]);
    }
}

static bool list_entries(const cmd_context *context, kiln_cache *cache, cli_listing *out_listing)
{
    return cache != NULL && *kiln_cache_root(cache) != '\0' &&
           listing_make(cache, NULL, context->pool, out_listing, NULL) == KILN_OK;
}

static void print_keys(const cmd_context *context)
{
    kiln_cache *cache = open_cache();
    cli_listing listing;
    if (list_entries(context, cache, &listing)) {
        for (size_t i = 0; i < listing.count; i++) {
            (void)printf("%.16s\n", listing.entries[i].key);
        }
    }
    kiln_cache_destroy(cache);
}

static void print_stored(const cmd_context *context)
{
    kiln_cache *cache = open_cache();
    cli_listing listing;
    if (list_entries(context, cache, &listing)) {
        for (size_t i = 0; i < listing.count; i++) {
            bool seen = false;
            for (size_t j = 0; j < i && !seen; j++) {
                seen = strcmp(listing.entries[i].target, listing.entries[j].target) == 0;
            }
            if (!seen) {
                (void)puts(listing.entries[i].target);
            }
        }
    }
    kiln_cache_destroy(cache);
}

static void print_languages(const cmd_context *context)
{
    (void)context;
#define KN_LANGUAGE(id, name, ...) (void)puts(name);
#define KN_LANGUAGE_INTERNAL(...)
#include "base/languages.def"
}

static void print_backends(const cmd_context *context)
{
    (void)context;
    for (size_t i = 0; kiln_backend_name(i) != NULL; i++) {
        if (strcmp(kiln_backend_name(i), "fake") != 0) { /* for tests of kiln itself */
            (void)puts(kiln_backend_name(i));
        }
    }
}

static void print_argument_kinds(const cmd_context *context)
{
    (void)context;
    (void)puts("value:\nin:\nout:\ninout:\nlocal:");
}

static bool print_words(const cmd_context *context, const char *name)
{
    static const struct {
        const char *name;
        void (*print)(const cmd_context *context);
    } rows[] = {{"devices", print_device_words},
                {"languages", print_languages},
                {"targets", print_targets},
                {"stored", print_stored},
                {"keys", print_keys},
                {"backends", print_backends},
                {"arguments", print_argument_kinds}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            rows[i].print(context);
            return true;
        }
    }
    return false;
}

/* --- what may stand at a place ---------------------------------------------------------------- */

/* A line is a word, a tab and what it means. Before the tab of "files" and "directories" is
 * nothing: the shell completes those itself. */
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

static void put_values(const cmd_context *context, const cli_command *command, const opt_spec *spec)
{
    static const struct {
        const char *name;
        void (*print)(const cmd_context *context);
    } options[] = {{"language", print_languages},
                   {"arg", print_argument_kinds},
                   {"device", print_device_words},
                   {"backend", print_backends}};
    const char *name = spec->name != NULL ? spec->name : "";
    if (strcmp(name, "target") == 0) {
        const bool compiles = strstr("compile explain warm", command->name) != NULL;
        (compiles ? print_targets : print_stored)(context);
    } else if (strcmp(spec->value, "FILE") == 0 || strcmp(spec->value, "PATH") == 0) {
        put_word("", "", "files");
    } else if (strcmp(spec->value, "DIR") == 0) {
        put_word("", "", "folders");
    }
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(name, options[i].name) == 0) {
            options[i].print(context);
        }
    }
}

/* The verbs of "create|add|... FILE"; false if the first argument is something else. */
static bool put_verbs(const char *usage)
{
    const size_t length = strcspn(usage, " ");
    for (size_t i = 0; i < length; i++) {
        if (islower((unsigned char)usage[i]) == 0 && usage[i] != '|') {
            return false;
        }
    }
    for (const char *at = usage; at < usage + length; at += strcspn(at, "| ") + 1) {
        (void)printf("%.*s\t\n", (int)strcspn(at, "| "), at);
    }
    return length > 0;
}

static void put_arguments(const cmd_context *context, const cli_command *command, bool first)
{
    const char *usage = command->usage;
    const bool verbs = first && put_verbs(usage);
    if (strstr(usage, "COMMAND") != NULL) {
        put_commands();
    }
    if (!verbs && strstr(usage, "KEY") != NULL) {
        (void)print_words(context, "keys");
    }
    if (strstr(usage, "FILE") != NULL || strstr(usage, "MANIFEST") != NULL) {
        put_word("", "", "files");
    }
}

/* "words POSITION COMMAND BEFORE WORD": the word at that position, and the one before it. */
static void print_place(const cmd_context *context, const opt_list *arguments)
{
    const long position = strtol(arguments->items[1], NULL, 10);
    const char *before = arguments->items[3];
    const char *word = arguments->items[4];
    if (position <= 1) {
        put_commands();
        if (word[0] == '-') {
            put_word("--", "help", "list the commands");
            put_word("--", "version", "print the version");
        }
        return;
    }
    const cli_command *command = cmd_find(arguments->items[2], NULL);
    const opt_spec *spec = command != NULL ? find_option(command, before) : NULL;
    if (spec != NULL) {
        put_values(context, command, spec);
    } else if (command != NULL && word[0] == '-') {
        put_options(command);
    } else if (command != NULL) {
        put_arguments(context, command, position == 2);
    }
}

/* --- the scripts ------------------------------------------------------------------------------ */

static const char bash_script[] =
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
    "    local IFS=$'\\n' line words='' files=''\n"
    "    for line in $(\"$1\" completion -- words $i \"${COMP_WORDS[1]}\" \"$before\" "
    "\"$word\" 2>/dev/null); do\n"
    "        case $line in\n"
    "        $'\\t'files) files=-f ;;\n"
    "        $'\\t'folders) files=-d ;;\n"
    "        *) words+=${line%%$'\\t'*}$'\\n' ;;\n"
    "        esac\n"
    "    done\n"
    "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "    if [[ -n $files ]]; then\n"
    "        COMPREPLY+=($(compgen $files -- \"$word\"))\n"
    "        compopt -o filenames 2>/dev/null\n"
    "    fi\n"
    /* bash replaces what comes after the last colon only */
    "    if [[ $word = *:* && $COMP_WORDBREAKS = *:* ]]; then\n"
    "        COMPREPLY=(\"${COMPREPLY[@]#\"${word%\"${word##*:}\"}\"}\")\n"
    "    fi\n"
    "    return 0\n"
    "}\n"
    "complete -F _kiln kiln\n";

static const char zsh_script[] =
    "#compdef kiln\n"
    "# Completion of kiln for zsh, made by: kiln completion zsh\n"
    "_kiln()\n"
    "{\n"
    "    local line word=$words[CURRENT] before=$words[CURRENT-1]\n"
    "    local -a found\n"
    "    if [[ $word = --*=* ]]; then\n"
    "        before=${word%%=*}\n"
    "        compset -P '*='\n"
    "    fi\n"
    "    for line in ${(f)\"$(kiln completion -- words $((CURRENT - 1)) \"$words[2]\" \"$before\" "
    "\"$word\" 2>/dev/null)\"}; do\n"
    "        case $line in\n"
    "        $'\\t'files) _files ;;\n"
    "        $'\\t'folders) _files -/ ;;\n"
    "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${${line#*$'\\t'}}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    _describe -t words 'kiln' found\n"
    "}\n"
    "if [[ $funcstack[1] = _kiln ]]; then\n"
    "    _kiln \"$@\"\n"
    "else\n"
    "    compdef _kiln kiln\n"
    "fi\n";

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
    "    for line in (kiln completion -- words (count $words) \"$words[2]\" \"$before\" \"$word\" "
    "2>/dev/null)\n"
    "        switch $line\n"
    "            case \\tfiles\n"
    "                __fish_complete_path $word\n"
    "            case \\tfolders\n"
    "                __fish_complete_directories $word\n"
    "            case '*'\n"
    "                printf '%s%s\\n' \"$start\" $line\n"
    "        end\n"
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
    const bool alone = arguments->count == 1;
    for (size_t i = 0; alone && i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(what, shells[i][0]) == 0) {
            (void)fputs(shells[i][1], stdout);
            return EXIT_FINE;
        }
    }
    if (strcmp(what, "words") == 0 && arguments->count == WORDS_ARGUMENTS) {
        print_place(context, arguments);
        return EXIT_FINE;
    }
    if (alone && print_words(context, what)) {
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
    .max_arguments = WORDS_ARGUMENTS,
    .run = run_completion,
};

/* Options from a table. Knows nothing of any command. */
#include "cli/opt.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/out.h"

bool opt_parse_count(const char *text, uint64_t *out_value)
{
    uint64_t value = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)(*text - '0');
        if (*text < '0' || *text > '9' || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out_value = value;
    return true;
}

typedef struct opt_unit {
    const char *suffix;
    double factor;
} opt_unit;

/* A decimal number and one of the suffixes. */
static bool parse_scaled(const char *text, const opt_unit *units, uint64_t *out_value)
{
    size_t digits = strspn(text, "0123456789.");
    if (digits == 0 || digits > 20 || *text == '.') {
        return false;
    }
    char *end = NULL;
    double number = strtod(text, &end);
    /* "1e5" and "0x10" are numbers for strtod, not for us. */
    if (end != text + digits) {
        return false;
    }
    for (; units->suffix != NULL; units++) {
        if (strcmp(end, units->suffix) == 0) {
            double value = number * units->factor;
            if (!(value < 18446744073709549568.0)) {
                return false;
            }
            *out_value = (uint64_t)value;
            return true;
        }
    }
    return false;
}

bool opt_parse_size(const char *text, uint64_t *out_bytes)
{
    static const double kib = 1024.0;
    const opt_unit units[] = {{"", 1.0},
                              {"B", 1.0},
                              {"K", kib},
                              {"KiB", kib},
                              {"M", kib * kib},
                              {"MiB", kib * kib},
                              {"G", kib * kib * kib},
                              {"GiB", kib * kib * kib},
                              {"T", kib * kib * kib * kib},
                              {"TiB", kib * kib * kib * kib},
                              {NULL, 0.0}};
    return opt_parse_count(text, out_bytes) || parse_scaled(text, units, out_bytes);
}

bool opt_parse_duration(const char *text, uint64_t *out_ns)
{
    static const double second = 1e9;
    const opt_unit units[] = {{"ms", second / 1000},
                              {"s", second},
                              {"m", second * 60},
                              {"h", second * 3600},
                              {"d", second * 86400},
                              {"w", second * 7 * 86400},
                              {NULL, 0.0}};
    return parse_scaled(text, units, out_ns);
}

/* Edit distance, for words of ordinary length. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    size_t row[LONGEST + 1];
    size_t width = strlen(b);
    if (width > LONGEST || strlen(a) > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= width; i++) {
        row[i] = i;
    }
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t replaced = diagonal + (a[i] != b[j] ? 1u : 0u);
            size_t shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[width];
}

const char *opt_nearest(const char *const *names, const char *text)
{
    const char *best = NULL;
    size_t best_distance = strlen(text) / 3 + 1;
    for (; *names != NULL; names++) {
        size_t apart = edit_distance(text, *names);
        if (apart <= best_distance && (best == NULL || apart < best_distance)) {
            best = *names;
            best_distance = apart;
        }
    }
    return best;
}

/* What other programs call it, if it is one of `names`; NULL for a word that none does. */
static const char *foreign_option(const char *const *names, const char *text)
{
    static const char *const words[][2] = {{"older-than", "max-age"}, {"age", "max-age"},
                                           {"max-bytes", "max-size"}, {"dry", "dry-run"},
                                           {"no-color", "color"},     {"colour", "color"},
                                           {"parallel", "jobs"},      {"directory", "cache-dir"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (; strcmp(words[i][0], text) == 0 && *names != NULL; names++) {
            if (strcmp(*names, words[i][1]) == 0) {
                return *names;
            }
        }
    }
    return NULL;
}

static kiln_status unknown_option(const opt_spec *specs, const char *word, size_t length,
                                  kiln_diag *diag)
{
    const char *names[64];
    size_t count = 0;
    char name[40];
    (void)snprintf(name, sizeof(name), "%.*s", (int)(length < 39 ? length : 39), word);
    for (; (specs->name != NULL || specs->letter != 0) && count < 61; specs++) {
        if (specs->name != NULL) {
            names[count++] = specs->name;
        }
    }
    names[count++] = "color";
    names[count++] = "help";
    names[count] = NULL;
    const char *nearest = foreign_option(names, name);
    nearest = nearest != NULL ? nearest : opt_nearest(names, name);
    char fix[64] = "--help lists the options";
    if (nearest != NULL) {
        (void)snprintf(fix, sizeof(fix), "did you mean %s%s?", nearest[0] == '-' ? "" : "--",
                       nearest);
    }
    return kiln_diag_set(diag, KILN_E_INVALID, fix, "", "unknown option --%s", name);
}

const char *opt_dashes(const opt_spec *spec)
{
    return spec->name != NULL && spec->name[0] == '-' ? "" : "--";
}

static kiln_status bad_value(const opt_spec *spec, const char *text, const char *wanted,
                             kiln_diag *diag)
{
    char name[48];
    if (spec->name != NULL) {
        (void)snprintf(name, sizeof(name), "%s%s", opt_dashes(spec), spec->name);
    } else {
        (void)snprintf(name, sizeof(name), "-%c", spec->letter);
    }
    if (text == NULL) {
        char fix[96];
        (void)snprintf(fix, sizeof(fix), "write %s %s", name, spec->value);
        return kiln_diag_set(diag, KILN_E_INVALID, fix, name, "needs a value");
    }
    return kiln_diag_set(diag, KILN_E_INVALID, wanted, name, "\"%.100s\" is not a valid value",
                         text);
}

static kiln_status set_value(const opt_spec *spec, const char *text, void *fields, kiln_diag *diag)
{
    void *field = (unsigned char *)fields + spec->offset;
    opt_number *number = field;
    opt_list *list = field;
    switch (spec->kind) {
    case OPT_FLAG:
        *(bool *)field = true;
        return KILN_OK;
    case OPT_TEXT:
        *(const char **)field = text;
        return KILN_OK;
    case OPT_LIST:
        list->items[list->count++] = text;
        return KILN_OK;
    case OPT_COUNT:
        if (!opt_parse_count(text, &number->value)) {
            return bad_value(spec, text, "give a whole number", diag);
        }
        break;
    case OPT_SIZE:
        if (!opt_parse_size(text, &number->value)) {
            return bad_value(spec, text, "give bytes, or a number with K, M, G or T", diag);
        }
        break;
    case OPT_DURATION:
        if (!opt_parse_duration(text, &number->value)) {
            return bad_value(spec, text, "give a number with ms, s, m, h, d or w", diag);
        }
        break;
    }
    number->given = true;
    return KILN_OK;
}

/* What the parser walks over. */
typedef struct opt_walk {
    const opt_spec *specs;
    int argc, next;
    char **argv;
    void *fields;
    bool help;
} opt_walk;

static const opt_spec *find_name(const opt_spec *specs, const char *name, size_t length)
{
    for (; specs->name != NULL || specs->letter != 0; specs++) {
        if (specs->name != NULL && strlen(specs->name) == length &&
            memcmp(specs->name, name, length) == 0) {
            return specs;
        }
    }
    return NULL;
}

/* What each command takes. */
static const opt_spec every_command[] = {
    {"color", 0, OPT_TEXT, 0, "WHEN", "color: auto (on a terminal), always or never"}, OPT_END};

static kiln_status take_long(opt_walk *walk, const char *word, kiln_diag *diag)
{
    size_t length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    if (length == 4 && memcmp(word, "help", 4) == 0) {
        walk->help = true;
        return KILN_OK;
    }
    const opt_spec *spec = find_name(walk->specs, word, length);
    spec = spec != NULL ? spec : find_name(every_command, word, length);
    if (spec == NULL) {
        return unknown_option(walk->specs, word, length, diag);
    }
    if (spec->kind == OPT_FLAG && value != NULL) {
        char what[64];
        (void)snprintf(what, sizeof(what), "--%s", spec->name);
        return kiln_diag_set(diag, KILN_E_INVALID, "remove the =", what, "takes no value");
    }
    if (spec->kind != OPT_FLAG && value == NULL) {
        if (walk->next >= walk->argc) {
            return bad_value(spec, NULL, NULL, diag);
        }
        value = walk->argv[walk->next++];
    }
    if (spec == every_command) {
        return out_color_choose(value) ? KILN_OK
                                       : bad_value(spec, value, "give auto, always or never", diag);
    }
    return set_value(spec, value, walk->fields, diag);
}

/* Of "-word", which begins with letters that are not options of this command. What a compiler takes
 * goes through --option; a name takes two dashes. */
static kiln_status unknown_letters(const opt_spec *specs, const char *word, kiln_diag *diag)
{
    const opt_spec *pass = NULL;
    const opt_spec *same = find_name(specs, word, strlen(word));
    for (const opt_spec *spec = specs; spec->name != NULL || spec->letter != 0; spec++) {
        pass = spec->name != NULL && strcmp(spec->name, "option") == 0 ? spec : pass;
    }
    char fix[160] = "--help lists the options";
    if (same != NULL) {
        (void)snprintf(fix, sizeof(fix), "did you mean --%s?", same->name);
    } else if (pass != NULL) {
        (void)snprintf(fix, sizeof(fix), "if it is for the compiler, pass it with -%c: -%c %.60s%s",
                       pass->letter, pass->letter, word - 1, "; --help lists kiln's own");
    }
    return kiln_diag_set(diag, KILN_E_INVALID, fix, "", "unknown option %.60s", word - 1);
}

/* A row whose name has one dash, by the whole word: "-MD", "-MF FILE", "-MFFILE", "-std=VALUE".
 * NULL if there is none; *out_value is the value that the word holds, or NULL. */
static const opt_spec *find_one_dash(const opt_spec *specs, const char *word,
                                     const char **out_value)
{
    for (; specs->name != NULL || specs->letter != 0; specs++) {
        const size_t length = specs->name != NULL ? strlen(specs->name) : 0;
        if (length < 2 || specs->name[0] != '-' || strncmp(word, specs->name, length) != 0) {
            continue;
        }
        if (word[length] == '\0' || specs->kind != OPT_FLAG) {
            const bool inside = word[length] != '\0' || specs->name[length - 1] == '=';
            *out_value = inside ? word + length : NULL;
            return specs;
        }
    }
    return NULL;
}

static kiln_status take_one_dash(opt_walk *walk, const opt_spec *spec, const char *value,
                                 kiln_diag *diag)
{
    if (spec->kind != OPT_FLAG && value == NULL) {
        if (walk->next >= walk->argc) {
            return bad_value(spec, NULL, NULL, diag);
        }
        value = walk->argv[walk->next++];
    }
    return set_value(spec, value, walk->fields, diag);
}

static kiln_status take_letters(opt_walk *walk, const char *letters, kiln_diag *diag)
{
    const char *word = letters;
    for (; *letters != '\0'; letters++) {
        const opt_spec *spec = walk->specs;
        while ((spec->name != NULL || spec->letter != 0) && spec->letter != *letters) {
            spec++;
        }
        if (*letters == 'h' && spec->letter != 'h') {
            walk->help = true;
            return KILN_OK;
        }
        if (spec->letter != *letters) {
            return unknown_letters(walk->specs, word, diag);
        }
        if (spec->kind == OPT_FLAG) {
            (void)set_value(spec, NULL, walk->fields, NULL); /* a flag cannot fail */
            continue;
        }
        const char *value = letters[1] != '\0' ? letters + 1 : NULL;
        if (value == NULL && walk->next < walk->argc) {
            value = walk->argv[walk->next++];
        }
        return value != NULL ? set_value(spec, value, walk->fields, diag)
                             : bad_value(spec, NULL, NULL, diag);
    }
    return KILN_OK;
}

/* A word that begins with one dash. */
static kiln_status take_dash(opt_walk *walk, const char *word, kiln_diag *diag)
{
    const char *value = NULL;
    const opt_spec *whole = find_one_dash(walk->specs, word, &value);
    if (whole != NULL) {
        return take_one_dash(walk, whole, value, diag);
    }
    if (word[2] != '\0' && find_name(walk->specs, word + 1, strlen(word + 1)) != NULL) {
        return unknown_letters(walk->specs, word + 1, diag);
    }
    return take_letters(walk, word + 1, diag);
}

static bool prepare_lists(const opt_spec *specs, size_t room, cli_pool *pool, void *fields,
                          opt_list *arguments)
{
    arguments->count = 0;
    arguments->items = pool_array(pool, room, sizeof(*arguments->items));
    bool good = arguments->items != NULL;
    for (; (specs->name != NULL || specs->letter != 0) && good; specs++) {
        if (specs->kind == OPT_LIST) {
            opt_list *list = (opt_list *)(void *)((unsigned char *)fields + specs->offset);
            list->count = 0;
            list->items = pool_array(pool, room, sizeof(*list->items));
            good = list->items != NULL;
        }
    }
    return good;
}

kiln_status opt_parse(const opt_spec *specs, int argc, char **argv, cli_pool *pool, void *fields,
                      opt_list *out_arguments, bool *out_help, kiln_diag *diag)
{
    opt_walk walk = {specs, argc, 0, argv, fields, false};
    bool only_arguments = false;
    kiln_status status = KILN_OK;
    *out_help = false;
    if (!prepare_lists(specs, (size_t)argc + 1, pool, fields, out_arguments)) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "", "no memory for the options");
    }
    while (walk.next < argc && status == KILN_OK && !walk.help) {
        const char *word = argv[walk.next++];
        if (only_arguments || word[0] != '-' || word[1] == '\0') {
            out_arguments->items[out_arguments->count++] = word;
        } else if (word[1] != '-') {
            status = take_dash(&walk, word, diag);
        } else if (word[2] == '\0') {
            only_arguments = true;
        } else {
            status = take_long(&walk, word + 2, diag);
        }
    }
    *out_help = walk.help;
    return status;
}

static void print_rows(const opt_spec *specs, FILE *file)
{
    for (; specs->name != NULL || specs->letter != 0; specs++) {
        char left[64];
        char letter[8] = "    ";
        if (specs->letter != 0) {
            (void)snprintf(letter, sizeof(letter), "-%c%s", specs->letter,
                           specs->name != NULL ? ", " : "");
        }
        const char *name = specs->name != NULL ? specs->name : "";
        const bool blank = specs->value != NULL && (*name == '\0' || name[strlen(name) - 1] != '=');
        (void)snprintf(left, sizeof(left), "%s%s%s%s%s", letter,
                       specs->name != NULL ? opt_dashes(specs) : "", name, blank ? " " : "",
                       specs->value != NULL ? specs->value : "");
        (void)fprintf(file, "  %-28s  %s\n", left, specs->help);
    }
}

void opt_print(const opt_spec *specs, FILE *file)
{
    print_rows(specs, file);
    print_rows(every_command, file);
    (void)fprintf(file, "  %-28s  %s\n", "-h, --help", "show this page");
}

bool opt_has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL && (at = strstr(at, word)) != NULL; at += length) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

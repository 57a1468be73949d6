/* A small nvJitLink, release 13.0: what it links is a digest of all that it was given, behind the
 * names of the functions. It refuses what the real one refuses: options that it does not know, PTX
 * without a version or with an instruction called "nothing", a function that nobody defines or two
 * define, and calls out of order. $FAKENVJITLINK_LOG=path gets a line for every step that is done.
 * FAKE_SALT makes a build of its own. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif

enum { SUCCESS, UNKNOWN_OPTION, NO_ARCH, INVALID_INPUT, PTX_FAILED, NVVM_FAILED, INTERNAL };
enum { CUBIN = 1, PTX = 2, LTOIR = 3, FATBIN = 4, OBJECT = 5, ANY = 10 };
enum { INPUTS = 32, LOG_SIZE = 4096, LINKED_SIZE = 8192 };

static const char magic[] = "FAKECUBIN\n";

typedef struct fake_link {
    uint64_t digest;
    bool is_completed, wants_ptx, is_verbose;
    char *inputs[INPUTS];
    int count;
    char errors[LOG_SIZE], words[LOG_SIZE];
    char linked[LINKED_SIZE];
} fake_link;

static void note_step(const char *step)
{
    const char *path = getenv("FAKENVJITLINK_LOG");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        (void)fprintf(file, "%s\n", step);
        (void)fclose(file);
    }
}

static void digest_bytes(fake_link *link, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        link->digest = (link->digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    link->digest = (link->digest ^ size) * UINT64_C(0x100000001b3);
}

static void say(char log[LOG_SIZE], const char *what, const char *name)
{
    const size_t used = strlen(log);
    (void)snprintf(log + used, LOG_SIZE - used, "%s%s\n", what, name);
}

/* --- making ----------------------------------------------------------------------------------- */

static bool is_known(const char *option)
{
    static const char *const starts[] = {"-arch=",
                                         "-verbose",
                                         "-maxrregcount=",
                                         "-O",
                                         "-ftz=",
                                         "-prec-",
                                         "-fma=",
                                         "-kernels-used=",
                                         "-lto",
                                         "-ptx",
                                         "-g",
                                         "-lineinfo",
                                         "-no-cache",
                                         "-Xptxas=",
                                         "-split",
                                         "-variables-used=",
                                         "-optimize-unused-variables",
                                         "-jump-table"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        if (strncmp(option, starts[i], strlen(starts[i])) == 0) {
            return strcmp(option, "-O7") != 0;
        }
    }
    return false;
}

static int create_link(void **out, uint32_t count, const char *const *options)
{
    fake_link *link = calloc(1, sizeof(*link));
    bool has_arch = false;
    note_step("create");
    *out = NULL;
    if (link == NULL) {
        return INTERNAL;
    }
    link->digest = UINT64_C(0xcbf29ce484222325) + FAKE_SALT;
    *out = link;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_known(options[i])) {
            return UNKNOWN_OPTION;
        }
        has_arch = has_arch || strncmp(options[i], "-arch=sm_", 9) == 0 ||
                   strncmp(options[i], "-arch=compute_", 14) == 0;
        link->wants_ptx = link->wants_ptx || strcmp(options[i], "-ptx") == 0;
        link->is_verbose = link->is_verbose || strcmp(options[i], "-verbose") == 0;
        digest_bytes(link, options[i], strlen(options[i]));
    }
    return has_arch ? SUCCESS : NO_ARCH;
}

static int destroy_link(void **handle)
{
    fake_link *link = *handle;
    note_step("destroy");
    if (link == NULL) {
        return INVALID_INPUT;
    }
    for (int i = 0; i < link->count; i++) {
        free(link->inputs[i]);
    }
    free(link);
    *handle = NULL;
    return SUCCESS;
}

/* --- inputs ----------------------------------------------------------------------------------- */

static bool is_machine_code(const char *bytes, size_t size)
{
    return size >= sizeof(magic) - 1 && memcmp(bytes, magic, sizeof(magic) - 1) == 0;
}

static int check_ptx(fake_link *link, const char *text, const char *name)
{
    if (strstr(text, ".version") == NULL || strstr(text, "st.nothing") != NULL) {
        say(link->errors, "ERROR: PTX cannot be compiled: ", name);
        return PTX_FAILED;
    }
    return SUCCESS;
}

static int check_input(fake_link *link, int type, const char *text, size_t size, const char *name)
{
    const bool is_code = is_machine_code(text, size);
    if (type < CUBIN || type > ANY || size == 0) {
        return INVALID_INPUT;
    }
    if (type == PTX || (type == ANY && !is_code)) {
        return check_ptx(link, text, name);
    }
    if (!is_code || type == LTOIR || type == FATBIN) {
        say(link->errors, "ERROR: not of the type that was named: ", name);
        return INVALID_INPUT;
    }
    return SUCCESS;
}

static int add_data(void *handle, int type, const void *data, size_t size, const char *name)
{
    fake_link *link = handle;
    note_step("add");
    if (link == NULL || link->count == INPUTS || link->is_completed) {
        return INVALID_INPUT;
    }
    char *text = malloc(size + 1);
    if (text == NULL) {
        return INTERNAL;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    const int code = check_input(link, type, text, size, name != NULL ? name : "<unnamed>");
    if (code != SUCCESS) {
        free(text);
        return code;
    }
    link->inputs[link->count++] = text;
    digest_bytes(link, text, size);
    return SUCCESS;
}

static int add_file(void *handle, int type, const char *path)
{
    char text[LINKED_SIZE];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return INVALID_INPUT;
    }
    const size_t size = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    return add_data(handle, type, text, size, path);
}

/* --- linking ---------------------------------------------------------------------------------- */

/* How many inputs define or declare a name. */
static int count_uses(const fake_link *link, const char *kind, const char *name)
{
    char wanted[200];
    int count = 0;
    for (int i = 0; i < link->count; i++) {
        const char *at = link->inputs[i];
        while ((at = strstr(at, kind)) != NULL) {
            const size_t line = strcspn(at, "\n");
            (void)snprintf(wanted, sizeof(wanted), "%.*s", (int)line, at);
            char *found = strstr(wanted, name);
            count += found != NULL && strchr(" (", found[strlen(name)]) != NULL && found[-1] == ' ';
            at += line;
        }
    }
    return count;
}

/* The name in `.visible .entry NAME(`; false: this input has none. */
static bool name_entry(const char *text, char name[64])
{
    const char *at = strstr(text, ".entry ");
    return at != NULL && sscanf(at, ".entry %63[^( ]", name) == 1;
}

static int complete_link(void *handle)
{
    fake_link *link = handle;
    char name[64];
    note_step("complete");
    if (link == NULL || link->is_completed) {
        return INVALID_INPUT;
    }
    size_t used = (size_t)snprintf(link->linked, sizeof(link->linked), "%s", magic);
    if (count_uses(link, ".extern .func", "get") > 0 &&
        count_uses(link, ".visible .func", "get") == 0) {
        say(link->errors, "ERROR: Undefined reference to ", "get");
        return INVALID_INPUT;
    }
    for (int i = 0; i < link->count; i++) {
        if (name_entry(link->inputs[i], name)) {
            if (count_uses(link, ".visible .entry", name) > 1) {
                say(link->errors, "ERROR: Multiple definition of ", name);
                return INVALID_INPUT;
            }
            used +=
                (size_t)snprintf(link->linked + used, sizeof(link->linked) - used, "%s\n", name);
        }
    }
    (void)snprintf(link->linked + used, sizeof(link->linked) - used, "%016llx\n",
                   (unsigned long long)link->digest);
    if (link->is_verbose) {
        say(link->words, "linked ", link->linked);
    }
    link->is_completed = true;
    return SUCCESS;
}

/* --- outputs ---------------------------------------------------------------------------------- */

typedef enum output { LINKED_CUBIN, LINKED_PTX, ERROR_LOG, INFO_LOG, LINKED_LTOIR } output;

/* NULL: there is no such output, or not yet. */
static const char *text_of(const fake_link *link, output which)
{
    if (which == ERROR_LOG || which == INFO_LOG) {
        return which == ERROR_LOG ? link->errors : link->words;
    }
    const output made = link->wants_ptx ? LINKED_PTX : LINKED_CUBIN;
    return link->is_completed && which == made ? link->linked : NULL;
}

static int get_size(void *handle, output which, size_t *size)
{
    const char *text = handle != NULL ? text_of(handle, which) : NULL;
    if (text == NULL) {
        return INVALID_INPUT;
    }
    *size = text[0] != '\0' ? strlen(text) + 1 : 0;
    return SUCCESS;
}

static int get_bytes(void *handle, output which, char *bytes)
{
    const char *text = handle != NULL ? text_of(handle, which) : NULL;
    if (text == NULL) {
        return INVALID_INPUT;
    }
    memcpy(bytes, text, text[0] != '\0' ? strlen(text) + 1 : 0);
    return SUCCESS;
}

/* --- the names -------------------------------------------------------------------------------- */

#define OUTPUT(prefix, suffix, name, which)                                                        \
    EXPORT int prefix##Get##name##Size##suffix(void *handle, size_t *size)                         \
    {                                                                                              \
        return get_size(handle, which, size);                                                      \
    }                                                                                              \
    EXPORT int prefix##Get##name##suffix(void *handle, char *bytes)                                \
    {                                                                                              \
        return get_bytes(handle, which, bytes);                                                    \
    }

#define RELEASE(prefix, suffix)                                                                    \
    EXPORT int prefix##Create##suffix(void **handle, uint32_t count, const char *const *options)   \
    {                                                                                              \
        return create_link(handle, count, options);                                                \
    }                                                                                              \
    EXPORT int prefix##Destroy##suffix(void **handle)                                              \
    {                                                                                              \
        return destroy_link(handle);                                                               \
    }                                                                                              \
    EXPORT int prefix##AddData##suffix(void *handle, int type, const void *data, size_t size,      \
                                       const char *name)                                           \
    {                                                                                              \
        return add_data(handle, type, data, size, name);                                           \
    }                                                                                              \
    EXPORT int prefix##AddFile##suffix(void *handle, int type, const char *path)                   \
    {                                                                                              \
        return add_file(handle, type, path);                                                       \
    }                                                                                              \
    EXPORT int prefix##Complete##suffix(void *handle)                                              \
    {                                                                                              \
        return complete_link(handle);                                                              \
    }                                                                                              \
    OUTPUT(prefix, suffix, LinkedCubin, LINKED_CUBIN)                                              \
    OUTPUT(prefix, suffix, LinkedPtx, LINKED_PTX)                                                  \
    OUTPUT(prefix, suffix, ErrorLog, ERROR_LOG)                                                    \
    OUTPUT(prefix, suffix, InfoLog, INFO_LOG)                                                      \
    OUTPUT(prefix, suffix, LinkedLTOIR, LINKED_LTOIR)

RELEASE(nvJitLink, )
RELEASE(__nvJitLink, _13_0)

EXPORT int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    *major = 13;
    *minor = 0;
    return SUCCESS;
}

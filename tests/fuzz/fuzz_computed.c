/* Any text through the scanner and the macros of computed includes: its definitions are taken as
 * they come, each of its computed includes is evaluated, and the names that come out are as
 * promised. The first line of the input is the options. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "headers/include_scan.h"
#include "headers/macro_expand.h"

typedef struct bed {
    kn_macros macros;
    size_t computed;
} bed;

static kiln_status ignore_include(void *user, const kn_include *include)
{
    (void)user;
    (void)include;
    return KILN_OK;
}

static kiln_status take_definition(void *user, kn_span name, kn_span rest)
{
    bed *b = user;
    return kn_macros_define(&b->macros, name, rest);
}

static kiln_status take_undefinition(void *user, kn_span name)
{
    bed *b = user;
    return kn_macros_undefine(&b->macros, name);
}

static kiln_status check_name(void *user, kn_span name, bool quoted)
{
    (void)user;
    (void)quoted;
    if (name.length == 0 || name.length >= 4096 || strlen(name.data) != name.length ||
        strchr(name.data, '\\') != NULL) {
        abort();
    }
    return KILN_OK;
}

static kiln_status evaluate(void *user, kn_span text, size_t line, bool next, bool probe)
{
    bed *b = user;
    kn_macro_doubt doubt;
    if (line == 0 || ++b->computed > 16) { /* enough of them for one input */
        return line == 0 ? KILN_E_INVALID : KILN_OK;
    }
    return kn_macros_names(&b->macros, text, next != probe, check_name, b, &doubt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bed b = {.computed = 0};
    char options[512] = "";
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    if (end == NULL || (size_t)(end - data) >= sizeof options ||
        memchr(data, '\0', (size_t)(end - data)) != NULL) {
        return 0;
    }
    memcpy(options, data, (size_t)(end - data));
    const char *list[] = {options};
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_OPENCL_C;
    source.options = list;
    source.option_count = 1;
    kn_macros_init(&b.macros);
    kn_pieces pieces = {.marks = {.joined = false}};
    const kn_scan_macros macros = {take_definition, take_undefinition, evaluate, &pieces};
    kn_scan_stop stop;
    if (kn_macros_give(&b.macros, &source) != KILN_OK ||
        kn_include_scan_macros(kn_span_of(end, size - (size_t)(end - data)), false, ignore_include,
                               &macros, &b, &stop) != KILN_OK) {
        abort();
    }
    kn_macros_deinit(&b.macros);
    return 0;
}

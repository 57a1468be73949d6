/* Any text through the scanner and the macros of computed includes: its definitions are taken as
 * they come, each of its computed includes is evaluated, and the names that come out are as
 * promised. The first line of the input is the options. */
#include "fuzz/fuzz.h"
#include "headers/include_scan.h"
#include "headers/macro_expand.h"

typedef struct bed {
    kn_macros macros;
    size_t computed;
} bed;

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

static kiln_status take_event(void *user, const kn_scan_event *event)
{
    bed *b = user;
    kn_macro_doubt doubt;
    switch (event->kind) {
    case KN_SCAN_DEFINE:
        return kn_macros_define(&b->macros, event->text, event->rest);
    case KN_SCAN_UNDEFINE:
        return kn_macros_undefine(&b->macros, event->text);
    case KN_SCAN_COMPUTED:
        if (event->line == 0 || ++b->computed > 16) { /* enough of them for one input */
            return event->line == 0 ? KILN_E_INVALID : KILN_OK;
        }
        return kn_macros_names(&b->macros, event->text, event->next != event->probe, check_name, b,
                               &doubt);
    case KN_SCAN_INCLUDE:
        break;
    }
    return KILN_OK;
}

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
    kn_pieces pieces = {.marks = 0};
    const kn_scan_reader reader = {take_event, &b, true, true, &pieces};
    kn_scan_stop stop;
    if (kn_macros_give(&b.macros, &source) != KILN_OK ||
        kn_include_scan(kn_span_of(end, size - (size_t)(end - data)), false, &reader, &stop) !=
            KILN_OK) {
        abort();
    }
    kn_macros_deinit(&b.macros);
    return 0;
}

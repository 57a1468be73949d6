/* Any text through the scanner of includes: it ends, stays in bounds, and reports names that are in
 * the text. The first byte chooses whether the language has raw strings. */
#include "fuzz/fuzz.h"
#include "headers/include_scan.h"

static kiln_status check(void *user, const kn_scan_event *include)
{
    const size_t *size = user;
    if (include->text.length == 0 || include->text.length > *size ||
        strlen(include->text.data) != include->text.length) {
        abort();
    }
    return KILN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t length = size - 1;
    kn_scan_stop stop;
    const kn_scan_reader reader = {.report = check, .user = &length};
    kiln_status status =
        kn_include_scan(kn_span_of(data + 1, length), (data[0] & 1) != 0, &reader, &stop);
    if (status != KILN_OK || (stop.why != NULL && stop.line == 0)) {
        abort();
    }
    (void)kn_include_scan_words(kn_span_of(data + 1, length));
    return 0;
}

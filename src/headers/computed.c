/* See computed.h. */
#include "headers/computed.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void kn_computed_init(kn_computed *computed)
{
    kn_macros_init(&computed->macros);
    computed->first = NULL;
    computed->end = &computed->first;
}

void kn_computed_deinit(kn_computed *computed)
{
    while (computed->first != NULL) {
        kn_computed_include *following = computed->first->following;
        free(computed->first);
        computed->first = following;
    }
    computed->end = &computed->first;
    kn_macros_deinit(&computed->macros);
}

kiln_status kn_computed_add(kn_computed *computed, const kn_computed_include *what, kn_span text)
{
    kn_computed_include *added = malloc(sizeof *added + text.length + 1);
    if (added == NULL) {
        return KILN_E_NOMEM;
    }
    *added = *what;
    added->following = NULL;
    added->length = text.length;
    memcpy(added->text, text.data, text.length);
    added->text[text.length] = '\0';
    *computed->end = added;
    computed->end = &added->following;
    return KILN_OK;
}

bool kn_computed_explain(const kn_computed_include *include, char *why, size_t size)
{
    const char *what = include->doubt.why;
    if (what[0] == '\0' && !include->found && !include->probe) {
        what = "it does not name an existing file";
    }
    if (what[0] != '\0') {
        kn_text_putf(why, size, "%zu: computed %s %s: %s", include->line,
                     include->probe ? "__has_include" : "#include", include->text, what);
    }
    return what[0] != '\0';
}

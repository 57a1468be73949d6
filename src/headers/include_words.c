/* See include_words.h. */
#include "headers/include_words.h"

#include <stddef.h>
#include <string.h>

/* `assert` is one without any header to some compilers. The two of __has_include read files that
 * are scanned, as long as they are written out. */
const kn_reserved_word kn_reserved_words[KN_RESERVED_WORDS] = {
    {"__DATE__", false},       {"__TIME__", false},
    {"__TIMESTAMP__", false},  {"__has_embed", false},
    {"__has_include", false},  {"__has_include_next", false},
    {"__FILE__", true},        {"__FILE_NAME__", true},
    {"__BASE_FILE__", true},   {"__builtin_FILE", true},
    {"source_location", true}, {"__builtin_FILE_NAME", true},
    {"assert", true},          {"__builtin_source_location", true},
};

static const kn_reserved_word *find_reserved(const char *word)
{
    for (size_t i = 0; i < KN_RESERVED_WORDS; i++) {
        if (strcmp(word, kn_reserved_words[i].word) == 0) {
            return &kn_reserved_words[i];
        }
    }
    return NULL;
}

const char *kn_word_reads_time(const char *word)
{
    const kn_reserved_word *found = find_reserved(word);
    return found != NULL && !found->names && strncmp(word, "__has_include", 13) != 0 ? found->word
                                                                                     : NULL;
}

bool kn_word_names_file(const char *word)
{
    const kn_reserved_word *found = find_reserved(word);
    return found != NULL && found->names;
}

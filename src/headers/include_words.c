/* See include_words.h. */
#include "headers/include_words.h"

#include <stddef.h>
#include <string.h>

const char *kn_word_reads_time(const char *word)
{
    static const char *const words[] = {"__DATE__", "__TIME__", "__TIMESTAMP__", "__has_embed"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            return words[i];
        }
    }
    return NULL;
}

/* `assert` is one without any header to some compilers. */
bool kn_word_names_file(const char *word)
{
    static const char *const words[] = {
        "__FILE__",        "__FILE_NAME__",       "__BASE_FILE__", "__builtin_FILE",
        "source_location", "__builtin_FILE_NAME", "assert",        "__builtin_source_location"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

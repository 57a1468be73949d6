/* See include_words.h. */
#include "headers/include_words.h"

#include <string.h>

#define WORD(text) text, sizeof(text) - 1

/* `assert` is one without any header to some compilers. The two of __has_include read files that
 * are scanned, as long as they are written out. */
const kn_reserved_word kn_reserved_words[KN_RESERVED_WORDS] = {
    {WORD("__DATE__"), false},       {WORD("__TIME__"), false},
    {WORD("__TIMESTAMP__"), false},  {WORD("__has_embed"), false},
    {WORD("__has_include"), false},  {WORD("__has_include_next"), false},
    {WORD("__FILE__"), true},        {WORD("__FILE_NAME__"), true},
    {WORD("__BASE_FILE__"), true},   {WORD("__builtin_FILE"), true},
    {WORD("source_location"), true}, {WORD("__builtin_FILE_NAME"), true},
    {WORD("assert"), true},          {WORD("__builtin_source_location"), true},
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

/* Words in a text that make what is compiled of it depend on more than texts. */
#ifndef KILN_HEADERS_INCLUDE_WORDS_H
#define KILN_HEADERS_INCLUDE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* `names`: code gets at the name of a file by it; else at the time, or at files that are not
 * scanned. */
typedef struct kn_reserved_word {
    const char *word;
    size_t length;
    bool names;
} kn_reserved_word;

enum { KN_RESERVED_WORDS = 14, KN_RESERVED_LENGTH = 26 };
extern const kn_reserved_word kn_reserved_words[KN_RESERVED_WORDS];

/* The word itself, static, if code compiled with it changes with time or with files that are not
 * scanned; else NULL. */
const char *kn_word_reads_time(const char *word);

/* Whether code gets at the name of the file that the word is in. */
bool kn_word_names_file(const char *word);

#endif

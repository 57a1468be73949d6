/* What the texts of a source and its headers hold in pieces, of which the preprocessor can make
 * what no text says as it stands: words that are joined by ## (__TI ## ME__), and assembler text in
 * several literals (".inc" "bin"). Which pieces meet is not followed: where the pieces of a word
 * are there, three at most, and anything is joined, the word may be. Pieces of one letter do not
 * count: nobody writes words in letters, and every text has them. */
#ifndef KILN_HEADERS_PIECES_H
#define KILN_HEADERS_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "headers/include_words.h"

/* What else matters of them. */
typedef struct kn_pieces_marks {
    bool joined;       /* there is a ## */
    bool wraps;        /* there is a macro that hands its parameter on to __has_include */
    bool ends_wrapper; /* a word is the end of the name of such a macro */
    bool assembles;    /* there is asm */
    bool opens;        /* a literal ends in the beginning of a directive that reads a file */
    bool ends_in_dot, begins_name; /* one ends in its dot, and one begins with the rest */
} kn_pieces_marks;

/* Of all texts that are scanned for one source; zero before the first. */
typedef struct kn_pieces {
    /* Bit n: a text has the n letters of the word from here on as a word. */
    uint32_t found[KN_RESERVED_WORDS][KN_RESERVED_LENGTH];
    kn_pieces_marks marks;
} kn_pieces;

/* By a letter less '@', the letters (a bit each) that follow it in any of the words that matter. */
extern const uint64_t kn_pieces_follows[64];

/* Keeps a word of a text that looks like a piece. */
void kn_pieces_keep(kn_pieces *pieces, const char *word, size_t length);

/* A word of a text. The first letters of most show that they are not pieces. */
static inline void kn_pieces_note(kn_pieces *pieces, const char *word, size_t length)
{
    if (length < 2 || length >= KN_RESERVED_LENGTH) {
        if (length == 1 && word[0] == '_') {
            kn_pieces_keep(pieces, word, length);
        }
        return;
    }
    for (size_t i = 0; i + 1 < length; i++) {
        const unsigned from = (unsigned char)word[i] - 64u, to = (unsigned char)word[i + 1] - 64u;
        if (from >= 64 || to >= 64 || (kn_pieces_follows[from] >> to & 1) == 0) {
            return;
        }
    }
    kn_pieces_keep(pieces, word, length);
}

/* The words of a text outside the source: of a define, of an option. */
void kn_pieces_note_text(kn_pieces *pieces, kn_span text);

/* Assembler text, as far as literals hold it: literals that stand next to each other are one. */
typedef struct kn_assembly {
    char tail[10]; /* the last letters, small ones, after a NUL */
} kn_assembly;

/* A literal with its quotes; `goes_on`: it stands next to the last one. NULL, or why it cannot be
 * compiled from the cache: it reads a file. `pieces` may be NULL. */
const char *kn_assembly_read(kn_assembly *assembly, kn_pieces *pieces, kn_span literal, bool raw,
                             bool goes_on);

/* What two rows of texts hold together. */
void kn_pieces_merge(kn_pieces *to, const kn_pieces *from);

/* Most texts hold few pieces: these are they, without the rest of the table. */
typedef struct kn_few_pieces {
    kn_pieces_marks marks;
    size_t count;
    struct kn_piece_spot {
        uint16_t word, at;
        uint32_t lengths; /* as `found` has them */
    } spots[];
} kn_few_pieces;

kn_few_pieces *kn_pieces_pack(const kn_pieces *pieces); /* NULL when out of memory; free() */
void kn_pieces_merge_few(kn_pieces *to, const kn_few_pieces *from);

/* When all texts have been seen: NULL, or why what is compiled may depend on more than texts; and
 * whether code may get at the name of a file. */
const char *kn_pieces_stop(const kn_pieces *pieces);
bool kn_pieces_name_file(const kn_pieces *pieces);

#endif

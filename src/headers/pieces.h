/* Finds words that the preprocessor can assemble although no text contains them: tokens pasted by
 * ##
 * (__TI ## ME__), and assembler directives in adjacent literals (".inc" "bin").
 *
 * The scan doesn't follow which pieces are pasted together. If any text uses ##, and the texts
 * contain all pieces of a word, the word counts as present. Single letters don't count as pieces:
 * nobody pastes words letter by letter, and CUB and cuRAND contain all letters of __TIME__. */
#ifndef KILN_HEADERS_PIECES_H
#define KILN_HEADERS_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Words in a text that make what is compiled of it depend on more than texts. `names`: code gets at
 * the name of a file by it; else at the time, or at files that are not scanned. */
typedef struct kn_reserved_word {
    const char *word;
    size_t length;
    bool names;
} kn_reserved_word;

enum { KN_RESERVED_WORDS = 14, KN_RESERVED_LENGTH = 26 };
extern const kn_reserved_word kn_reserved_words[KN_RESERVED_WORDS];

/* NULL: the word is none of them. */
const kn_reserved_word *kn_reserved_find(const char *word, size_t length);

/* Collected with the pieces. */
enum {
    KN_MARK_JOINED = 1,       /* some text uses ## */
    KN_MARK_WRAPS = 2,        /* some macro passes its parameter to __has_include */
    KN_MARK_ENDS_WRAPPER = 4, /* some token is the end of such a macro's name */
    KN_MARK_ASSEMBLES = 8,    /* some text uses asm */
    KN_MARK_OPENS = 16,       /* a literal ends with the start of a directive that reads a file */
    KN_MARK_ENDS_IN_DOT = 32, /* a literal ends with the dot, and another */
    KN_MARK_BEGINS_NAME = 64, /* starts with the name */
};

/* Collected over all texts of one source. Starts all zero. */
typedef struct kn_pieces {
    /* found[word][at], bit n: a text contains word[at .. at + n) as a token. */
    uint32_t found[KN_RESERVED_WORDS][KN_RESERVED_LENGTH];
    unsigned marks; /* KN_MARK_ bits */
} kn_pieces;

/* Indexed by letter - '@': a bit for each letter that follows it in one of the reserved words. */
extern const uint64_t kn_pieces_follows[64];

/* Records a token that may be a piece. */
void kn_pieces_keep(kn_pieces *pieces, const char *word, size_t length);

/* Records a token if it may be a piece. Rejects most tokens after a letter or two. */
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

/* The tokens of a text outside the source: a define, an option. */
void kn_pieces_note_text(kn_pieces *pieces, kn_span text);

/* Assembler text across adjacent literals, which the compiler concatenates. */
typedef struct kn_assembly {
    char tail[10]; /* the last letters in lower case, preceded by a NUL */
} kn_assembly;

/* Reads a literal, quotes included; `goes_on`: the previous literal is adjacent. Returns NULL, or
 * why the program must bypass the cache: the assembler reads a file. `pieces` may be NULL. */
const char *kn_assembly_read(kn_assembly *assembly, kn_pieces *pieces, kn_span literal, bool raw,
                             bool goes_on);

/* Adds the pieces of other texts. */
void kn_pieces_merge(kn_pieces *to, const kn_pieces *from);

/* The non-zero part of a kn_pieces: most texts contain few pieces. */
typedef struct kn_few_pieces {
    unsigned marks; /* KN_MARK_ bits */
    size_t count;
    struct kn_piece_spot {
        uint16_t word, at;
        uint32_t lengths; /* as `found` has them */
    } spots[];
} kn_few_pieces;

kn_few_pieces *kn_pieces_pack(const kn_pieces *pieces); /* NULL when out of memory; free() */
void kn_pieces_merge_few(kn_pieces *to, const kn_few_pieces *from);

/* Call these after the last text. NULL, or why the output may depend on more than the texts; and
 * whether the code can see the name of a file. */
const char *kn_pieces_stop(const kn_pieces *pieces);
bool kn_pieces_name_file(const kn_pieces *pieces);

#endif

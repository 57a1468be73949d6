/* Recipes inside the library; the public half is in kiln/cache.h.
 *
 * A recipe is kept as its readable text and nothing else, and the key is the SHA-256 of that text:
 *
 *     kiln-recipe 1
 *     stage text "opencl.binary"
 *     revision u64 3
 *     target target "opencl-pocl-x86_64"
 *     source text 18812 2f0c...e1
 *     option text "-cl-fast-relaxed-math"
 *
 * One line a field: name, type, value. Text of at most 4 KiB stands there in quotes, with every
 * byte but printable ASCII escaped, so that no value can look like the end of its field or like
 * another field; longer text, and bytes, stand there as their size and SHA-256. The text is thus
 * injective (up to SHA-256) and an entry proves itself: `kiln show --recipe KEY | sha256sum` gives
 * KEY. docs/reference/formats.md is the specification. */
#ifndef KILN_KEY_RECIPE_H
#define KILN_KEY_RECIPE_H

#include "kiln/unstable/binding.h"

#include "base/span.h"
#include "base/strbuf.h"

/* The directory of recipes that name no target. */
#define KN_TARGET_NONE "any"

/* As kiln_recipe_status, and destroys a recipe that has failed: it describes something else than
 * its owner meant, and nothing may be looked up or stored under it. */
kiln_status kn_recipe_end(kiln_recipe **recipe, kiln_diag *diag);

/* A value for a field could not be made: no memory. */
void kn_recipe_fail(kiln_recipe *recipe);
void kn_recipe_add_string(kiln_recipe *recipe, const char *name, const char *text);
void kn_recipe_add_strbuf(kiln_recipe *recipe, const char *name, const kn_strbuf *text);

const char *kn_recipe_target(const kiln_recipe *recipe);
kn_span kn_recipe_span(const kiln_recipe *recipe); /* the text */

/* The rules for names of stages, fields and targets: 1 to 64 letters, digits, '.', '-', '_'. A
 * target is a directory and must not start with a dot besides. */
bool kn_name_valid(const char *name);
bool kn_target_valid(const char *target);

/* Reads a recipe's text field by field: the next line's parts, borrowed, and `rest` after it. False
 * at the end or where the text is malformed (rest->length says which). The header line is a field
 * as well: name "kiln-recipe", type and value "1". */
typedef struct kn_recipe_field {
    kn_span name, type, value;
} kn_recipe_field;
bool kn_recipe_next(kn_span *rest, kn_recipe_field *out_field);

/* From a recipe's text that another program may have written: its target, a valid one whatever
 * stands there, and whether its stage is one of kiln's own notes about this machine ("kiln."). */
#define KN_NAME_SIZE 65
void kn_recipe_target_in(kn_span recipe, char target[KN_NAME_SIZE]);
bool kn_recipe_is_note(kn_span recipe);
bool kn_recipe_is_of_stage(kn_span recipe, const char *stage);
/* Whether the key is this text's. */
bool kn_recipe_proves(kn_span recipe, const kiln_key *key);

#endif

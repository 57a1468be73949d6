/* Recipes: typed fields, framed one a line, and the key over them. This file must not know what the
 * fields mean. */
#include "key/recipe.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/sys/backend.h"
#include "kiln/unstable/remote.h"

#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "key/digest.h"

#define RECIPE_VERSION 1
#define MAX_NAME 64
#define MAX_INLINE 4096
#define MAX_TEXT ((size_t)16 << 20)
#define FIRST_TEXT 1000u /* what most recipes have room in */

enum { KEY_STALE, KEY_BUSY, KEY_READY };

struct kiln_recipe {
    kn_strbuf text;
    kn_digest digest;  /* of one field's bytes */
    kn_digest running; /* of the text up to `digested`: a key that is asked for again goes on */
    size_t digested;
    char target[MAX_NAME + 1];
    bool has_target;
    kiln_status status; /* the first failure of an add */
    char culprit[81];   /* the name that failed, or the target that is set */
    const char *kind;   /* of a bad name: "field", "target"; NULL: a second target */
    /* The key is made when it is first asked for. Several threads may ask with one recipe (a
     * const one, in kiln_cache_get_or_compile), so the state is atomic. */
    _Atomic int key_state;
    kiln_key key;
};

bool kn_name_valid(const char *name)
{
    size_t length = 0;
    for (; name != NULL && name[length] != '\0'; length++) {
        /* One bit a character: letters, digits, '.', '-', '_'. */
        static const uint64_t allowed[4] = {0x03FF600000000000u, 0x07FFFFFE87FFFFFEu, 0, 0};
        const unsigned char c = (unsigned char)name[length];
        if ((allowed[c >> 6] >> (c & 63) & 1) == 0 || length == MAX_NAME) {
            return false;
        }
    }
    return length > 0;
}

bool kn_target_valid(const char *target)
{
    return kn_name_valid(target) && target[0] != '.';
}

static kiln_status bad_name(kiln_diag *diag, const char *kind, const char *name)
{
    return kiln_diag_set(
        diag, KILN_E_INVALID,
        "use 1 to 64 letters, digits, '.', '-' and '_', for a target not '.' first",
        "making a recipe", "bad name of a %s: \"%.80s\"", kind, name != NULL ? name : "(null)");
}

/* --- failures --------------------------------------------------------------------------------- */

void kn_recipe_fail(kiln_recipe *recipe)
{
    if (recipe->status == KILN_OK) {
        recipe->status = KILN_E_NOMEM;
        atomic_store_explicit(&recipe->key_state, KEY_STALE, memory_order_relaxed);
    }
}

static void keep_misuse(kiln_recipe *recipe, const char *kind, const char *culprit)
{
    if (recipe->status == KILN_OK) {
        kn_recipe_fail(recipe);
        recipe->status = KILN_E_INVALID;
        recipe->kind = kind;
        kn_text_put(recipe->culprit, sizeof recipe->culprit, culprit != NULL ? culprit : "(null)");
    }
}

kiln_status kiln_recipe_status(const kiln_recipe *recipe, kiln_diag *diag)
{
    if (recipe->status == KILN_OK) {
        return KILN_OK;
    }
    if (recipe->status == KILN_E_NOMEM) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "making a recipe",
                             "no memory for a field, or more than %zu bytes of text", MAX_TEXT);
    }
    return recipe->kind != NULL
               ? bad_name(diag, recipe->kind, recipe->culprit)
               : kiln_diag_set(diag, KILN_E_INVALID, "set the target once", "making a recipe",
                               "the target is already %s", recipe->culprit);
}

kiln_status kn_recipe_end(kiln_recipe **recipe, kiln_diag *diag)
{
    const kiln_status status = kiln_recipe_status(*recipe, diag);
    if (status != KILN_OK) {
        kiln_recipe_destroy(*recipe);
        *recipe = NULL;
    }
    return status;
}

/* --- writing fields --------------------------------------------------------------------------- */

/* Whether none of eight bytes is to be escaped; each term has a byte's top bit where one is, and
 * perhaps that of the byte next to it. */
static bool is_plain_word(const char *text)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t word;
    memcpy(&word, text, sizeof word);
    const uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    const uint64_t rubout = word ^ ones * 0x7f;
    const uint64_t odd =
        word | (word - ones * 0x20) | (quote - ones) | (backslash - ones) | (rubout - ones);
    return (odd & tops) == 0;
}

/* The first character from `at` on that is to be escaped, or the end. */
static size_t find_odd(const char *text, size_t at, size_t length)
{
    for (;;) {
        while (length - at >= sizeof(uint64_t) && is_plain_word(text + at)) {
            at += sizeof(uint64_t);
        }
        const unsigned char c = at < length ? (unsigned char)text[at] : 0;
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            return at;
        }
        at++;
    }
}

static void append_quoted(kn_strbuf *out, const char *text, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    kn_strbuf_append_char(out, '"');
    size_t plain = 0;
    for (size_t i = find_odd(text, 0, length); i < length; i = find_odd(text, i + 1, length)) {
        unsigned char c = (unsigned char)text[i];
        char escape[4] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
        size_t size = 4;
        if (c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r') {
            escape[1] = c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : (char)c;
            size = 2;
        }
        kn_strbuf_append(out, text + plain, i - plain);
        kn_strbuf_append(out, escape, size);
        plain = i + 1;
    }
    kn_strbuf_append(out, text + plain, length - plain);
    kn_strbuf_append_char(out, '"');
}

/* False: the name is bad, and the field is left out. */
static bool begin_field(kiln_recipe *recipe, const char *name, const char *type)
{
    char start[MAX_NAME + 16];
    if (!kn_name_valid(name)) {
        keep_misuse(recipe, "field", name);
        return false;
    }
    const size_t length = strlen(name), type_length = strlen(type); /* both checked, or ours */
    memcpy(start, name, length);
    start[length] = ' ';
    memcpy(start + length + 1, type, type_length);
    start[length + 1 + type_length] = ' ';
    kn_strbuf_append(&recipe->text, start, length + type_length + 2);
    return true;
}

static void append_digest(kiln_recipe *recipe, const void *data, size_t size)
{
    uint8_t digest[KN_DIGEST_SIZE];
    char hex[2 * KN_DIGEST_SIZE + 1];
    if (!kn_digest_bytes(&recipe->digest, data, size, digest)) {
        kn_recipe_fail(recipe);
    }
    kn_hex_encode(digest, sizeof digest, hex);
    kn_strbuf_append_u64(&recipe->text, size);
    kn_strbuf_append_char(&recipe->text, ' ');
    kn_strbuf_append(&recipe->text, hex, sizeof hex - 1);
}

static void finish_field(kiln_recipe *recipe)
{
    kn_strbuf_append_char(&recipe->text, '\n');
    atomic_store_explicit(&recipe->key_state, KEY_STALE, memory_order_relaxed);
    if (!kn_strbuf_ok(&recipe->text)) {
        kn_recipe_fail(recipe);
    }
}

kiln_status kiln_recipe_create(const char *stage, uint32_t revision, kiln_recipe **out_recipe,
                               kiln_diag *diag)
{
    *out_recipe = NULL;
    if (!kn_name_valid(stage)) {
        return bad_name(diag, "stage", stage);
    }
    kiln_recipe *recipe = calloc(1, sizeof *recipe);
    if (recipe == NULL || !kn_digest_init(&recipe->digest)) {
        free(recipe);
        return kn_no_memory(diag, "making a recipe");
    }
    kn_strbuf_init(&recipe->text, MAX_TEXT);
    kn_text_put(recipe->target, sizeof recipe->target, KN_TARGET_NONE);
    kn_strbuf_reserve(&recipe->text, FIRST_TEXT);
    kn_strbuf_append_text(&recipe->text, "kiln-recipe ");
    kn_strbuf_append_u64(&recipe->text, RECIPE_VERSION);
    kn_strbuf_append_char(&recipe->text, '\n');
    kn_recipe_add_string(recipe, "stage", stage);
    kiln_recipe_add_u64(recipe, "revision", revision);
    *out_recipe = recipe;
    return kn_recipe_end(out_recipe, diag);
}

kiln_status kiln_recipe_copy(const kiln_recipe *recipe, kiln_recipe **out_recipe, kiln_diag *diag)
{
    *out_recipe = NULL;
    kiln_recipe *copy = calloc(1, sizeof *copy);
    if (copy == NULL) {
        return kn_no_memory(diag, "copying a recipe");
    }
    kn_strbuf_init(&copy->text, MAX_TEXT);
    kn_strbuf_append(&copy->text, kn_strbuf_text(&recipe->text), recipe->text.length);
    if (!kn_strbuf_ok(&copy->text) || !kn_digest_init(&copy->digest)) {
        kiln_recipe_destroy(copy);
        return kn_no_memory(diag, "copying a recipe");
    }
    kn_text_put(copy->target, sizeof copy->target, recipe->target);
    copy->has_target = recipe->has_target;
    copy->status = recipe->status;
    kn_text_put(copy->culprit, sizeof copy->culprit, recipe->culprit);
    copy->kind = recipe->kind;
    *out_recipe = copy;
    return KILN_OK;
}

void kiln_recipe_destroy(kiln_recipe *recipe)
{
    if (recipe != NULL) {
        kn_strbuf_deinit(&recipe->text);
        kn_digest_deinit(&recipe->digest);
        kn_digest_deinit(&recipe->running);
        free(recipe);
    }
}

void kiln_recipe_add_text(kiln_recipe *recipe, const char *name, const char *text, size_t length)
{
    if (begin_field(recipe, name, "text")) {
        if (length <= MAX_INLINE) {
            append_quoted(&recipe->text, text != NULL ? text : "", length);
        } else {
            append_digest(recipe, text, length);
        }
        finish_field(recipe);
    }
}

void kn_recipe_add_string(kiln_recipe *recipe, const char *name, const char *text)
{
    kiln_recipe_add_text(recipe, name, text, strlen(text));
}

void kn_recipe_add_strbuf(kiln_recipe *recipe, const char *name, const kn_strbuf *text)
{
    if (kn_strbuf_ok(text)) {
        kiln_recipe_add_text(recipe, name, kn_strbuf_text(text), text->length);
    } else {
        kn_recipe_fail(recipe);
    }
}

void kiln_recipe_add_bytes(kiln_recipe *recipe, const char *name, const void *data, size_t size)
{
    if (begin_field(recipe, name, "bytes")) {
        append_digest(recipe, data, size);
        finish_field(recipe);
    }
}

void kiln_recipe_add_u64(kiln_recipe *recipe, const char *name, uint64_t value)
{
    if (begin_field(recipe, name, "u64")) {
        kn_strbuf_append_u64(&recipe->text, value);
        finish_field(recipe);
    }
}

void kiln_recipe_set_target(kiln_recipe *recipe, const char *target)
{
    if (!kn_target_valid(target)) {
        keep_misuse(recipe, "target", target);
    } else if (recipe->has_target) {
        keep_misuse(recipe, NULL, recipe->target);
    } else if (begin_field(recipe, "target", "target")) {
        recipe->has_target = true;
        kn_text_put(recipe->target, sizeof recipe->target, target);
        append_quoted(&recipe->text, target, strlen(target));
        finish_field(recipe);
    }
}

void kiln_recipe_set_native(kiln_recipe *recipe)
{
    kn_recipe_add_string(recipe, KILN_IDENTITY_CODE,
                         "processor"); /* anything but KILN_IDENTITY_GPU */
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Most recipes are asked twice: before the headers are in them, and after. */
static bool make_key(kiln_recipe *recipe)
{
    if (recipe->status != KILN_OK ||
        (!recipe->running.ready && !kn_digest_init(&recipe->running))) {
        return false;
    }
    kn_digest_update(&recipe->running, kn_strbuf_text(&recipe->text) + recipe->digested,
                     recipe->text.length - recipe->digested);
    recipe->digested = recipe->text.length;
    return kn_digest_peek(&recipe->running, recipe->key.bytes);
}

kiln_key kiln_recipe_key(const kiln_recipe *recipe)
{
    /* A cached value, not a change that a caller can see. */
    kiln_recipe *self = (kiln_recipe *)recipe;
    for (;;) {
        int state = atomic_load_explicit(&self->key_state, memory_order_acquire);
        if (state == KEY_READY) {
            return self->key;
        }
        /* Another thread needs well under a millisecond for a recipe's text: spin. */
        if (state == KEY_STALE &&
            atomic_compare_exchange_weak(&self->key_state, &state, KEY_BUSY)) {
            if (!make_key(self)) {
                self->status = self->status == KILN_OK ? KILN_E_NOMEM : self->status;
                memset(&self->key, 0, sizeof self->key);
            }
            atomic_store_explicit(&self->key_state, KEY_READY, memory_order_release);
        }
    }
}

const char *kiln_recipe_text(const kiln_recipe *recipe)
{
    return kn_strbuf_text(&recipe->text);
}

kn_span kn_recipe_span(const kiln_recipe *recipe)
{
    return kn_span_of(kn_strbuf_text(&recipe->text), recipe->text.length);
}

const char *kn_recipe_target(const kiln_recipe *recipe)
{
    return recipe->target;
}

/* Takes the part of `rest` before `end` off it. */
static bool take_until(kn_span *rest, char end, kn_span *out)
{
    const char *at = rest->length > 0 ? memchr(rest->data, end, rest->length) : NULL;
    if (at == NULL) {
        return false;
    }
    *out = kn_span_of(rest->data, (size_t)(at - rest->data));
    *rest = kn_span_of(at + 1, rest->length - out->length - 1);
    return true;
}

bool kn_recipe_next(kn_span *rest, kn_recipe_field *out_field)
{
    kn_span after = *rest;
    kn_span line;
    kn_recipe_field field;
    if (!take_until(&after, '\n', &line) || !take_until(&line, ' ', &field.name)) {
        return false;
    }
    if (!take_until(&line, ' ', &field.type)) {
        field.type = line; /* the header line */
    }
    field.value = line;
    *out_field = field;
    *rest = after;
    return true;
}

/* The inside of the quotes of the first field of that name and type. */
static bool find_quoted(kn_span recipe, const char *name, const char *type, kn_span *out_value)
{
    kn_recipe_field field;
    while (kn_recipe_next(&recipe, &field)) {
        if (kn_span_equal(field.name, kn_span_of_text(name)) &&
            kn_span_equal(field.type, kn_span_of_text(type)) && field.value.length > 2) {
            *out_value = kn_span_of(field.value.data + 1, field.value.length - 2);
            return true;
        }
    }
    return false;
}

void kn_recipe_target_in(kn_span recipe, char target[KN_NAME_SIZE])
{
    kn_span value;
    kn_text_put(target, KN_NAME_SIZE, KN_TARGET_NONE);
    if (find_quoted(recipe, "target", "target", &value) && value.length < KN_NAME_SIZE) {
        kn_text_putf(target, KN_NAME_SIZE, "%.*s", (int)value.length, value.data);
    }
    if (!kn_target_valid(target)) {
        kn_text_put(target, KN_NAME_SIZE, KN_TARGET_NONE);
    }
}

bool kn_recipe_is_note(kn_span recipe)
{
    kn_span value;
    return find_quoted(recipe, "stage", "text", &value) && value.length > 5 &&
           memcmp(value.data, "kiln.", 5) == 0;
}

bool kn_recipe_is_of_stage(kn_span recipe, const char *stage)
{
    kn_span value;
    return find_quoted(recipe, "stage", "text", &value) &&
           kn_span_equal(value, kn_span_of_text(stage));
}

bool kn_recipe_proves(kn_span recipe, const kiln_key *key)
{
    uint8_t digest[KN_DIGEST_SIZE];
    return kn_digest_of(recipe.data, recipe.length, digest) &&
           memcmp(digest, key->bytes, sizeof digest) == 0;
}

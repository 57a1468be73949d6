/* Reads the list of trusted keys. This file must not know how a signature is made. */
#include <string.h>

#include "base/text.h"
#include "store/remote/sign.h"

static bool parse_line(kn_span line, kn_public_key *out_key)
{
    static const char word[] = "kiln-ed25519 ";
    char digits[2 * KN_PUBLIC_KEY + 1];
    const size_t before = sizeof word - 1, whole = before + sizeof digits - 1;
    if (line.length < whole || memcmp(line.data, word, before) != 0 ||
        (line.length > whole && line.data[whole] != ' ')) {
        return false;
    }
    memcpy(digits, line.data + before, sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    return kn_hex_decode(digits, out_key->bytes, sizeof out_key->bytes);
}

bool kn_trusted_parse(kn_span text, kn_public_key *keys, size_t room, size_t *out_count,
                      size_t *out_line)
{
    size_t count = 0;
    *out_count = 0;
    *out_line = 0;
    while (text.length > 0) {
        const char *end = memchr(text.data, '\n', text.length);
        size_t length = end != NULL ? (size_t)(end - text.data) : text.length;
        kn_span line = kn_span_of(text.data, length);
        while (line.length > 0 && (unsigned char)line.data[line.length - 1] <= ' ') {
            line.length--;
        }
        ++*out_line;
        if (line.length > 0 && line.data[0] != '#') {
            if (count == room || !parse_line(line, &keys[count])) {
                return false;
            }
            count++;
        }
        size_t used = length + (end != NULL);
        text = kn_span_of(text.data + used, text.length - used);
    }
    *out_count = count;
    return true;
}

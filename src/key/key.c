/* The text form of keys. */
#include "kiln/cache.h"
#include "kiln/unstable/admin.h"

#include <string.h>

#include "base/text.h"

void kiln_key_format(const kiln_key *key, char *text)
{
    kn_hex_encode(key->bytes, sizeof key->bytes, text);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

kiln_status kiln_key_parse(const char *text, kiln_key *out_key, kiln_diag *diag)
{
    const size_t digits = KILN_KEY_TEXT_SIZE - 1;
    memset(out_key, 0, sizeof *out_key);
    size_t good = 0;
    while (good < digits && is_hex(text[good])) {
        good++;
    }
    if (good < digits || text[digits] != '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, "give all 64 digits as `kiln ls` prints them",
                             "reading a key",
                             text[good] == '\0' ? "it ends after %zu of 64 hexadecimal digits"
                             : good < digits    ? "character %zu is not a hexadecimal digit"
                                                : "it goes on after %zu digits",
                             text[good] == '\0' || good == digits ? good : good + 1);
    }
    return kn_hex_decode(text, out_key->bytes, sizeof out_key->bytes)
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INTERNAL, NULL, "reading a key", NULL);
}

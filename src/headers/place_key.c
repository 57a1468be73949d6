/* See place_key.h. */
#include "headers/place_key.h"

#include <string.h>

#include "base/checked.h"

void kn_place_key_start(kn_strbuf *key, kn_place_base base, uint32_t index)
{
    unsigned char head[8];
    kn_put_u32(head, (uint32_t)base);
    kn_put_u32(head + 4, index);
    kn_strbuf_clear(key);
    kn_strbuf_append(key, head, sizeof head);
}

static void cut_text(kn_strbuf *text, size_t length)
{
    text->length = length;
    text->data[length] = '\0';
}

void kn_place_key_append_normal(kn_strbuf *key, const char *name)
{
    if (*name == '/') {
        kn_strbuf_append_char(key, '/');
    }
    size_t root = key->length;
    while (*name != '\0' && kn_strbuf_ok(key)) {
        size_t length = strcspn(name, "/");
        bool up = length == 2 && memcmp(name, "..", 2) == 0;
        const char *last = key->data + key->length;
        while (last > key->data + root && last[-1] != '/') {
            last--;
        }
        bool has_parent = key->length > root && strcmp(last, "..") != 0;
        if (up && has_parent) {
            size_t at = (size_t)(last - key->data);
            cut_text(key, at > root ? at - 1 : root);
        } else if (length > 0 && !(length == 1 && *name == '.')) {
            if (key->length > root) {
                kn_strbuf_append_char(key, '/');
            }
            kn_strbuf_append(key, name, length);
        }
        name += length;
        name += *name == '/';
    }
}

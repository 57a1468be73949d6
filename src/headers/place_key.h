/* Keys of places in the maps of a walk: the base, the index, then a name. */
#ifndef KILN_HEADERS_PLACE_KEY_H
#define KILN_HEADERS_PLACE_KEY_H

#include <stdint.h>

#include "base/strbuf.h"
#include "headers/header_list.h"

void kn_place_key_start(kn_strbuf *key, kn_place_base base, uint32_t index);

/* Appends a name without ".", "..", and doubled separators where that can be seen from the text. */
void kn_place_key_append_normal(kn_strbuf *key, const char *name);

#endif

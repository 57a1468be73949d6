/* Blocks of 512 bytes: a header, the file's bytes, zeros; two blocks of zeros at the end. */
#include "ship/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diag.h"

enum { BLOCK = 512, NAME = 100, SIZE_AT = 124, SIZE = 12, SUM_AT = 148, SUM = 8, TYPE_AT = 156 };
#define MOST ((size_t)077777777777) /* what 11 octal digits hold */

static size_t padded_size(size_t size)
{
    return (size + BLOCK - 1) / BLOCK * BLOCK;
}

/* The sum of a header's bytes, those of the sum itself taken for blanks. */
static unsigned sum_header(const unsigned char *header)
{
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        sum += i >= SUM_AT && i < SUM_AT + SUM ? ' ' : header[i];
    }
    return sum;
}

static void write_header(unsigned char *header, const tar_file *file)
{
    char text[BLOCK];
    memcpy(header, file->name, strlen(file->name));
    memcpy(header + 100,
           "0000444\0"
           "0000000\0"
           "0000000\0",
           24); /* mode, owner, group */
    (void)snprintf(text, sizeof(text), "%011zo", file->size);
    memcpy(header + SIZE_AT, text, SIZE);
    memcpy(header + 136, "00000000000", 12); /* no time: equal files give equal archives */
    header[TYPE_AT] = '0';
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    (void)snprintf(text, sizeof(text), "%06o", sum_header(header));
    memcpy(header + SUM_AT, text, 7);
    header[SUM_AT + 7] = ' ';
}

kiln_status tar_make(const tar_file *files, size_t count, void **out_data, size_t *out_size,
                     kiln_diag *diag)
{
    size_t size = (size_t)2 * BLOCK;
    *out_data = NULL;
    *out_size = 0;
    for (size_t i = 0; i < count; i++) {
        if (strlen(files[i].name) >= NAME || files[i].size > MOST) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, files[i].name,
                                 "has too long a name, or is larger than 8 GiB");
        }
        size += BLOCK + padded_size(files[i].size);
    }
    unsigned char *data = calloc(1, size);
    if (data == NULL) {
        return diag_no_memory(diag, "making a layer");
    }
    unsigned char *at = data;
    for (size_t i = 0; i < count; i++) {
        write_header(at, &files[i]);
        memcpy(at + BLOCK, files[i].data, files[i].size);
        at += BLOCK + padded_size(files[i].size);
    }
    *out_data = data;
    *out_size = size;
    return KILN_OK;
}

/* An octal number of at most `size` digits. */
static bool read_octal(const unsigned char *text, size_t size, size_t *out_value)
{
    size_t value = 0, i = 0;
    while (i < size && text[i] >= '0' && text[i] <= '7') {
        value = value * 8 + (size_t)(text[i++] - '0');
    }
    *out_value = value;
    return i > 0 && (i == size || text[i] == '\0' || text[i] == ' ');
}

kiln_status tar_next(const void *data, size_t size, size_t *at, tar_file *out_file)
{
    static const unsigned char zeros[BLOCK];
    const unsigned char *header = (const unsigned char *)data + *at;
    size_t length = 0, sum = 0;
    if (size - *at < BLOCK || memcmp(header, zeros, BLOCK) == 0) {
        return *at == size || size - *at >= BLOCK ? KILN_MISS : KILN_E_CORRUPT;
    }
    if (memchr(header, '\0', NAME) == NULL || !read_octal(header + SIZE_AT, SIZE, &length) ||
        !read_octal(header + SUM_AT, SUM, &sum) || sum != sum_header(header) ||
        (header[TYPE_AT] != '0' && header[TYPE_AT] != '\0') || length > MOST ||
        padded_size(length) > size - *at - BLOCK) {
        return KILN_E_CORRUPT;
    }
    *out_file = (tar_file){(const char *)header, header + BLOCK, length};
    *at += BLOCK + padded_size(length);
    return KILN_OK;
}

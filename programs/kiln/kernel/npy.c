/* The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * Format: numpy.lib.format. Knows nothing of kernels. */
#include "kernel/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"

enum { PREFIX = 8, MAX_HEADER = 65536 };

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* Largest file that is read whole; a kernel's argument has to fit in memory anyway. */
static const size_t max_file = (size_t)1 << 36;

/* A place in the header's text. */
typedef struct npy_cursor {
    const char *at, *end;
    const char *name;
    kiln_diag *diag;
} npy_cursor;

static kiln_status refuse_array(const npy_cursor *cursor, const char *fix, const char *why)
{
    return kiln_diag_set(cursor->diag, KILN_E_INVALID, fix, cursor->name, "%s", why);
}

static void skip_header_blanks(npy_cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) != NULL &&
           *cursor->at != '\0') {
        cursor->at++;
    }
}

/* Steps over `character` if it comes next. */
static bool take_mark(npy_cursor *cursor, char character)
{
    skip_header_blanks(cursor);
    if (cursor->at < cursor->end && *cursor->at == character) {
        cursor->at++;
        return true;
    }
    return false;
}

static bool take_word(npy_cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    skip_header_blanks(cursor);
    if ((size_t)(cursor->end - cursor->at) >= length && memcmp(cursor->at, word, length) == 0) {
        cursor->at += length;
        return true;
    }
    return false;
}

/* A quoted word without escapes, at most size - 1 bytes. */
static bool take_text(npy_cursor *cursor, char *text, size_t size)
{
    skip_header_blanks(cursor);
    if (cursor->at >= cursor->end || (*cursor->at != '\'' && *cursor->at != '"')) {
        return false;
    }
    char quote = *cursor->at++;
    size_t length = 0;
    while (cursor->at < cursor->end && *cursor->at != quote) {
        if (length + 1 >= size || *cursor->at == '\\') {
            return false;
        }
        text[length++] = *cursor->at++;
    }
    text[length] = '\0';
    return take_mark(cursor, quote);
}

static bool take_number(npy_cursor *cursor, uint64_t *out_value)
{
    uint64_t value = 0;
    skip_header_blanks(cursor);
    const char *begin = cursor->at;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        unsigned digit = (unsigned)(*cursor->at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out_value = value;
    return cursor->at != begin;
}

static kiln_status read_array_type(npy_cursor *cursor, npy_array *array)
{
    char text[32];
    if (!take_text(cursor, text, sizeof(text))) {
        return refuse_array(cursor, NULL, "its type is not a simple one");
    }
    bool one_byte = strcmp(text, "|i1") == 0 || strcmp(text, "|u1") == 0;
    if (text[0] == '>') {
        return refuse_array(cursor, "save it with array.astype(array.dtype.newbyteorder('<'))",
                            "is big-endian");
    }
    for (unsigned i = 0; i < DATA_TYPE_COUNT; i++) {
        if ((text[0] == '<' || one_byte) && strcmp(text + 1, data_type_numpy((data_type)i)) == 0) {
            array->type = (data_type)i;
            return KILN_OK;
        }
    }
    return kiln_diag_set(cursor->diag, KILN_E_INVALID,
                         "kiln takes <f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8", cursor->name,
                         "holds elements of type \"%s\"", text);
}

static kiln_status read_array_shape(npy_cursor *cursor, npy_array *array)
{
    if (!take_mark(cursor, '(')) {
        return refuse_array(cursor, NULL, "its shape is not a tuple");
    }
    array->rank = 0;
    while (!take_mark(cursor, ')')) {
        uint64_t extent = 0;
        if (!take_number(cursor, &extent)) {
            return refuse_array(cursor, NULL, "its shape is not a tuple of numbers");
        }
        if (array->rank == NPY_MAX_RANK) {
            return refuse_array(cursor, NULL, "has more than 8 dimensions");
        }
        array->shape[array->rank++] = extent;
        bool comma = take_mark(cursor, ',');
        skip_header_blanks(cursor);
        bool closes = cursor->at < cursor->end && *cursor->at == ')';
        if (!comma && (!closes || array->rank == 1)) { /* "(3)" is a number, not a tuple */
            return refuse_array(cursor, NULL, "its shape is not a tuple of numbers");
        }
    }
    return KILN_OK;
}

static kiln_status read_order(npy_cursor *cursor)
{
    if (take_word(cursor, "False")) {
        return KILN_OK;
    }
    if (take_word(cursor, "True")) {
        return refuse_array(cursor, "save it with numpy.ascontiguousarray(array)",
                            "is in Fortran order");
    }
    return refuse_array(cursor, NULL, "its order is neither True nor False");
}

static kiln_status read_pair(npy_cursor *cursor, npy_array *array, unsigned *seen)
{
    char key[32];
    if (!take_text(cursor, key, sizeof(key)) || !take_mark(cursor, ':')) {
        return refuse_array(cursor, NULL, "its header is not a dictionary");
    }
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned which = 0;
    while (which < 3 && strcmp(key, keys[which]) != 0) {
        which++;
    }
    if (which == 3 || (*seen & 1u << which) != 0) {
        return refuse_array(cursor, NULL, "its header has a key that is unknown or there twice");
    }
    *seen |= 1u << which;
    if (which == 0) {
        return read_array_type(cursor, array);
    }
    return which == 1 ? read_order(cursor) : read_array_shape(cursor, array);
}

static kiln_status read_header(npy_cursor *cursor, npy_array *array)
{
    unsigned seen = 0;
    bool open = take_mark(cursor, '{');
    while (open && !take_mark(cursor, '}')) {
        kiln_status status = read_pair(cursor, array, &seen);
        if (status != KILN_OK) {
            return status;
        }
        if (!take_mark(cursor, ',')) {
            open = take_mark(cursor, '}');
            break;
        }
    }
    skip_header_blanks(cursor);
    if (!open || seen != 7 || cursor->at != cursor->end) {
        return refuse_array(cursor, NULL,
                            "its header is not a dictionary of descr, fortran_order, shape");
    }
    return KILN_OK;
}

bool npy_count(const uint64_t *shape, size_t rank, size_t element_size, size_t *out_count)
{
    size_t count = 1;
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        empty = empty || shape[i] == 0;
    }
    for (size_t i = 0; i < rank && !empty; i++) {
        if (shape[i] > PTRDIFF_MAX / element_size / count) {
            return false;
        }
        count *= (size_t)shape[i];
    }
    *out_count = empty ? 0 : count;
    return true;
}

/* Length of the part before the header's text, and of the text; 0 if the file is too short. */
static size_t measure_header(const unsigned char *bytes, size_t size, size_t *out_header)
{
    size_t prefix = bytes[6] == 1 ? PREFIX + 2 : PREFIX + 4;
    if (size < prefix) {
        return 0;
    }
    *out_header = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (prefix == PREFIX + 4) {
        *out_header |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    return prefix;
}

/* All but the data, which begins at out_array->data. */
static kiln_status parse_head(const void *bytes, size_t size, const char *name,
                              npy_array *out_array, kiln_diag *diag)
{
    const unsigned char *file = bytes;
    npy_cursor cursor = {NULL, NULL, name, diag};
    npy_array array = {0};
    size_t header = 0;
    if (size < PREFIX || memcmp(file, magic, sizeof(magic)) != 0) {
        return refuse_array(&cursor, NULL, "is not a .npy file");
    }
    if (file[6] < 1 || file[6] > 3 || file[7] != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "versions 1.0, 2.0 and 3.0 are known", name,
                             "is a .npy file of version %u.%u", file[6], file[7]);
    }
    size_t prefix = measure_header(file, size, &header);
    if (prefix == 0 || header > MAX_HEADER || header > size - prefix) {
        return refuse_array(&cursor, NULL, "is a .npy file whose header is cut short or too long");
    }
    cursor.at = (const char *)file + prefix;
    cursor.end = cursor.at + header;
    kiln_status status = read_header(&cursor, &array);
    if (status != KILN_OK) {
        return status;
    }
    size_t element = data_type_size(array.type);
    if (!npy_count(array.shape, array.rank, element, &array.count)) {
        return refuse_array(&cursor, NULL, "has a shape larger than memory");
    }
    array.size = array.count * element;
    array.data = cursor.end;
    *out_array = array;
    return KILN_OK;
}

kiln_status npy_parse(const void *bytes, size_t size, const char *name, npy_array *out_array,
                      kiln_diag *diag)
{
    npy_array array = {0};
    *out_array = array;
    kiln_status status = parse_head(bytes, size, name, &array, diag);
    if (status != KILN_OK) {
        return status;
    }
    const size_t rest = size - (size_t)((const char *)array.data - (const char *)bytes);
    if (rest != array.size) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, name,
                             "holds %zu bytes of data where its shape needs %zu", rest, array.size);
    }
    *out_array = array;
    return KILN_OK;
}

kiln_status npy_read_head(const char *path, npy_array *out_array, kiln_diag *diag)
{
    char *bytes = NULL;
    size_t size = 0;
    npy_array array = {0};
    *out_array = array;
    kiln_status status = host_read_start(path, PREFIX + 4 + MAX_HEADER, &bytes, &size, diag);
    if (status == KILN_OK) {
        status = parse_head(bytes, size, path, &array, diag);
    }
    if (status == KILN_OK) {
        array.data = NULL;
        *out_array = array;
    }
    free(bytes);
    return status;
}

kiln_status npy_read(const char *path, npy_array *out_array, kiln_diag *diag)
{
    char *bytes = NULL;
    size_t size = 0;
    *out_array = (npy_array){0};
    kiln_status status = host_read_file(path, max_file, &bytes, &size, diag);
    if (status == KILN_OK) {
        status = npy_parse(bytes, size, path, out_array, diag);
    }
    if (status == KILN_OK) {
        out_array->owned = bytes;
    } else {
        free(bytes);
    }
    return status;
}

void npy_deinit(npy_array *array)
{
    free(array->owned);
    *array = (npy_array){0};
}

/* The header's text, padded so that the data begins at a multiple of 64. */
static size_t make_header(const npy_array *array, char *text, size_t room)
{
    char shape[NPY_MAX_RANK * 24] = "";
    size_t used = 0;
    for (size_t i = 0; i < array->rank; i++) {
        int length = snprintf(shape + used, sizeof(shape) - used,
                              i == 0 ? "%" PRIu64 "," : " %" PRIu64 ",", array->shape[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    if (array->rank > 1) {
        shape[used - 1] = '\0'; /* only a tuple of one needs its comma */
    }
    int length =
        snprintf(text, room, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                 data_type_size(array->type) == 1 ? '|' : '<', data_type_numpy(array->type), shape);
    size_t end = length > 0 ? (size_t)length : 0;
    while ((PREFIX + 2 + end + 1) % 64 != 0) {
        text[end++] = ' ';
    }
    text[end++] = '\n';
    return end;
}

kiln_status npy_write(const char *path, const npy_array *array, kiln_diag *diag)
{
    enum { ROOM = 512 };
    if (array->size > SIZE_MAX - ROOM) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "the array is too large");
    }
    unsigned char *file = malloc(ROOM + array->size);
    if (file == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, path, "no memory for the file");
    }
    memcpy(file, magic, sizeof(magic));
    file[6] = 1;
    file[7] = 0;
    size_t header = make_header(array, (char *)file + PREFIX + 2, ROOM - PREFIX - 2 - 64);
    file[8] = (unsigned char)(header & 0xFFu);
    file[9] = (unsigned char)(header >> 8);
    if (array->size > 0) {
        memcpy(file + PREFIX + 2 + header, array->data, array->size);
    }
    kiln_status status = host_write_file(path, file, PREFIX + 2 + header + array->size, diag);
    free(file);
    return status;
}

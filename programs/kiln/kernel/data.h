/* Element types of kernel arguments: names, sizes, conversion, generated contents, comparison. */
#ifndef KILN_PROGRAM_DATA_H
#define KILN_PROGRAM_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kiln/status.h>

/* X(enumerator, name, size). */
#define DATA_TYPE_MAP(X)                                                                           \
    X(DATA_F16, "f16", 2)                                                                          \
    X(DATA_F32, "f32", 4)                                                                          \
    X(DATA_F64, "f64", 8)                                                                          \
    X(DATA_I8, "i8", 1)                                                                            \
    X(DATA_I16, "i16", 2)                                                                          \
    X(DATA_I32, "i32", 4)                                                                          \
    X(DATA_I64, "i64", 8)                                                                          \
    X(DATA_U8, "u8", 1)                                                                            \
    X(DATA_U16, "u16", 2)                                                                          \
    X(DATA_U32, "u32", 4)                                                                          \
    X(DATA_U64, "u64", 8)

typedef enum data_type {
#define DATA_ENUM(type, name, size) type,
    DATA_TYPE_MAP(DATA_ENUM)
#undef DATA_ENUM
        DATA_TYPE_COUNT
} data_type;

const char *data_type_name(data_type type);
size_t data_type_size(data_type type);
bool data_type_is_float(data_type type);
bool data_type_parse(const char *text, data_type *out_type);

enum { DATA_MAX_RANK = 8 };
/* Elements of a shape without zeros. False if they are more than PTRDIFF_MAX bytes. */
bool data_count(const uint64_t *shape, size_t rank, data_type type, size_t *out_count);

/* Half precision, rounded to nearest even. */
uint16_t data_f16_from(double value);
double data_f16_to(uint16_t bits);

/* A number as written: whole numbers keep their 64 bits. */
typedef struct data_number {
    bool is_real; /* it has a fraction, or is written as if it had */
    int64_t integer;
    double real; /* the same number, perhaps rounded */
} data_number;

data_number data_of_integer(int64_t value);
data_number data_of_real(double value);
/* Reads "12", "-3", "2.5", "1e-3". False if the text is not exactly one number. */
bool data_parse_number(const char *text, data_number *out_number);

/* Element `index` of an array, as a double (64-bit integers may be rounded). */
double data_get(data_type type, const void *data, size_t index);
/* Stores a number. False if the type cannot hold it: a fraction in an integer type, or a range. */
bool data_put(data_type type, void *data, size_t index, data_number number);
bool data_fits(data_type type, data_number number);

typedef enum data_init_kind {
    DATA_FILL,   /* a; where nothing is said, zeros */
    DATA_RANDOM, /* uniform: [a, b) for floats, a to b both included for integers */
    DATA_FILE,   /* the elements as they are in memory */
} data_init_kind;

typedef struct data_init {
    data_init_kind kind;
    data_number a, b;
    uint64_t seed;
    const char *file;
} data_init;

/* Fills `count` elements; not for DATA_FILE. The same init gives the same numbers everywhere: the
 * generator is splitmix64. KILN_E_INVALID: the type cannot hold what is asked for. */
kiln_status data_generate(const data_init *init, const char *name, data_type type, size_t count,
                          void *data, kiln_diag *diag);

typedef struct data_tolerance {
    double absolute, relative;
} data_tolerance;

typedef struct data_difference {
    double max_abs, max_rel; /* not finite if a value was not */
    size_t wrong;            /* elements beyond tolerance */
    size_t first_wrong;      /* index of the first of them */
    double got, wanted;      /* there */
} data_difference;

/* Compares `got` (of `type`) with `wanted` (of `wanted_type`): an element is good when
 * |got - wanted| <= absolute + relative * |wanted|, or both are the same infinity, or both NaN.
 * Adds to *difference, which begins as zeros. */
void data_compare(data_type type, const void *got, data_type wanted_type, const void *wanted,
                  size_t count, data_tolerance tolerance, data_difference *difference);

#endif

/* Numbers of eleven types. Knows nothing of kernels or files. */
#include "kernel/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
#define DATA_ROW(type, name, size) {(name), (size)},
    DATA_TYPE_MAP(DATA_ROW)
#undef DATA_ROW
};

const char *data_type_name(data_type type)
{
    return types[type].name;
}

size_t data_type_size(data_type type)
{
    return types[type].size;
}

bool data_type_is_float(data_type type)
{
    return type <= DATA_F64;
}

bool data_type_parse(const char *text, data_type *out_type)
{
    for (unsigned i = 0; i < DATA_TYPE_COUNT; i++) {
        if (strcmp(types[i].name, text) == 0) {
            *out_type = (data_type)i;
            return true;
        }
    }
    return false;
}

bool data_count(const uint64_t *shape, size_t rank, data_type type, size_t *out_count)
{
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] > PTRDIFF_MAX / types[type].size / count) {
            return false;
        }
        count *= (size_t)shape[i];
    }
    *out_count = count;
    return true;
}

uint16_t data_f16_from(double value)
{
    unsigned sign = signbit(value) ? 0x8000u : 0u;
    double size = fabs(value);
    if (isnan(value)) {
        return (uint16_t)(sign | 0x7E00u);
    }
    if (size >= 65520.0) { /* halfway to the number after the largest, and up */
        return (uint16_t)(sign | 0x7C00u);
    }
    if (size < 0x1p-14) { /* subnormal: a carry makes the smallest normal number */
        return (uint16_t)(sign | (unsigned)rint(size * 0x1p24));
    }
    int exponent = ilogb(size);
    unsigned fraction = (unsigned)rint(ldexp(size, 10 - exponent)) - 1024u;
    /* A fraction of 1024 carries into the exponent, which is what rounding up means. */
    return (uint16_t)(sign | (((unsigned)(exponent + 15) << 10) + fraction));
}

double data_f16_to(uint16_t bits)
{
    unsigned exponent = bits >> 10 & 0x1Fu;
    double fraction = (double)(bits & 0x3FFu);
    double size = 0.0;
    if (exponent == 0x1F) {
        size = fraction == 0.0 ? INFINITY : NAN;
    } else if (exponent == 0) {
        size = fraction * 0x1p-24;
    } else {
        size = ldexp(fraction + 1024.0, (int)exponent - 25);
    }
    return (bits & 0x8000u) != 0 ? -size : size;
}

data_number data_of_integer(int64_t value)
{
    return (data_number){false, value, (double)value};
}

data_number data_of_real(double value)
{
    return (data_number){true, 0, value};
}

bool data_parse_number(const char *text, data_number *out_number)
{
    char *end = NULL;
    if (strspn(text, "+-.0123456789eE") != strlen(text) || *text == '\0') {
        return false; /* neither hexadecimal nor "inf" nor blanks */
    }
    if (strpbrk(text, ".eE") == NULL) {
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (*end == '\0' && end != text && errno == 0) {
            *out_number = data_of_integer(value);
            return true;
        }
    }
    double value = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(value)) {
        return false;
    }
    *out_number = data_of_real(value);
    return true;
}

double data_get(data_type type, const void *data, size_t index)
{
    const unsigned char *from = (const unsigned char *)data + index * types[type].size;
    union {
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } value;
    memcpy(&value, from, types[type].size);
    switch (type) {
    case DATA_F16:
        return data_f16_to(value.u16);
    case DATA_F32:
        return (double)value.f32;
    case DATA_F64:
        return value.f64;
    case DATA_I8:
        return (double)(int8_t)*from;
    case DATA_U8:
        return (double)*from;
    case DATA_I16:
        return (double)value.i16;
    case DATA_U16:
        return (double)value.u16;
    case DATA_I32:
        return (double)value.i32;
    case DATA_U32:
        return (double)value.u32;
    case DATA_I64:
        return (double)value.i64;
    default:
        return (double)value.u64;
    }
}

/* u64 ends where JSON's and our numbers do. */
static bool integer_fits(data_type type, int64_t value)
{
    const bool is_signed = type < DATA_U8;
    const size_t bits = 8 * types[type].size - is_signed;
    const int64_t most = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    return value <= most && value >= (is_signed ? -most - 1 : 0);
}

bool data_fits(data_type type, data_number number)
{
    if (!data_type_is_float(type)) {
        return !number.is_real && integer_fits(type, number.integer);
    }
    double largest = type == DATA_F16 ? 65519.0 : 3.4028235677973362e38;
    return type == DATA_F64 || fabs(number.real) <= largest;
}

bool data_put(data_type type, void *data, size_t index, data_number number)
{
    unsigned char *to = (unsigned char *)data + index * types[type].size;
    if (!data_fits(type, number)) {
        return false;
    }
    if (type == DATA_F16) {
        uint16_t half = data_f16_from(number.real);
        memcpy(to, &half, sizeof(half));
    } else if (type == DATA_F32) {
        float single = (float)number.real;
        memcpy(to, &single, sizeof(single));
    } else if (type == DATA_F64) {
        memcpy(to, &number.real, sizeof(number.real));
    } else {
        /* The low bytes of two's complement, whatever the byte order. */
        uint64_t bits = (uint64_t)number.integer;
        uint8_t u8 = (uint8_t)bits;
        uint16_t u16 = (uint16_t)bits;
        uint32_t u32 = (uint32_t)bits;
        const void *from[] = {NULL, &u8, &u16, NULL, &u32, NULL, NULL, NULL, &bits};
        memcpy(to, from[types[type].size], types[type].size);
    }
    return true;
}

/* splitmix64, from its published description: a counter in steps of the golden ratio, mixed. */
static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t mixed = *state;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

static data_number random_element(const data_init *init, data_type type, uint64_t *state)
{
    double unit = (double)(next_random(state) >> 11) * 0x1p-53;
    if (!data_type_is_float(type) && !init->a.is_real && !init->b.is_real) {
        uint64_t span = (uint64_t)init->b.integer - (uint64_t)init->a.integer;
        uint64_t step = (uint64_t)(unit * ((double)span + 1.0));
        step = step > span ? span : step;
        return data_of_integer((int64_t)((uint64_t)init->a.integer + step));
    }
    return data_of_real(init->a.real + unit * (init->b.real - init->a.real));
}

/* Writes the first element to all the others. */
static void repeat_first(data_type type, size_t count, void *data)
{
    const size_t size = types[type].size;
    for (size_t done = 1; done < count;) {
        const size_t more = done < count - done ? done : count - done;
        memcpy((unsigned char *)data + done * size, data, more * size);
        done += more;
    }
}

kiln_status data_generate(const data_init *init, const char *name, data_type type, size_t count,
                          void *data, kiln_diag *diag)
{
    const bool alike = init->kind != DATA_RANDOM;
    const size_t different = alike && count > 0 ? 1 : count;
    uint64_t state = init->seed;
    for (size_t i = 0; i < different; i++) {
        const data_number number = alike ? init->a : random_element(init, type, &state);
        if (!data_put(type, data, i, number)) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, name,
                                 "%s cannot hold %.17g, element %zu", types[type].name, number.real,
                                 i);
        }
    }
    repeat_first(type, alike ? count : 0, data);
    return KILN_OK;
}

void data_compare(data_type type, const void *got, data_type wanted_type, const void *wanted,
                  size_t count, data_tolerance tolerance, data_difference *difference)
{
    for (size_t i = 0; i < count; i++) {
        double have = data_get(type, got, i);
        double want = data_get(wanted_type, wanted, i);
        if (have == want || (isnan(have) && isnan(want))) {
            continue;
        }
        double apart = fabs(have - want);
        double relative = want != 0.0 ? apart / fabs(want) : 0.0;
        /* A NaN compares false with everything: let it win here, and lose below. */
        if (!(apart <= difference->max_abs) && !isnan(difference->max_abs)) {
            difference->max_abs = apart;
        }
        if (!(relative <= difference->max_rel) && !isnan(difference->max_rel)) {
            difference->max_rel = relative;
        }
        bool good = isfinite(want) && apart <= tolerance.absolute + tolerance.relative * fabs(want);
        if (!good && difference->wrong++ == 0) {
            difference->first_wrong = i;
            difference->got = have;
            difference->wanted = want;
        }
    }
}

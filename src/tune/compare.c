/* Elements as doubles; what has the same bytes needs no arithmetic. */
#include "tune/compare.h"

#include <math.h>
#include <string.h>

size_t kn_element_size(kiln_element element)
{
    switch (element) {
    case KILN_ELEMENT_I8:
    case KILN_ELEMENT_U8:
        return 1;
    case KILN_ELEMENT_F16:
    case KILN_ELEMENT_BF16:
    case KILN_ELEMENT_I16:
    case KILN_ELEMENT_U16:
        return 2;
    case KILN_ELEMENT_F32:
    case KILN_ELEMENT_I32:
    case KILN_ELEMENT_U32:
        return 4;
    case KILN_ELEMENT_F64:
    case KILN_ELEMENT_I64:
    case KILN_ELEMENT_U64:
        return 8;
    }
    return 0;
}

static double of_half(uint16_t bits)
{
    const int exponent = (bits >> 10) & 0x1f;
    const int fraction = bits & 0x3ff;
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 0x1f) {
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    return exponent == 0 ? sign * ldexp(fraction, -24)
                         : sign * ldexp(fraction + 0x400, exponent - 25);
}

static double of_bits32(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

#define AS(type, name)                                                                             \
    type name = 0;                                                                                 \
    memcpy(&name, from, sizeof(name))

static double narrow_value(kiln_element element, const unsigned char *from)
{
    if (kn_element_size(element) == 1) {
        return element == KILN_ELEMENT_I8 ? (double)(int8_t)*from : (double)*from;
    }
    AS(uint16_t, bits);
    switch (element) {
    case KILN_ELEMENT_F16:
        return of_half(bits);
    case KILN_ELEMENT_BF16:
        return of_bits32((uint32_t)bits << 16);
    case KILN_ELEMENT_I16:
        return (double)(int16_t)bits;
    default:
        return (double)bits;
    }
}

static double word_value(kiln_element element, const unsigned char *from)
{
    AS(uint32_t, bits);
    return element == KILN_ELEMENT_F32   ? of_bits32(bits)
           : element == KILN_ELEMENT_I32 ? (double)(int32_t)bits
                                         : (double)bits;
}

static double wide_value(kiln_element element, const unsigned char *from)
{
    AS(uint64_t, bits);
    AS(double, real);
    return element == KILN_ELEMENT_F64   ? real
           : element == KILN_ELEMENT_I64 ? (double)(int64_t)bits
                                         : (double)bits;
}

static double value_of(kiln_element element, const unsigned char *from)
{
    switch (kn_element_size(element)) {
    case 8:
        return wide_value(element, from);
    case 4:
        return word_value(element, from);
    default:
        return narrow_value(element, from);
    }
}

/* How far apart; integers of 64 bits are more than a double can represent. */
static double value_distance(kiln_element element, const unsigned char *got,
                             const unsigned char *wanted)
{
    if (element == KILN_ELEMENT_I64 || element == KILN_ELEMENT_U64) {
        uint64_t a = 0;
        uint64_t b = 0;
        memcpy(&a, got, sizeof(a));
        memcpy(&b, wanted, sizeof(b));
        const bool less = element == KILN_ELEMENT_I64 ? (int64_t)a < (int64_t)b : a < b;
        return (double)(less ? b - a : a - b);
    }
    const double a = value_of(element, got);
    const double b = value_of(element, wanted);
    if (isnan(a) && isnan(b)) {
        return 0;
    }
    const double apart = fabs(a - b);
    return isnan(apart) ? (a == b ? 0 : (double)INFINITY) : apart;
}

kn_difference kn_compare(const kiln_tune_output *output, const void *got, const void *wanted,
                         size_t count)
{
    kn_difference result = {0};
    const size_t size = kn_element_size(output->element);
    const unsigned char *a = (const unsigned char *)got;
    const unsigned char *b = (const unsigned char *)wanted;
    if (memcmp(a, b, size * count) == 0) {
        return result;
    }
    for (size_t i = 0; i < count; i++, a += size, b += size) {
        if (memcmp(a, b, size) == 0) {
            continue;
        }
        const double apart = value_distance(output->element, a, b);
        const double value = value_of(output->element, b);
        const double scale = isfinite(value) ? fabs(value) : 0;
        result.largest = apart > result.largest ? apart : result.largest;
        if (!(apart <= output->absolute + output->relative * scale)) {
            if (result.wrong == 0) {
                result.first = i;
                result.got = value_of(output->element, a);
                result.wanted = value;
            }
            result.wrong++;
        }
    }
    return result;
}

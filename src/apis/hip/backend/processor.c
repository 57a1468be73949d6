/* See processor.h. */
#include "apis/hip/backend/processor.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t mach;
} rows[] = {
    {"gfx600", 0x20},  {"gfx601", 0x21},  {"gfx602", 0x3a},  {"gfx700", 0x22},  {"gfx701", 0x23},
    {"gfx702", 0x24},  {"gfx703", 0x25},  {"gfx704", 0x26},  {"gfx705", 0x3b},  {"gfx801", 0x28},
    {"gfx802", 0x29},  {"gfx803", 0x2a},  {"gfx805", 0x3c},  {"gfx810", 0x2b},  {"gfx900", 0x2c},
    {"gfx902", 0x2d},  {"gfx904", 0x2e},  {"gfx906", 0x2f},  {"gfx908", 0x30},  {"gfx909", 0x31},
    {"gfx90a", 0x3f},  {"gfx90c", 0x32},  {"gfx940", 0x40},  {"gfx941", 0x4b},  {"gfx942", 0x4c},
    {"gfx950", 0x4f},  {"gfx1010", 0x33}, {"gfx1011", 0x34}, {"gfx1012", 0x35}, {"gfx1013", 0x42},
    {"gfx1030", 0x36}, {"gfx1031", 0x37}, {"gfx1032", 0x38}, {"gfx1033", 0x39}, {"gfx1034", 0x3e},
    {"gfx1035", 0x3d}, {"gfx1036", 0x45}, {"gfx1100", 0x41}, {"gfx1101", 0x46}, {"gfx1102", 0x47},
    {"gfx1103", 0x44}, {"gfx1150", 0x43}, {"gfx1151", 0x4a}, {"gfx1152", 0x55}, {"gfx1153", 0x58},
    {"gfx1200", 0x48}, {"gfx1201", 0x4e}, {"gfx1250", 0x49},
};

uint32_t kn_hip_processor_mach(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].mach;
        }
    }
    return 0;
}

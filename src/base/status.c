/* Names and texts of the status codes, from the one list in kiln/status.h. */
#include "kiln/status.h"

const char *kiln_status_name(kiln_status status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                                             \
    case name:                                                                                     \
        return #name;
        KILN_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "KILN_E_UNKNOWN";
}

const char *kiln_status_text(kiln_status status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                             \
    case name:                                                                                     \
        return text;
        KILN_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

/* From the library's statuses to the command's exit codes. */
#include "cli/exit.h"

exit_code exit_of(kiln_status status)
{
    switch (status) {
    case KILN_OK:
        return EXIT_FINE;
    case KILN_E_COMPILE:
    case KILN_E_REJECTED:
    case KILN_E_DEVICE_LOST:
        return EXIT_FAILED;
    case KILN_MISS:
    case KILN_E_INVALID:
        return EXIT_USAGE;
    case KILN_E_UNSUPPORTED:
    case KILN_E_UNAVAILABLE:
    case KILN_E_TIMEOUT:
    case KILN_E_BUSY:
        return EXIT_UNAVAILABLE;
    case KILN_E_CORRUPT:
        return EXIT_DAMAGE;
    default:
        return EXIT_TROUBLE;
    }
}

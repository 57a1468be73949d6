/* VALUE comes from the command line, SCALE from a header that the test writes. */
#include <kiln_kernel.h>

#include <scale.inc>

KILN_KERNEL(value, KILN_OUT(int, out))
{
    KILN_ITEMS_X(i)
    {
        out[i] = VALUE * SCALE;
    }
}

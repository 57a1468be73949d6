/* Line 5 is invalid. */
#include <kiln_kernel.h>
KILN_KERNEL(broken, KILN_OUT(int, out))
{
    out[0] = this_is_not_declared;
}

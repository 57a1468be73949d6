/* y += a * x, one item an element. */
#include <kiln_kernel.h>

KILN_KERNEL(saxpy, KILN_VALUE(float, a), KILN_IN(float, x), KILN_INOUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = a * x[i] + y[i];
    }
}

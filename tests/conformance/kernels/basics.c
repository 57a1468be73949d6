/* saxpy: a value and two buffers. shape: the ids of every work-item. reverse: eight items exchange
 * what they read through work-group memory. */
#include <kiln_kernel.h>

KILN_KERNEL(saxpy, KILN_VALUE(float, a), KILN_IN(float, x), KILN_INOUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = a * x[i] + y[i];
    }
}

KILN_KERNEL(shape, KILN_OUT(int, out))
{
    KILN_ITEMS_XYZ(x, y, z)
    {
        size_t i = (z * KILN_GLOBAL_SIZE(1) + y) * KILN_GLOBAL_SIZE(0) + x;
        out[i] = (int)(x + 100 * y + 10000 * z);
    }
}

KILN_KERNEL(reverse, KILN_IN(int, in), KILN_OUT(int, out), KILN_LOCAL(int, tmp))
{
    KILN_ITEMS_X(i)
    {
        tmp[KILN_LOCAL_ID(0, i)] = in[i];
    }
    KILN_ITEMS_X(k)
    {
        out[k] = tmp[KILN_LOCAL_SIZE(0) - 1 - KILN_LOCAL_ID(0, k)];
    }
}

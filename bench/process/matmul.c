#include <kiln_kernel.h>

KILN_KERNEL(matmul, KILN_IN(float, a), KILN_IN(float, b), KILN_OUT(float, c), KILN_VALUE(int, n))
{
    KILN_ITEMS_XY(x, y)
    {
        float sum = 0.0f;
        for (int i = 0; i < n; i++) {
            sum += a[(int)y * n + i] * b[i * n + (int)x];
        }
        c[(int)y * n + (int)x] = sum;
    }
}

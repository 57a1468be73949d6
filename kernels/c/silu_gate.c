/* y = silu(gate) * up, one item an element. */
#include <kiln_kernel.h>

#include "c/activation.h"

KILN_KERNEL(silu_gate, KILN_IN(float, gate), KILN_IN(float, up), KILN_OUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = activation_silu(gate[i]) * up[i];
    }
}

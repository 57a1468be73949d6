/* Nothing runs when the library goes: see unload.h. */
#include "sys/unload.h"

void kn_unload_set(kn_unload_fn *run)
{
    (void)run;
}

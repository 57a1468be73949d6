/* <kiln_kernel.h> for kernels that are compiled into the program; at run time kiln brings its own.
 */
#include "kiln/cpu.h"

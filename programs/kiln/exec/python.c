/* See python.h. */
#include "exec/python.h"

#include <stdlib.h>

bool exec_python_add(exec_environment *environment)
{
    return getenv("KILN_PYTHON") != NULL || exec_environment_add(environment, "KILN_PYTHON", "1");
}

const char *exec_python_bytecode(void)
{
    const char *off = getenv("PYTHONDONTWRITEBYTECODE");
    return off != NULL && *off != '\0'
               ? "PYTHONDONTWRITEBYTECODE is set: Python compiles what it imports at every start, "
                 "which "
                 "costs PyTorch seconds (unset it, or compile when the image is built)"
               : NULL;
}

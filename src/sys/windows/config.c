/* Windows has no configuration files of kiln's: the registry holds variables for all programs. */
#include "sys/config.h"

const kn_config_file *kn_config_get(size_t index)
{
    (void)index;
    return NULL;
}

const kn_config_file *kn_config_find(const char *variable, const kn_config_row **out_row)
{
    (void)variable;
    (void)out_row;
    return NULL;
}

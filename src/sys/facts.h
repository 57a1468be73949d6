/* What the system says of a file, as kiln keeps it. For src/sys alone. */
#ifndef KILN_SYS_FACTS_H
#define KILN_SYS_FACTS_H

#include "sys/file.h"

int kn_held_folder_handle(const kn_held_folder *folder);

struct stat;
void kn_file_take_facts(const struct stat *from, kn_file_facts *out);

#endif

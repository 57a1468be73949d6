/* The first page of a file as memory that all processes share which map it: words that outlive the
 * process that wrote them, and cost no call of the system.
 *
 * A fork's child does not have it, and gets the answer that it is not ready.
 *
 * Who touches a page of a file that was cut short meanwhile, or for which the file system finds no
 * room, is killed (SIGBUS). So nothing of it is read or written unless kn_shared_page_is_ready has
 * just said that it can be: there the system itself writes to the page, and reports an error. */
#ifndef KILN_SYS_SHARED_PAGE_H
#define KILN_SYS_SHARED_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys/lock.h"

#define KN_SHARED_PAGE_SIZE 4096u
#define KN_SHARED_PAGE_WORDS 511u /* the last one is the system's */

typedef _Atomic uint64_t kn_shared_word;

/* Maps the page of an open file, and makes a shorter file that long. The mapping stays when the
 * file is closed. KILN_E_UNSUPPORTED where there is no such memory (Windows); KILN_E_IO. */
kiln_status kn_shared_page_map(const kn_lock_file *file, kn_shared_word **out_words,
                               kiln_diag *diag);
void kn_shared_page_unmap(kn_shared_word *words); /* NULL is fine */

bool kn_shared_page_is_ready(kn_shared_word *words);

#endif

/* There is none: a section of a file is not written to without the file's handle, and goes with the
 * last process. See shared_page.h. */
#include "sys/shared_page.h"

kiln_status kn_shared_page_map(const kn_lock_file *file, kn_shared_word **out_words,
                               kiln_diag *diag)
{
    (void)file;
    *out_words = NULL;
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "a shared page",
                         "this system has no memory that outlives a process");
}

void kn_shared_page_unmap(kn_shared_word *words)
{
    (void)words;
}

bool kn_shared_page_is_ready(kn_shared_word *words)
{
    (void)words;
    return false;
}

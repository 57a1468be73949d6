/* A page of a file, mapped for writing; see shared_page.h. */
#include "sys/shared_page.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/facts.h"
#include "sys/fail.h"

/* Bytes are written, and not a hole made: a page of a hole finds its room when it is touched. */
static kiln_status fill_page(int fd, uint64_t size, kiln_diag *diag)
{
    static const char zeros[KN_SHARED_PAGE_SIZE];
    if (size < sizeof zeros && !kn_file_may_reach(sizeof zeros)) {
        return kn_fail(diag, KILN_E_IO, errno, "cannot write", "a shared page");
    }
    while (size < sizeof zeros) {
        const ssize_t written = pwrite(fd, zeros + size, sizeof zeros - size, (off_t)size);
        if (written < 0 && errno != EINTR) {
            return kn_fail(diag, KILN_E_IO, errno, "cannot write", "a shared page");
        }
        size += written > 0 ? (uint64_t)written : 0;
    }
    return KILN_OK;
}

kiln_status kn_shared_page_map(const kn_lock_file *file, kn_shared_word **out_words,
                               kiln_diag *diag)
{
    uint64_t size = 0;
    const int fd = kn_lock_file_handle(file, &size);
    *out_words = NULL;
    kiln_status status = fill_page(fd, size, diag);
    if (status != KILN_OK) {
        return status;
    }
    void *page = mmap(NULL, KN_SHARED_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        return kn_fail(diag, KILN_E_IO, errno, "cannot map", "a shared page");
    }
    /* It keeps the file open, with its locks; a child that had it would keep them for its parent.
     */
    (void)madvise(page, KN_SHARED_PAGE_SIZE, MADV_DONTFORK);
    *out_words = page;
    return KILN_OK;
}

void kn_shared_page_unmap(kn_shared_word *words)
{
    if (words != NULL) {
        (void)munmap((void *)words, KN_SHARED_PAGE_SIZE);
    }
}

bool kn_shared_page_is_ready(kn_shared_word *words)
{
    /* The cheapest call that stores where it is asked to. */
    return syscall(SYS_getcpu, (void *)(words + KN_SHARED_PAGE_WORDS), NULL, NULL) == 0;
}

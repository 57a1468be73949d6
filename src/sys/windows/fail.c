/* The words for failed system calls; see fail.h. Here an error is what GetLastError() says. */
#include "sys/fail.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/windows/wide.h"

#define MAX_WORDS 512

static const char *fix_for(DWORD error)
{
    switch (error) {
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
    case 1295: /* ERROR_DISK_QUOTA_EXCEEDED, which the headers lack */
        return "free some space there, or choose a directory on another drive";
    case ERROR_ACCESS_DENIED:
        return "check the owner and the permissions of it and of the directories above it";
    case ERROR_WRITE_PROTECT:
        return "choose a directory that can be written to";
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
        return "find the program that keeps it open (a virus scanner, an indexer, a backup)";
    case ERROR_FILENAME_EXCED_RANGE:
        return "use a shorter path";
    case ERROR_NOT_SAME_DEVICE:
        return "keep both on one drive";
    default:
        return NULL;
    }
}

/* The system's sentence without its line end, or the number alone. */
static void put_words(DWORD error, char *words, size_t size)
{
    wchar_t text[MAX_WORDS];
    DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                                  error, 0, text, MAX_WORDS, NULL);
    while (length > 0 && (text[length - 1] <= L' ' || text[length - 1] == L'.')) {
        length--;
    }
    text[length] = L'\0';
    char *narrow = length > 0 ? kn_narrow(text) : NULL;
    if (narrow != NULL) {
        kn_text_putf(words, size, "%s (error %lu)", narrow, (unsigned long)error);
    } else {
        kn_text_putf(words, size, "error %lu", (unsigned long)error);
    }
    free(narrow);
}

kiln_status kn_fail(kiln_diag *diag, kiln_status status, int error, const char *verb,
                    const char *object)
{
    /* Every path takes memory here: what comes of that is not the file's fault. */
    status = error == ERROR_NOT_ENOUGH_MEMORY ? KILN_E_NOMEM : status;
    if (diag == NULL) {
        return status;
    }
    char what[sizeof diag->what];
    char words[MAX_WORDS];
    kn_text_putf(what, sizeof what, "%s %s", verb, object);
    put_words((DWORD)error, words, sizeof words);
    (void)kiln_diag_set(diag, status, fix_for((DWORD)error), what, "%s", words);
    kiln_diag_set_vendor_code(diag, error);
    return status;
}

kiln_status kn_fail_or_miss(kiln_diag *diag, int error, const char *verb, const char *object)
{
    return kn_means_missing((DWORD)error) ? KILN_MISS
                                          : kn_fail(diag, KILN_E_IO, error, verb, object);
}

kiln_status kn_fail_nomem(kiln_diag *diag, const char *verb, const char *object)
{
    return kn_fail(diag, KILN_E_NOMEM, ERROR_NOT_ENOUGH_MEMORY, verb, object);
}

/* Who may change a file or directory. For src/sys/windows alone. */
#ifndef KILN_SYS_WINDOWS_ACCESS_H
#define KILN_SYS_WINDOWS_ACCESS_H

#include <stdbool.h>
#include <windows.h>

typedef enum kn_access {
    KN_ACCESS_OWN,          /* of this user's, and nobody else may write */
    KN_ACCESS_FOREIGN,      /* it belongs to another user */
    KN_ACCESS_OTHERS_WRITE, /* another user may write */
    KN_ACCESS_OTHERS_READ,  /* another user may read, where that was asked for */
    KN_ACCESS_UNPROTECTED,  /* the file system, or the file, has no list of who may what */
    KN_ACCESS_UNKNOWN,      /* the system does not say */
} kn_access;

/* Looks at the owner and the access list of what is open (READ_CONTROL). The system, the
 * administrators and the owner himself are nobody else. `out_who`, of 128 bytes, gets the account's
 * name or number. */
kn_access kn_access_of(HANDLE handle, char out_who[128]);
/* The same for what nobody else may read either. */
kn_access kn_access_of_secret(HANDLE handle, char out_who[128]);

/* What a file is made with that nobody else may read: lpSecurityDescriptor is yours, LocalFree().
 * False, and the last error. */
bool kn_access_make_private(SECURITY_ATTRIBUTES *out_attributes);

/* The number of this process's user ("S-1-5-..."), and whether it has an administrator's rights. */
void kn_access_user(char *text, size_t size);

#endif

/* Owners and access lists; see access.h. */
#include "sys/windows/access.h"

#include <aclapi.h>
#include <sddl.h>
#include <stdlib.h>
#include <wchar.h>

#include "base/text.h"
#include "sys/windows/wide.h"

#define WHO_SIZE 128
#define RID_DOMAIN_ADMINS 512

/* What allows another user to change what is in a file or directory, or take that right. */
#define WRITE_RIGHTS                                                                               \
    (FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER |            \
     GENERIC_WRITE | GENERIC_ALL)
#define READ_RIGHTS (FILE_READ_DATA | GENERIC_READ)

/* A SID with its largest size, as the system's calls want it. */
typedef struct sid {
    union {
        SID sid;
        BYTE bytes[SECURITY_MAX_SID_SIZE];
    } u;
} sid;

/* The user of this process. */
static bool own_sid(sid *out)
{
    HANDLE token = NULL;
    BYTE buffer[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
    DWORD size = 0;
    if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) == 0) {
        return false;
    }
    bool good = GetTokenInformation(token, TokenUser, buffer, sizeof buffer, &size) != 0;
    (void)CloseHandle(token);
    TOKEN_USER *user = (TOKEN_USER *)(void *)buffer;
    return good && CopySid(sizeof out->u.bytes, out->u.bytes, user->User.Sid) != 0;
}

/* The last number of an account of a domain or machine (S-1-5-21-a-b-c-RID), 0 for another. */
static DWORD rid_of(PSID who)
{
    DWORD count = *GetSidSubAuthorityCount(who);
    return count == 5 && *GetSidSubAuthority(who, 0) == SECURITY_NT_NON_UNIQUE
               ? *GetSidSubAuthority(who, 4)
               : 0;
}

/* Users that could do anything here anyway, and the names that stand for the owner. */
static bool is_trusted(PSID who, PSID own)
{
    static const WELL_KNOWN_SID_TYPE kinds[] = {WinLocalSystemSid, WinBuiltinAdministratorsSid,
                                                WinCreatorOwnerSid, WinCreatorOwnerRightsSid};
    if (EqualSid(who, own) || rid_of(who) == RID_DOMAIN_ADMINS) {
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (IsWellKnownSid(who, kinds[i])) {
            return true;
        }
    }
    return false;
}

static void put_name(PSID who, char *out_who)
{
    wchar_t name[64];
    wchar_t domain[64];
    DWORD name_size = 64;
    DWORD domain_size = 64;
    SID_NAME_USE use;
    wchar_t *number = NULL;
    char *text = NULL;
    if (LookupAccountSidW(NULL, who, name, &name_size, domain, &domain_size, &use) != 0) {
        text = kn_narrow(name);
    } else if (ConvertSidToStringSidW(who, &number) != 0) {
        text = kn_narrow(number);
        (void)LocalFree(number);
    }
    kn_text_put(out_who, WHO_SIZE, text != NULL ? text : "somebody");
    free(text);
}

/* The first account of the list that has one of `rights` and is nobody of ours, or NULL. */
static PSID find_stranger(ACL *list, PSID own, DWORD rights)
{
    for (WORD i = 0; i < list->AceCount; i++) {
        void *at = NULL;
        if (GetAce(list, i, &at) == 0) {
            continue;
        }
        ACCESS_ALLOWED_ACE *ace = at;
        /* Denials give nothing; what is for heirs only is not for this one. */
        if (ace->Header.AceType == ACCESS_ALLOWED_ACE_TYPE &&
            (ace->Header.AceFlags & INHERIT_ONLY_ACE) == 0 && (ace->Mask & rights) != 0 &&
            !is_trusted((PSID)&ace->SidStart, own)) {
            return (PSID)&ace->SidStart;
        }
    }
    return NULL;
}

static kn_access judge_handle(HANDLE handle, bool secret, char out_who[WHO_SIZE])
{
    sid own;
    PSID owner = NULL;
    PACL list = NULL;
    PSECURITY_DESCRIPTOR whole = NULL;
    kn_access access = KN_ACCESS_OWN;

    kn_text_put(out_who, WHO_SIZE, "somebody");
    if (!own_sid(&own) || GetSecurityInfo(handle, SE_FILE_OBJECT,
                                          OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                                          &owner, NULL, &list, NULL, &whole) != ERROR_SUCCESS) {
        return KN_ACCESS_UNKNOWN;
    }
    PSID writer = list != NULL ? find_stranger(list, own.u.bytes, WRITE_RIGHTS) : NULL;
    PSID reader = list != NULL && secret ? find_stranger(list, own.u.bytes, READ_RIGHTS) : NULL;
    if (owner == NULL || list == NULL) {
        access = KN_ACCESS_UNPROTECTED;
    } else if (!is_trusted(owner, own.u.bytes)) {
        put_name(owner, out_who);
        access = KN_ACCESS_FOREIGN;
    } else if (writer != NULL) {
        put_name(writer, out_who);
        access = KN_ACCESS_OTHERS_WRITE;
    } else if (reader != NULL) {
        put_name(reader, out_who);
        access = KN_ACCESS_OTHERS_READ;
    }
    (void)LocalFree(whole);
    return access;
}

kn_access kn_access_of(HANDLE handle, char out_who[WHO_SIZE])
{
    return judge_handle(handle, false, out_who);
}

kn_access kn_access_of_secret(HANDLE handle, char out_who[WHO_SIZE])
{
    return judge_handle(handle, true, out_who);
}

bool kn_access_make_private(SECURITY_ATTRIBUTES *out_attributes)
{
    sid own;
    wchar_t text[256];
    wchar_t *number = NULL;
    *out_attributes = (SECURITY_ATTRIBUTES){.nLength = sizeof *out_attributes};
    if (!own_sid(&own) || ConvertSidToStringSidW(own.u.bytes, &number) == 0) {
        return false;
    }
    /* Nothing is inherited; the user has all rights, and nobody else any. */
    int length = swprintf(text, sizeof text / sizeof *text, L"D:P(A;;FA;;;%ls)", number);
    (void)LocalFree(number);
    return length > 0 &&
           ConvertStringSecurityDescriptorToSecurityDescriptorW(
               text, SDDL_REVISION_1, &out_attributes->lpSecurityDescriptor, NULL) != 0;
}

void kn_access_user(char *text, size_t size)
{
    sid own;
    wchar_t *number = NULL;
    char *narrow = NULL;
    HANDLE token = NULL;
    TOKEN_ELEVATION raised = {0};
    DWORD got = 0;
    if (own_sid(&own) && ConvertSidToStringSidW(own.u.bytes, &number) != 0) {
        narrow = kn_narrow(number);
        (void)LocalFree(number);
    }
    if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) != 0) {
        (void)GetTokenInformation(token, TokenElevation, &raised, sizeof raised, &got);
        (void)CloseHandle(token);
    }
    kn_text_putf(text, size, "%s:%s", narrow != NULL ? narrow : "?",
                 raised.TokenIsElevated != 0 ? "administrator" : "");
    free(narrow);
}

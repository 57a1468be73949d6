/* authority.exe FILE: a certificate, as its bytes (DER), becomes an authority that this user
 * trusts. */
#include <stdio.h>
#include <windows.h>

#include <wincrypt.h>

int main(int argc, char **argv)
{
    BYTE data[4096];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    const size_t size = file != NULL ? fread(data, 1, sizeof data, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    HCERTSTORE store =
        CertOpenStore(CERT_STORE_PROV_SYSTEM_W, 0, 0, CERT_SYSTEM_STORE_CURRENT_USER, L"Root");
    if (store == NULL ||
        CertAddEncodedCertificateToStore(store, X509_ASN_ENCODING, data, (DWORD)size,
                                         CERT_STORE_ADD_REPLACE_EXISTING, NULL) == 0) {
        (void)fprintf(stderr, "authority: %s was not added\n", argc == 2 ? argv[1] : "nothing");
        return 1;
    }
    return CertCloseStore(store, 0) != 0 ? 0 : 1;
}

/* TLS of libcurl over Schannel: who is trusted, and what is shown; see transfer.h.
 *
 * With a file of authorities libcurl checks the server's certificate itself. Without one Schannel
 * does, by the system's list; Wine's does not. So it is checked here again, before a byte of a
 * request, or of a password, is sent. */
#include "kiln-remotes/transfer.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include <wincrypt.h>

#define SECURITY_WIN32
#include <schannel.h>
#include <security.h>

#define HOST_ROOM 512

/* The certificate that the server has shown, or NULL. */
static PCCERT_CONTEXT certificate_of(CURL *easy)
{
    struct curl_tlssessioninfo *session = NULL;
    PCCERT_CONTEXT certificate = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL ||
        session->backend != CURLSSLBACKEND_SCHANNEL || session->internals == NULL) {
        return NULL;
    }
    PCtxtHandle context = session->internals;
    return QueryContextAttributesW(context, SECPKG_ATTR_REMOTE_CERT_CONTEXT, &certificate) ==
                   SEC_E_OK
               ? certificate
               : NULL;
}

/* What the URL calls the server; and whether it is TLS at all. */
static bool name_host(CURL *easy, wchar_t out_host[HOST_ROOM], bool *out_tls)
{
    const char *url = NULL;
    char *scheme = NULL, *host = NULL;
    CURLU *parts = curl_url();
    *out_tls = true;
    bool good = parts != NULL &&
                curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url != NULL &&
                curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
                curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK;
    if (good) {
        const size_t length = strlen(host);
        const bool bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']';
        if (bracketed) {
            host[length - 1] = '\0';
        }
        *out_tls = strcmp(scheme, "https") == 0;
        good = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, host + (bracketed ? 1 : 0), -1,
                                   out_host, HOST_ROOM) > 0;
    }
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(parts);
    return good;
}

/* Of an authority that the system knows, in its time, for servers, and for this one. */
static bool is_certificate_good(PCCERT_CONTEXT certificate, wchar_t *host)
{
    char usage[] = szOID_PKIX_KP_SERVER_AUTH;
    char *usages[] = {usage};
    CERT_CHAIN_PARA wanted = {.cbSize = sizeof wanted};
    wanted.RequestedUsage.dwType = USAGE_MATCH_TYPE_OR;
    wanted.RequestedUsage.Usage.cUsageIdentifier = 1;
    wanted.RequestedUsage.Usage.rgpszUsageIdentifier = usages;
    SSL_EXTRA_CERT_CHAIN_POLICY_PARA name = {.dwAuthType = AUTHTYPE_SERVER, .pwszServerName = host};
    name.cbSize = sizeof name;
    CERT_CHAIN_POLICY_PARA policy = {.cbSize = sizeof policy, .pvExtraPolicyPara = &name};
    CERT_CHAIN_POLICY_STATUS verdict = {.cbSize = sizeof verdict};
    PCCERT_CHAIN_CONTEXT chain = NULL;
    bool good =
        CertGetCertificateChain(NULL, certificate, NULL, certificate->hCertStore, &wanted, 0, NULL,
                                &chain) != 0 &&
        chain->TrustStatus.dwErrorStatus == CERT_TRUST_NO_ERROR &&
        CertVerifyCertificateChainPolicy(CERT_CHAIN_POLICY_SSL, chain, &policy, &verdict) != 0 &&
        verdict.dwError == 0;
    if (chain != NULL) {
        CertFreeCertificateChain(chain);
    }
    return good;
}

static int check_server(void *user, char *remote_ip, char *local_ip, int remote_port,
                        int local_port)
{
    CURL *easy = user;
    wchar_t host[HOST_ROOM];
    bool tls = true;
    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    if (!name_host(easy, host, &tls)) {
        return CURL_PREREQFUNC_ABORT;
    }
    if (!tls) {
        return CURL_PREREQFUNC_OK;
    }
    PCCERT_CONTEXT certificate = certificate_of(easy);
    const bool good = certificate != NULL && is_certificate_good(certificate, host);
    if (certificate != NULL) {
        (void)CertFreeCertificateContext(certificate);
    }
    return good ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

void transfer_set_tls(CURL *easy, const kiln_remote_server *server)
{
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    /* Schannel asks whether a certificate was revoked. One whose authority does not answer is
     * accepted: private authorities often have no such service. */
    (void)curl_easy_setopt(easy, CURLOPT_SSL_OPTIONS, (long)CURLSSLOPT_REVOKE_BEST_EFFORT);
    if (server->ca_file[0] != '\0') {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, server->ca_file);
    } else {
        (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, check_server);
        (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, easy);
    }
    if (server->cert_file[0] != '\0') {
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT,
                               server->cert_file); /* PKCS #12: with its key */
    }
}

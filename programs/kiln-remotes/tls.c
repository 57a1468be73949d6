/* TLS of libcurl: who is trusted, and what is shown; see transfer.h. */
#include "transfer.h"

void transfer_set_tls(CURL *easy, const kiln_remote_server *server)
{
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (server->ca_file[0] != '\0') {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, server->ca_file);
    }
    if (server->cert_file[0] != '\0') {
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, server->cert_file);
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY,
                               server->key_file[0] != '\0' ? server->key_file : server->cert_file);
    }
}

/* What the modules over libcurl share: running what is set up with the limits of a request, what
 * its codes mean, and who is trusted under TLS. */
#ifndef KILN_REMOTES_TRANSFER_H
#define KILN_REMOTES_TRANSFER_H

#include <stdint.h>

#include <curl/curl.h>

#include <kiln/sys/remote.h>

/* Milliseconds of a clock that only goes forward. */
uint64_t transfer_now(void);
/* Notes why a call fails. Returns `status`. */
kiln_status transfer_fail(kiln_remote_call *call, kiln_status status, const char *why);

/* Runs `easy`, which is in `multi`, until it is finished, heeding `stop` and the call's limit.
 * KILN_OK: `*out_code` says how it ended. Else KILN_E_CANCELLED, KILN_E_TIMEOUT,
 * KILN_E_UNAVAILABLE. */
kiln_status transfer_run(CURLM *multi, CURL *easy, kiln_remote_call *call, CURLcode *out_code);

/* TLS 1.2 or newer, and the server's files of certificates; in tls.c. */
void transfer_set_tls(CURL *easy, const kiln_remote_server *server);

/* What a code other than CURLE_OK means where it says nothing about an answer. `detail` is
 * libcurl's own text, or "". */
kiln_status transfer_meaning(CURLcode code, const char *detail, kiln_remote_call *call);

#endif

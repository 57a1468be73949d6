/* Transfers of libcurl with kiln's limits; see transfer.h. */
#include "transfer.h"

#include <stdio.h>
#include <time.h>

#define SLICE_MS 50

uint64_t transfer_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

kiln_status transfer_fail(kiln_remote_call *call, kiln_status status, const char *why)
{
    (void)snprintf(call->why, sizeof call->why, "%s", why);
    return status;
}

kiln_status transfer_run(CURLM *multi, CURL *easy, kiln_remote_call *call, CURLcode *out_code)
{
    int running = 1, left = 0;
    *out_code = CURLE_OK;
    const uint64_t deadline =
        transfer_now() + call->limit_ms + SLICE_MS; /* libcurl's own comes first */
    while (running != 0) {
        if (call->stop != NULL && call->stop(call->user)) {
            return KILN_E_CANCELLED;
        }
        if (transfer_now() > deadline) {
            return transfer_fail(call, KILN_E_TIMEOUT, "the server did not answer in time");
        }
        if (curl_multi_perform(multi, &running) != CURLM_OK ||
            (running != 0 && curl_multi_poll(multi, NULL, 0, SLICE_MS, NULL) != CURLM_OK)) {
            return KILN_E_UNAVAILABLE;
        }
    }
    const CURLMsg *message = curl_multi_info_read(multi, &left);
    if (message == NULL || message->msg != CURLMSG_DONE || message->easy_handle != easy) {
        return KILN_E_UNAVAILABLE;
    }
    *out_code = message->data.result;
    return KILN_OK;
}

kiln_status transfer_meaning(CURLcode code, const char *detail, kiln_remote_call *call)
{
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return transfer_fail(call, KILN_E_TIMEOUT, "the server did not answer in time");
    case CURLE_ABORTED_BY_CALLBACK: /* that of windows/tls.c */
        return transfer_fail(call, KILN_E_UNAVAILABLE,
                             "the server's certificate was rejected: it is of no authority that "
                             "Windows knows, has run out, or is another host's");
    case CURLE_OUT_OF_MEMORY:
        return transfer_fail(call, KILN_E_NOMEM, "out of memory");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        /* Only the detail says what is wrong with the certificate. */
        return transfer_fail(call, KILN_E_UNAVAILABLE,
                             detail[0] != '\0' ? detail : curl_easy_strerror(code));
    default:
        return transfer_fail(call, KILN_E_UNAVAILABLE, curl_easy_strerror(code));
    }
}

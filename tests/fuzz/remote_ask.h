/* What the fuzzers of remotes share: the questions every module takes, whatever the answer. A value
 * that came is believed or not as usual. */
#ifndef KILN_TESTS_FUZZ_REMOTE_ASK_H
#define KILN_TESTS_FUZZ_REMOTE_ASK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/sys/remote.h"
#include "store/remote/trust.h"

#define REMOTE_NAME "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REMOTE_QUESTIONS 4u

static inline void remote_unseal(void *bytes, size_t size)
{
    kn_trust trust = {.policy = KN_TRUST_ANY};
    const kn_unpacking nowhere = {0};
    kiln_blob *blob = NULL;
    kiln_key key;
    memset(&key, 0, sizeof key);
    if (kn_signer_create(NULL, NULL, &trust.signer, NULL) != KILN_OK) {
        free(bytes);
        return;
    }
    (void)kn_trust_unseal(&trust, true, &nowhere, &key, bytes, size, &blob, NULL);
    kiln_blob_release(blob);
    kn_trust_close(&trust);
}

/* One of the REMOTE_QUESTIONS; `sure` is put's last argument. */
static inline void remote_ask(const kiln_remote_module_ops *ops, void *connection,
                              kiln_remote_call *call, unsigned question, bool sure)
{
    void *bytes = NULL;
    size_t size = 0;
    int64_t clock = 0;
    switch (question) {
    case 0:
        if (ops->get(connection, call, REMOTE_NAME, &bytes, &size) == KILN_OK) {
            remote_unseal(bytes, size);
        }
        break;
    case 1:
        (void)ops->ping(connection, call, &clock);
        break;
    case 2:
        (void)ops->put(connection, call, REMOTE_NAME, "bytes", 5, sure);
        break;
    default:
        (void)ops->remove(connection, call, REMOTE_NAME);
        break;
    }
}

#endif

/* Certificates for the tests of TLS: an authority of the test's own, and what it signs. */
#ifndef KILN_TESTS_REMOTE_CERTIFICATES_H
#define KILN_TESTS_REMOTE_CERTIFICATES_H

#include <stdio.h>
#include <stdlib.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "support/cmocka.h"
#include "unit/store/support.h"

typedef struct kc_identity {
    EVP_PKEY *key;
    X509 *certificate;
    char *cert_file, *key_file;
} kc_identity;

static inline void kc_extend(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static inline void kc_write(const kc_identity *one)
{
    FILE *file = fopen(one->cert_file, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, one->certificate), 1);
    assert_int_equal(fclose(file), 0);
    file = fopen(one->key_file, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, one->key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
}

/* Another one for each name. */
static inline long kc_serial(const char *name)
{
    long serial = 1;
    for (; *name != '\0'; name++) {
        serial = serial * 31 % 1000003 + *name;
    }
    return serial;
}

/* Writes <name>.crt and <name>.key into `dir`. A NULL `issuer` makes an authority. `names` are the
 * certificate's alternative names ("IP:127.0.0.1"); it expires `seconds` from now. */
static inline kc_identity kc_make(const char *dir, const char *name, const kc_identity *issuer,
                                  const char *names, long seconds)
{
    char file[64];
    kc_identity one = {.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
    assert_non_null(one.key);
    assert_non_null(one.certificate);
    const kc_identity *by = issuer != NULL ? issuer : &one;
    X509_NAME *subject = X509_get_subject_name(one.certificate);
    assert_int_equal(X509_set_version(one.certificate, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(one.certificate), kc_serial(name)), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(one.certificate), -24L * 3600));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(one.certificate), seconds));
    assert_int_equal(X509_set_pubkey(one.certificate, one.key), 1);
    assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                                (const unsigned char *)name, -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(one.certificate, X509_get_subject_name(by->certificate)),
                     1);
    kc_extend(one.certificate, by->certificate, NID_basic_constraints,
              issuer == NULL ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (names != NULL) {
        kc_extend(one.certificate, by->certificate, NID_subject_alt_name, names);
    }
    assert_true(X509_sign(one.certificate, by->key, EVP_sha256()) > 0);
    (void)snprintf(file, sizeof file, "%s.crt", name);
    one.cert_file = kt_path(dir, file);
    (void)snprintf(file, sizeof file, "%s.key", name);
    one.key_file = kt_path(dir, file);
    kc_write(&one);
    return one;
}

static inline void kc_end(kc_identity *one)
{
    EVP_PKEY_free(one->key);
    X509_free(one->certificate);
    free(one->cert_file);
    free(one->key_file);
}

#endif

/* Takes URLs of remotes apart. This file must not open anything but a file with a token. */
#include "store/remote/remote_url.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/guarded.h"

#define MIB (UINT64_C(1) << 20)

/* Room for every string of a server, each with its NUL: the URL's own bytes, and those of a token
 * file. */
typedef struct url_cutter {
    char *at, *end;
} url_cutter;

static kiln_status refuse_url(kiln_diag *diag, const char *why)
{
    return kiln_diag_set(diag, KILN_E_INVALID, "see docs/operate/remotes.md", "the URL of a remote",
                         "%s", why);
}

static bool hex_digit(char c, unsigned *out)
{
    if (c >= '0' && c <= '9') {
        *out = (unsigned)(c - '0');
    } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
        *out = (unsigned)((c | 32) - 'a') + 10u;
    } else {
        return false;
    }
    return true;
}

/* Copies a part with its %XX decoded. NULL where that gives a control character or half a one. */
static const char *cut_part(url_cutter *cutter, const char *from, size_t length)
{
    char *start = cutter->at;
    for (size_t i = 0; i < length; i++) {
        char c = from[i];
        if (c == '%') {
            unsigned high = 0, low = 0;
            if (length - i < 3) {
                return NULL;
            }
            if (!hex_digit(from[i + 1], &high) || !hex_digit(from[i + 2], &low)) {
                return NULL;
            }
            c = (char)(unsigned char)(high * 16 + low);
            i += 2;
        }
        if ((unsigned char)c < 0x20 || c == 0x7f || cutter->at + 1 >= cutter->end) {
            return NULL;
        }
        *cutter->at++ = c;
    }
    *cutter->at++ = '\0';
    return start;
}

/* Copies bytes as they are, but for control characters, which no token has. */
static const char *keep_part(url_cutter *cutter, const char *from, size_t length)
{
    char *start = cutter->at;
    if (length >= (size_t)(cutter->end - cutter->at)) {
        return NULL;
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)from[i] < 0x20 || from[i] == 0x7f) {
            return NULL;
        }
        *cutter->at++ = from[i];
    }
    *cutter->at++ = '\0';
    return start;
}

static bool to_ms(const char *text, uint64_t max, uint64_t *out)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1},
                 {"s", 1000},
                 {"m", 60u * 1000u},
                 {"h", 3600u * 1000u},
                 {"d", 24u * 3600u * 1000u},
                 {"", 1}};
    char digits[24];
    size_t length = strspn(text, "0123456789");
    uint64_t value = 0;
    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!kn_text_to_u64(digits, &value)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + length, units[i].unit) == 0) {
            if (value > max / units[i].ms) {
                return false;
            }
            *out = value * units[i].ms;
            return true;
        }
    }
    return false;
}

static bool to_ms32(const char *text, uint32_t *out)
{
    uint64_t value = 0;
    if (!to_ms(text, 24u * 3600u * 1000u, &value)) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* The first line of a file that no stranger may read, as the token; NULL with a diag. */
static const char *read_token(url_cutter *cutter, const char *path, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    kn_exposure exposure = KN_EXPOSED_TO_NOBODY;
    if (!kn_path_is_absolute(path) ||
        kn_guarded_read(path, KN_REMOTE_TEXT, &data, &size, &exposure, diag) != KILN_OK) {
        (void)refuse_url(diag, "its \"token-file\" is not the absolute path of a readable file");
        return NULL;
    }
    const char *token = NULL;
    if (exposure > KN_EXPOSED_TO_GROUP) {
        (void)kiln_diag_set(diag, KILN_E_INVALID, KN_GUARDED_SHARE, path,
                            "others may read or change this \"token-file\"");
    } else {
        token = keep_part(cutter, data, strcspn(data, "\r\n"));
        if (token == NULL) {
            (void)refuse_url(diag, "the first line of its \"token-file\" is too long, or no text");
        }
    }
    free(data);
    return token;
}

typedef enum option_kind { FLAG, TEXT, TIME, SIZE, OWN } option_kind;

/* Options with a value of their own kind; the rest is in take_own. */
static const struct option_row {
    const char *name;
    option_kind kind;
    size_t offset;
} rows[] = {
    {"connect-timeout", TIME, offsetof(kn_remote_url, server.connect_ms)},
    {"timeout", TIME, offsetof(kn_remote_url, limit_ms)},
    {"upload-timeout", TIME, offsetof(kn_remote_url, upload_ms)},
    {"flush", TIME, offsetof(kn_remote_url, flush_ms)},
    {"budget", TIME, offsetof(kn_remote_url, budget_ms)},
    {"lease", TIME, offsetof(kn_remote_url, lease_ms)},
    {"max-bytes", SIZE, offsetof(kn_remote_url, server.max_bytes)},
    {"queue", SIZE, offsetof(kn_remote_url, queue_bytes)},
    {"prefix", TEXT, offsetof(kn_remote_url, server.prefix)},
    {"region", TEXT, offsetof(kn_remote_url, server.region)},
    {"endpoint", TEXT, offsetof(kn_remote_url, server.endpoint)},
    {"layout", TEXT, offsetof(kn_remote_url, server.layout)},
    {"ca-file", TEXT, offsetof(kn_remote_url, server.ca_file)},
    {"cert-file", TEXT, offsetof(kn_remote_url, server.cert_file)},
    {"key-file", TEXT, offsetof(kn_remote_url, server.key_file)},
    {"netrc", FLAG, offsetof(kn_remote_url, server.netrc)},
    {"unsigned-native", FLAG, offsetof(kn_remote_url, unsigned_native)},
    {"read-only", OWN, 0},
    {"write-only", OWN, 0},
    {"ttl", OWN, 0},
    {"token-file", OWN, 0},
};

static bool take_own(kn_remote_url *url, url_cutter *cutter, const char *name, const char *value,
                     kiln_diag *diag)
{
    if (strcmp(name, "read-only") == 0) {
        url->writes = false;
        return value[0] == '\0';
    }
    if (strcmp(name, "write-only") == 0) {
        url->reads = false;
        return value[0] == '\0';
    }
    if (strcmp(name, "ttl") == 0) {
        return to_ms(value, UINT64_C(3650) * 24u * 3600u * 1000u, &url->server.ttl_ms);
    }
    const char *token = read_token(cutter, value, diag);
    url->server.token = token != NULL ? token : "";
    return token != NULL;
}

static bool take_option(kn_remote_url *url, url_cutter *cutter, const char *name, const char *value,
                        kiln_diag *diag)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) != 0) {
            continue;
        }
        char *field = (char *)url + rows[i].offset;
        switch (rows[i].kind) {
        case FLAG:
            *(bool *)field = true;
            return value[0] == '\0';
        case TEXT:
            *(const char **)field = value;
            return true;
        case TIME:
            return to_ms32(value, (uint32_t *)field);
        case SIZE:
            return kn_text_to_size(value, (uint64_t *)field);
        case OWN:
            return take_own(url, cutter, name, value, diag);
        }
    }
    return false;
}

static kiln_status take_options(kn_remote_url *url, url_cutter *cutter, const char *at,
                                const char *end, kiln_diag *diag)
{
    while (at < end) {
        const char *stop = memchr(at, '&', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        const char *name_end = equals != NULL ? equals : stop;
        const char *name = cut_part(cutter, at, (size_t)(name_end - at));
        const char *value =
            equals != NULL ? cut_part(cutter, equals + 1, (size_t)(stop - equals - 1)) : "";
        const bool good =
            name != NULL && value != NULL && take_option(url, cutter, name, value, diag);
        if (!good && name != NULL && value != NULL && strcmp(name, "token-file") == 0) {
            return KILN_E_INVALID;
        }
        if (!good) {
            /* The value may be a secret in the wrong place: only the name is shown. */
            return kiln_diag_set(
                diag, KILN_E_INVALID, "see docs/operate/remotes.md", "the URL of a remote",
                "there is no option \"%s\", or its value is wrong", name != NULL ? name : "?");
        }
        at = stop < end ? stop + 1 : end;
    }
    return KILN_OK;
}

static bool take_port(kn_remote_url *url, const char *at, size_t length)
{
    char digits[8];
    uint64_t port = 0;
    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    memcpy(digits, at, length);
    digits[length] = '\0';
    if (!kn_text_to_u64(digits, &port) || port == 0 || port > 65535) {
        return false;
    }
    url->server.port = (uint16_t)port;
    return true;
}

static const char *last_of(const char *at, const char *end, char c)
{
    const char *found = NULL;
    for (; at < end; at++) {
        found = *at == c ? at : found;
    }
    return found;
}

/* [user[:password]@]host[:port] */
static bool take_authority(kn_remote_url *url, url_cutter *cutter, const char *at, const char *end)
{
    const char *sign = last_of(at, end, '@');
    if (sign != NULL) {
        const char *colon = memchr(at, ':', (size_t)(sign - at));
        const char *user_end = colon != NULL ? colon : sign;
        url->server.user = cut_part(cutter, at, (size_t)(user_end - at));
        if (colon != NULL) {
            url->server.password = cut_part(cutter, colon + 1, (size_t)(sign - colon - 1));
        }
        if (url->server.user == NULL || url->server.password == NULL) {
            return false;
        }
        at = sign + 1;
    }
    const char *host_end = end;
    if (at < end && *at == '[') {
        host_end = memchr(at, ']', (size_t)(end - at));
        if (host_end == NULL) {
            return false;
        }
        url->server.host = cut_part(cutter, at + 1, (size_t)(host_end - at - 1));
        host_end++;
        if (host_end < end && *host_end != ':') {
            return false;
        }
    } else {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        host_end = colon != NULL ? colon : end;
        url->server.host = cut_part(cutter, at, (size_t)(host_end - at));
    }
    if (host_end < end && !take_port(url, host_end + 1, (size_t)(end - host_end - 1))) {
        return false;
    }
    return url->server.host != NULL && url->server.host[0] != '\0';
}

static void set_defaults(kn_remote_url *url)
{
    const char *empty = "";
    kiln_remote_server *s = &url->server;
    s->struct_size = sizeof *s;
    s->scheme = s->user = s->password = s->host = s->path = s->token = s->ca_file = s->cert_file =
        s->key_file = s->region = s->endpoint = empty;
    s->prefix = "kiln:";
    s->layout = "subdirs";
    s->connect_ms = 100;
    s->max_bytes = 64 * MIB;
    url->reads = url->writes = true;
    url->limit_ms = 250;
    url->upload_ms = 10000;
    url->flush_ms = 2000;
    url->lease_ms = 10000;
    url->budget_ms = 2000;
    url->queue_bytes = 64 * MIB;
}

/* What may be shown: no user, no password, no options. */
static void show_url(kn_remote_url *url)
{
    const kiln_remote_server *s = &url->server;
    char port[8] = "";
    if (s->port != 0) {
        kn_text_putf(port, sizeof port, ":%u", (unsigned)s->port);
    }
    kn_text_putf(url->shown, sizeof url->shown, "%s://%s%s%s", s->scheme, s->host, port, s->path);
}

/* What no option says by itself. */
static kiln_status check_whole(const kn_remote_url *url, kiln_diag *diag)
{
    if (!url->reads && !url->writes) {
        return refuse_url(diag, "it is both read-only and write-only");
    }
    if (url->limit_ms == 0 || url->server.connect_ms == 0 || url->upload_ms == 0 ||
        url->server.max_bytes == 0) {
        return refuse_url(diag, "a timeout or a size is 0");
    }
    const char *layout = url->server.layout;
    if (strcmp(layout, "subdirs") != 0 && strcmp(layout, "flat") != 0 &&
        strcmp(layout, "bazel") != 0) {
        return refuse_url(diag, "its layout is not subdirs, flat or bazel");
    }
    return KILN_OK;
}

/* From the '/' to the end, without a '/' there. NULL `at`: there is none. */
static bool take_path(kn_remote_url *url, url_cutter *cutter, const char *at, const char *end)
{
    while (at != NULL && end > at && end[-1] == '/') {
        end--;
    }
    url->server.path = at != NULL ? cut_part(cutter, at, (size_t)(end - at)) : "";
    return url->server.path != NULL;
}

static kiln_status parse_url(const char *text, size_t length, kn_remote_url *url,
                             url_cutter *cutter, kiln_diag *diag)
{
    const char *end = text + length;
    const char *colon = memchr(text, ':', length);
    if (colon == NULL || end - colon < 3 || colon[1] != '/' || colon[2] != '/' || colon == text) {
        return kiln_diag_set(
            diag, KILN_E_INVALID,
            "write redis://HOST:6379 or https://HOST/PATH: docs/operate/remotes.md",
            "the URL of a remote", "it does not start with scheme://");
    }
    url->server.scheme = cut_part(cutter, text, (size_t)(colon - text));
    const char *at = colon + 3;
    const char *query = memchr(at, '?', (size_t)(end - at));
    const char *whole = query != NULL ? query : end;
    const char *path = memchr(at, '/', (size_t)(whole - at));
    if (url->server.scheme == NULL ||
        !take_authority(url, cutter, at, path != NULL ? path : whole)) {
        return refuse_url(diag, "its host or port is not right");
    }
    if (!take_path(url, cutter, path, whole)) {
        return refuse_url(diag, "its path is not right");
    }
    kiln_status status = query != NULL ? take_options(url, cutter, query + 1, end, diag) : KILN_OK;
    status = status == KILN_OK ? check_whole(url, diag) : status;
    show_url(url);
    return status;
}

kiln_status kn_remote_url_parse(const char *text, size_t length, kn_remote_url *out_url,
                                kiln_diag *diag)
{
    kn_remote_url url;
    memset(out_url, 0, sizeof *out_url);
    memset(&url, 0, sizeof url);
    set_defaults(&url);
    if (length > KN_REMOTE_TEXT) {
        return refuse_url(diag, "it is too long");
    }
    /* No part is longer than its text; each has a NUL of its own; token files come on top. */
    const size_t room = 3 * length + 2 * KN_REMOTE_TEXT + 64;
    url.text = calloc(1, room);
    if (url.text == NULL) {
        return kn_no_memory(diag, "the URL of a remote");
    }
    url_cutter cutter = {url.text, url.text + room};
    kiln_status status = parse_url(text, length, &url, &cutter, diag);
    if (status != KILN_OK) {
        free(url.text);
        return status;
    }
    *out_url = url;
    return KILN_OK;
}

void kn_remote_url_deinit(kn_remote_url *url)
{
    free(url->text);
    url->text = NULL;
}

bool kn_remote_url_next(const char **list, const char **out_text, size_t *out_length)
{
    const char *at = *list + strspn(*list, " \t\r\n");
    *out_text = at;
    *out_length = strcspn(at, " \t\r\n");
    *list = at + *out_length;
    return *out_length > 0;
}

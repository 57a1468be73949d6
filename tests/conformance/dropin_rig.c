#include "conformance/dropin_rig.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/pack.h>

#include "conformance/options.h"
#include "support/counters.h"
#include "support/tmpdir.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        kiln_diag diag = KILN_DIAG_INIT;                                                           \
        if ((call) != KILN_OK) {                                                                   \
            fail_msg("%s: %s: %s", #call, diag.what, diag.why);                                    \
        }                                                                                          \
    } while (0)

void dropin_note_bytes(FILE *out, const char *label, const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) {
        if (i % 32 == 0) {
            (void)fprintf(out, "%s%s %zu: ", i > 0 ? "\n" : "", label, i);
        }
        (void)fprintf(out, "%02x", bytes[i]);
    }
    (void)fprintf(out, "\n%s: %zu bytes\n", label, size);
}

static kiln_cache *open_cache(const dropin_case *one, const char *suffix, const char *pack)
{
    char name[96];
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    (void)snprintf(name, sizeof(name), "%s%s", one->name, suffix);
    char *root = kt_path(one->dir, name);
    OK(kiln_cache_options_init(&options, &diag));
    options.root = root;
    options.packs = pack;
    OK(kiln_cache_create(&options, &cache, &diag));
    free(root);
    return cache;
}

/* Both have a line for the same queries, in one order. Frees `got`. */
static void check_same(const dropin_case *one, const char *from, const char *compiled, char *got)
{
    size_t wrong = 0;
    const char *is = got;
    for (const char *was = compiled; *was != '\0';) {
        const size_t was_length = strcspn(was, "\n");
        const size_t is_length = strcspn(is, "\n");
        const bool same = was_length == is_length && memcmp(was, is, was_length) == 0;
        if (!same && (one->may_lose == NULL || !one->may_lose(one->user, was))) {
            print_error("'%s' from %s:\n  %.*s\nwas compiled\n  %.*s\n", one->what, from,
                        (int)is_length, is, (int)was_length, was);
            wrong++;
        }
        was += was_length + 1;
        is += is_length + (is[is_length] == '\n');
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(strlen(is), 0);
    free(got);
}

/* The request again; nothing is compiled for it. */
static void check_hit(const dropin_case *one, kiln_cache *cache, const char *from,
                      const char *compiled)
{
    kt_counters before, after;
    kt_counters_own(cache, &before);
    char *got = one->describe(one->user, cache, false);
    kt_counters_own(cache, &after);
    assert_non_null(got);
    assert_int_equal(after.compiles, before.compiles);
    assert_int_equal(after.bypassed, before.bypassed);
    assert_true(after.hits_memory + after.hits_disk + after.hits_pack >
                before.hits_memory + before.hits_disk + before.hits_pack);
    check_same(one, from, compiled, got);
}

static char *write_pack(const dropin_case *one, kiln_cache *cache)
{
    char name[96];
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    (void)snprintf(name, sizeof(name), "%s.kpack", one->name);
    char *path = kt_path(one->dir, name);
    OK(kiln_pack_writer_create(path, NULL, &writer, &diag));
    OK(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, &diag));
    OK(kiln_pack_writer_finish(writer, NULL, &diag));
    kiln_pack_writer_destroy(writer);
    assert_true(copied.added > 0);
    return path;
}

bool dropin_compare(const dropin_case *one, char **out_compiled)
{
    kiln_cache *cache = open_cache(one, "", NULL);
    char *compiled = one->describe(one->user, cache, true);
    if (compiled == NULL) {
        kiln_cache_destroy(cache);
        return false;
    }
    check_hit(one, cache, "memory", compiled);
    kiln_cache_destroy(cache);

    cache = open_cache(one, "", NULL);
    check_hit(one, cache, "disk", compiled);
    char *pack = write_pack(one, cache);
    kiln_cache_destroy(cache);

    cache = open_cache(one, "-of-pack", pack);
    check_hit(one, cache, "a pack", compiled);
    kiln_cache_destroy(cache);
    free(pack);
    if (out_compiled != NULL) {
        *out_compiled = compiled;
    } else {
        free(compiled);
    }
    return true;
}

const char *const dropin_expressions[2] = {"scale<float>", "scale<int>"};

static char *read_text(void)
{
    static const char more[] = "template <class T> __global__ void scale(T *x)\n"
                               "{ x[threadIdx.x] *= (T)VALUE; }\n";
    char *sense = kt_file_read(KILN_CONFORMANCE_DIR "/kernels/sense.cu", NULL);
    assert_non_null(sense);
    const size_t size = strlen(sense) + sizeof(more);
    char *text = realloc(sense, size);
    assert_non_null(text);
    memcpy(text + size - sizeof(more), more, sizeof(more));
    return text;
}

bool dropin_compare_options(const char *dir, const char *backend, const char *arch, size_t most,
                            size_t least, dropin_describe_fn *describe,
                            void (*check_effect)(const char *option, const char *plain,
                                                 const char *with))
{
    const char *const *options = conformance_options(backend);
    char *text = read_text();
    char *plain = NULL;
    size_t taken = 0;
    bool real = true;
    for (size_t i = 0; options[i] != NULL && i < most && (i < 4 || real); i++) {
        char name[64];
        char *compiled = NULL;
        dropin_request r = {text, {arch, options[i]}, options[i][0] != '\0' ? 2 : 1};
        (void)snprintf(name, sizeof(name), "%s-%zu", arch + strcspn(arch, "=") + 1, i);
        const dropin_case one = {dir, name, options[i], describe, NULL, &r};
        if (!dropin_compare(&one, &compiled)) {
            print_message("not taken: %s\n", options[i]);
            continue;
        }
        taken++;
        if (plain == NULL) {
            assert_string_equal(options[i], "");
            plain = compiled;
            compiled = NULL;
            real = strstr(plain, "_Zfake") == NULL;
        } else if (check_effect != NULL && real) {
            check_effect(options[i], plain, compiled);
        }
        free(compiled);
    }
    free(plain);
    free(text);
    assert_true(taken >= (real ? least : 4));
    return real;
}

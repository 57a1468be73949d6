/* The functions that stand in for nvJitLink's. Each step of a link (its creation, an input, the
 * link itself) is looked up by what was done before it; the first that is not found makes the real
 * link, with all that came before. Only success is kept: after a failure the real link goes on. */
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/shim/jitlink_key.h"
#include "apis/cuda/shim/jitlink_link.h"
#include "base/checked.h"
#include "base/label.h"
#include "base/text.h"
#include "interpose/parts.h"
#include "interpose/session.h"
#include "kiln/export.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "sys/clock.h"
#include "sys/fpstate.h"

#define INTERNAL_ERROR 6 /* NVJITLINK_ERROR_INTERNAL */
#define PART_WHOLE 16    /* a part of a completed link that is always there */

static const kn_jitlink_real *library; /* set once, before the table is given out */

static struct {
    kn_mutex lock;
    bool known;
    char name[256];
} identity = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

/* NULL if the library's file cannot be read. */
static const char *find_link_identity(kiln_cache *cache)
{
    kn_mutex_lock(&identity.lock);
    if (!identity.known) {
        identity.known = kn_jitlink_identify(cache, library, identity.name, sizeof(identity.name));
    }
    const bool known = identity.known;
    kn_mutex_unlock(&identity.lock);
    return known ? identity.name : NULL;
}

/* Whether the file is still the one that keys name, now that it is mapped. */
static kn_change find_change(void *call)
{
    char now[256];
    kiln_cache *cache = kn_session_cache();
    (void)call;
    return kn_jitlink_identify(cache, library, now, sizeof(now)) && strcmp(now, identity.name) == 0
               ? KN_UNCHANGED
               : KN_CHANGED_LIBRARY;
}

static const char *name_of_link(const kn_jitlink_link *link)
{
    return link->input_count > 0 && link->inputs[0].name != NULL ? link->inputs[0].name : "link";
}

static void report_link(const kn_jitlink_link *link, const char *origin)
{
    kn_session_report(&(kn_session_event){.what = "nvjitlink",
                                          .name = name_of_link(link),
                                          .origin = origin,
                                          .took_ns = link->took_ns,
                                          .saved_ns = link->saved_ns});
}

/* A link past the cache, once. */
static void count_bypassed(kn_jitlink_link *link, const char *reason)
{
    if (!link->counted) {
        kn_session_bypass("nvjitlink", name_of_link(link), reason, link->took_ns);
    }
    link->counted = true;
}

/* --- one step --------------------------------------------------------------------------------- */

typedef struct link_step {
    kn_jitlink_link *link;
    bool gathers;
    nvJitLinkResult code;
    kiln_blob *blob; /* the caller's; NULL: the real link took the step */
    kiln_origin origin;
    const char *unkept;
} link_step;

static bool gather_link_output(kn_jitlink_link *link, unsigned output, kn_strbuf *payload)
{
    const kn_jitlink_calls *calls = library->open(link->completed_release);
    size_t size = 0;
    if (calls->size[output] == NULL || calls->bytes[output] == NULL) {
        return true; /* this release has no such function */
    }
    const nvJitLinkResult code = calls->size[output](link->real, &size);
    char *bytes = (char *)calloc(1, size + 1);
    const bool have =
        bytes != NULL && (code != 0 || size == 0 || calls->bytes[output](link->real, bytes) == 0);
    if (have) {
        kn_parts_append(payload, output, (uint32_t)code, kn_span_of(bytes, code == 0 ? size : 0));
    }
    free(bytes);
    return have;
}

/* Why the outputs are this caller's alone; NULL if they can be kept. */
static const char *find_unkept(kn_span payload)
{
    static const char lines[] = ".debug_line";
    kn_span bytes;
    uint32_t code = 0;
    if (kn_parts_get(payload, KN_JITLINK_ErrorLog, &code, &bytes) && bytes.length > 0) {
        return "nvJitLink: it linked and named an error";
    }
    return kn_parts_get(payload, KN_JITLINK_LinkedCubin, &code, &bytes) && bytes.length > 0 &&
                   memmem(bytes.data, bytes.length, lines, sizeof(lines)) != NULL
               ? "nvJitLink: the code has a table of source lines"
               : NULL;
}

static void run_step(void *user, kn_output *output, kiln_diag *diag)
{
    link_step *step = (link_step *)user;
    char label[KN_LABEL_SIZE];
    kn_strbuf payload, facts;
    step->code = kn_jitlink_link_catch_up(step->link);
    if (step->code != 0) {
        (void)kiln_diag_set(diag, KILN_E_COMPILE, NULL, name_of_link(step->link),
                            "nvJitLink gave %d", step->code);
        output->outcome = KN_OUTCOME_FAILED;
        return;
    }
    kn_strbuf_init(&payload, (size_t)1 << 30);
    kn_strbuf_init(&facts, 0);
    kn_label_make(label, name_of_link(step->link), kn_span_of(NULL, 0));
    kn_label_append(&facts, label);
    for (unsigned i = 0; step->gathers && i < KN_JITLINK_OUTPUT_COUNT; i++) {
        if (!gather_link_output(step->link, i, &payload)) {
            output->reason = "nvJitLink: it linked and does not give the result";
        }
    }
    kn_parts_append(&payload, PART_WHOLE, 0, kn_span_of(NULL, 0));
    if (output->reason == NULL) {
        output->reason = find_unkept(kn_span_of(payload.data, payload.length));
    }
    if (output->reason == NULL && kn_strbuf_ok(&payload)) {
        kn_ignore(kiln_blob_create(payload.data, payload.length, facts.data, facts.length,
                                   &output->blob, diag));
    }
    output->outcome = output->reason == NULL ? KN_OUTCOME_STORED : KN_OUTCOME_PRIVATE;
    kn_strbuf_deinit(&facts);
    kn_strbuf_deinit(&payload);
}

static kn_loaded check_step(void *user, kiln_blob *blob, kiln_diag *diag)
{
    const kn_span payload = kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob));
    kn_span bytes;
    (void)user;
    (void)diag;
    return kn_parts_are_whole(payload) && kn_parts_get(payload, PART_WHOLE, NULL, &bytes)
               ? KN_LOADED
               : KN_LOAD_UNSOUND;
}

static const kn_frontend steps = {.compile = run_step,
                                  .still_true = find_change,
                                  .load = check_step,
                                  .loads_output = true,
                                  .own_failures = true,
                                  .is_step = true};

/* Takes the step of this recipe (NULL: there is no memory for one), which it destroys. Where no
 * entry stands for the step, the real link took it and has the last word from now on. */
static nvJitLinkResult take_step(kn_jitlink_link *link, kiln_recipe *recipe, link_step *step)
{
    const kn_request request = {.cache = kn_session_cache(),
                                .recipe = recipe,
                                .what = "nvjitlink",
                                .name = name_of_link(link)};
    kn_job job;
    step->link = link;
    if (recipe == NULL) {
        link->plain = true;
        step->code = kn_jitlink_link_catch_up(link);
        link->failed = step->code != 0;
        return step->code;
    }
    link->step = kiln_recipe_key(recipe);
    const kn_outcome outcome = kn_job_run(&job, &steps, &request, step);
    const bool stands = outcome == KN_OUTCOME_HIT || outcome == KN_OUTCOME_STORED;
    if (stands) {
        step->blob = kiln_blob_retain(job.blob);
        step->origin = job.origin;
    } else if (!job.ran) {
        step->code = kn_jitlink_link_catch_up(link);
    }
    step->unkept = job.reason;
    link->plain = !stands;
    link->failed = step->code != 0;
    link->saved_ns += kn_job_saved_ns(&job);
    link->took_ns += job.took_ns;
    kn_job_deinit(&job);
    kiln_recipe_destroy(recipe);
    return step->code;
}

/* --- handing on ------------------------------------------------------------------------------- */

/* The link with its lock held; NULL if the handle is not of this library. */
static kn_jitlink_link *lock_link(nvJitLinkHandle handle)
{
    kn_jitlink_link *link = kn_jitlink_link_of(handle);
    if (link != NULL) {
        kn_mutex_lock(&link->lock);
    }
    return link;
}

static void unlock_link(kn_jitlink_link *link)
{
    if (link != NULL) {
        kn_mutex_unlock(&link->lock);
    }
}

/* The real link behind a handle, as far as the caller has come. */
static nvJitLinkHandle real_of_link(kn_jitlink_link *link, nvJitLinkHandle handle)
{
    if (link == NULL) {
        return handle;
    }
    if (!link->plain) {
        (void)kn_jitlink_link_catch_up(link); /* steps that succeeded before */
    }
    return link->real;
}

#define HAND_ON(link, handle, release, function, ...)                                              \
    do {                                                                                           \
        const nvJitLinkHandle real_ = real_of_link(link, handle);                                  \
        const kn_jitlink_calls *calls_ = library->open(release);                                   \
        const nvJitLinkResult code_ = calls_ != NULL && calls_->function != NULL                   \
                                          ? calls_->function(__VA_ARGS__)                          \
                                          : INTERNAL_ERROR;                                        \
        unlock_link(link);                                                                         \
        return code_;                                                                              \
    } while (0)

/* --- the calls -------------------------------------------------------------------------------- */

static bool options_are_texts(uint32_t count, const char *const *options)
{
    bool texts = count == 0 || options != NULL;
    for (uint32_t i = 0; texts && i < count; i++) {
        texts = options[i] != NULL;
    }
    return texts;
}

static nvJitLinkResult create_real(unsigned release, nvJitLinkHandle *handle, uint32_t count,
                                   const char *const *options)
{
    const kn_jitlink_calls *calls = library->open(release);
    return calls != NULL && calls->create != NULL ? calls->create(handle, count, options)
                                                  : INTERNAL_ERROR;
}

/* After a step that failed, a caller goes on to the link, which is in the report then, or gives it
 * up. */
static nvJitLinkResult destroy_link(unsigned release, kn_jitlink_link *link)
{
    if (link->failed && !link->counted) {
        report_link(link, "failed");
    }
    return kn_jitlink_link_destroy(link, release);
}

static nvJitLinkResult call_link_create(unsigned release, nvJitLinkHandle *handle, uint32_t count,
                                        const char *const *options)
{
    kiln_cache *cache = kn_session_cache();
    const char *name = cache != NULL ? find_link_identity(cache) : NULL;
    if (handle == NULL || !options_are_texts(count, options)) {
        return create_real(release, handle, count, options);
    }
    const char *reason = name == NULL         ? "nvJitLink: its file or the cache cannot be opened"
                         : kn_fp_is_default() ? kn_jitlink_options_reason(count, options)
                                              : KN_FP_REASON;
    kn_jitlink_link *link =
        reason == NULL ? kn_jitlink_link_create(library, release, count, options) : NULL;
    if (link == NULL) {
        kn_jitlink_link none = {0};
        count_bypassed(&none, reason != NULL ? reason : "out of memory");
        return create_real(release, handle, count, options);
    }
    kiln_recipe *recipe = NULL;
    link_step step = {0};
    kn_ignore(kn_jitlink_key_create(link, name, &recipe)); /* NULL: a plain link */
    const nvJitLinkResult code = take_step(link, recipe, &step);
    kiln_blob_release(step.blob);
    if (link->plain && link->real == NULL) {
        (void)kn_jitlink_link_take((nvJitLinkHandle)(void *)link);
        (void)destroy_link(release, link);
        *handle = NULL;
        return code;
    }
    *handle = (nvJitLinkHandle)(void *)link;
    return code;
}

static nvJitLinkResult call_link_destroy(unsigned release, nvJitLinkHandle *handle)
{
    kn_jitlink_link *link = handle != NULL ? kn_jitlink_link_take(*handle) : NULL;
    if (link == NULL) {
        const kn_jitlink_calls *calls = library->open(release);
        return calls != NULL && calls->destroy != NULL ? calls->destroy(handle) : INTERNAL_ERROR;
    }
    *handle = NULL;
    return destroy_link(release, link);
}

static nvJitLinkResult call_add_data(unsigned release, nvJitLinkHandle handle, int type,
                                     const void *data, size_t size, const char *name)
{
    kn_jitlink_link *link = lock_link(handle);
    if (link == NULL || link->plain || link->completed || data == NULL || size == 0 ||
        !kn_jitlink_link_add(link, release, type, data, size, name)) {
        (void)real_of_link(link, handle);
        if (link != NULL) {
            link->plain = true;
        }
        HAND_ON(link, handle, release, add_data, real_, type, data, size, name);
    }
    kiln_recipe *recipe = NULL;
    link_step step = {0};
    kn_ignore(kn_jitlink_key_add(link, &recipe)); /* NULL: a plain link */
    const nvJitLinkResult code = take_step(link, recipe, &step);
    kiln_blob_release(step.blob);
    unlock_link(link);
    return code;
}

static nvJitLinkResult call_add_file(unsigned release, nvJitLinkHandle handle, int type,
                                     const char *file)
{
    kn_jitlink_link *link = lock_link(handle);
    if (link != NULL && !link->plain) {
        (void)real_of_link(link, handle);
        link->plain = true;
        count_bypassed(link, "nvJitLinkAddFile");
    }
    HAND_ON(link, handle, release, add_file, real_, type, file);
}

/* A link that is not kiln's, or that the real library took over before its end. */
static nvJitLinkResult complete_real(unsigned release, nvJitLinkHandle handle,
                                     kn_jitlink_link *link)
{
    const nvJitLinkHandle real = real_of_link(link, handle);
    const uint64_t start = kn_clock_now();
    const kn_jitlink_calls *calls = library->open(release);
    const nvJitLinkResult code =
        calls != NULL && calls->complete != NULL ? calls->complete(real) : INTERNAL_ERROR;
    if (link != NULL) {
        link->plain = true;
        link->took_ns += kn_clock_now() - start;
        if (code == 0) {
            count_bypassed(link, "nvJitLink: a step of the link could not be kept");
        } else if (!link->counted) {
            report_link(link, "failed");
            link->counted = true;
        }
    }
    unlock_link(link);
    return code;
}

static nvJitLinkResult call_complete(unsigned release, nvJitLinkHandle handle)
{
    kn_jitlink_link *link = lock_link(handle);
    if (link == NULL || link->plain || link->completed) {
        return complete_real(release, handle, link);
    }
    kiln_recipe *recipe = NULL;
    link_step step = {.gathers = true};
    kn_ignore(kn_jitlink_key_complete(link, release, &recipe)); /* NULL: a plain link */
    link->completed = true;
    link->completed_release = release;
    const nvJitLinkResult code = take_step(link, recipe, &step);
    link->blob = step.blob;
    if (link->blob != NULL) {
        report_link(link, kiln_origin_name(step.origin));
    } else if (code == 0) {
        count_bypassed(link, step.unkept != NULL ? step.unkept : "nvJitLink: it cannot be kept");
    } else {
        report_link(link, "failed");
    }
    link->counted = true;
    unlock_link(link);
    return code;
}

/* What the cache knows of an output; false: ask the real link. */
static bool find_link_output(const kn_jitlink_link *link, unsigned output, uint32_t *out_code,
                             kn_span *out_bytes)
{
    return link != NULL && !link->plain && link->blob != NULL &&
           kn_parts_get(kn_span_of(kiln_blob_data(link->blob), kiln_blob_size(link->blob)), output,
                        out_code, out_bytes);
}

static nvJitLinkResult call_size(unsigned release, unsigned output, nvJitLinkHandle handle,
                                 size_t *size)
{
    kn_jitlink_link *link = lock_link(handle);
    uint32_t code = 0;
    kn_span bytes;
    if (size == NULL || !find_link_output(link, output, &code, &bytes)) {
        HAND_ON(link, handle, release, size[output], real_, size);
    }
    if (code == 0) {
        *size = bytes.length;
    }
    unlock_link(link);
    return (nvJitLinkResult)code;
}

static nvJitLinkResult call_bytes(unsigned release, unsigned output, nvJitLinkHandle handle,
                                  void *to)
{
    kn_jitlink_link *link = lock_link(handle);
    uint32_t code = 0;
    kn_span bytes;
    if (to == NULL || !find_link_output(link, output, &code, &bytes) || code != 0 ||
        bytes.length == 0) {
        HAND_ON(link, handle, release, bytes[output], real_, to);
    }
    memcpy(to, bytes.data, bytes.length);
    unlock_link(link);
    return 0;
}

/* --- version ---------------------------------------------------------------------------------- */

static nvJitLinkResult ask_version(unsigned *major, unsigned *minor)
{
    const kn_jitlink_calls *calls = library->open(KN_JITLINK_PLAIN);
    return calls != NULL && calls->version != NULL ? calls->version(major, minor) : INTERNAL_ERROR;
}

static nvJitLinkResult keep_version(kiln_cache *cache, const kiln_recipe *recipe, unsigned *major,
                                    unsigned *minor)
{
    unsigned char bytes[8];
    kiln_blob *blob = NULL;
    const nvJitLinkResult code = ask_version(major, minor);
    kn_put_u32(bytes, *major);
    kn_put_u32(bytes + 4, *minor);
    if (code == 0 && find_change(NULL) == KN_UNCHANGED &&
        kiln_blob_create(bytes, sizeof(bytes), NULL, 0, &blob, NULL) == KILN_OK) {
        kn_ignore(kiln_cache_put(cache, recipe, blob, 0, NULL)); /* the next process asks again */
        kiln_blob_release(blob);
    }
    return code;
}

static nvJitLinkResult call_link_version(unsigned *major, unsigned *minor)
{
    kiln_cache *cache = kn_session_cache();
    const char *name = cache != NULL ? find_link_identity(cache) : NULL;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    if (major == NULL || minor == NULL || name == NULL ||
        kn_jitlink_key_version(name, &recipe) != KILN_OK) {
        return ask_version(major, minor);
    }
    const kiln_key key = kiln_recipe_key(recipe);
    nvJitLinkResult code = 0;
    if (kn_cache_get_note(cache, &key, "portable", &blob) == KILN_OK && kiln_blob_size(blob) == 8) {
        const unsigned char *bytes = (const unsigned char *)kiln_blob_data(blob);
        *major = kn_get_u32(bytes);
        *minor = kn_get_u32(bytes + 4);
    } else {
        code = keep_version(cache, recipe, major, minor);
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return code;
}

static const kn_jitlink_table table = {call_link_create, call_link_destroy, call_add_data,
                                       call_add_file,    call_complete,     call_size,
                                       call_bytes,       call_link_version};

KILN_API const kn_jitlink_table *kn_interpose_jitlink(const kn_jitlink_real *real);
const kn_jitlink_table *kn_interpose_jitlink(const kn_jitlink_real *real)
{
    library = real;
    return &table;
}

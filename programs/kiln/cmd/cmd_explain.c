/* kiln explain: why a kernel would be compiled again, or what an entry differs in from its nearest.
 */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/explain.h>

#include "cli/entry_name.h"
#include "cli/host.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"
#include "kernel/source_file.h"
#include "warm/targets.h"

typedef struct explain_options {
    session_options session;
    const char *target;
    bool drop_in;
    source_file_options file;
} explain_options;

static const opt_spec specs[] = {{"target", 't', OPT_TEXT, offsetof(explain_options, target),
                                  "TARGET", "files: for BACKEND:NAME, as kiln compile"},
                                 {"drop-in", 0, OPT_FLAG, offsetof(explain_options, drop_in), NULL,
                                  "files: of a program that calls kiln's drop-in"},
                                 SOURCE_FILE_ROWS(explain_options, "files: "),
                                 SESSION_DEVICE_ROWS(explain_options),
                                 SESSION_CACHE_ROW(explain_options),
                                 SESSION_JSON_ROW(explain_options),
                                 OPT_END};

typedef struct explain_work {
    const cmd_context *context;
    const explain_options *options;
    kiln_cache *cache;
    kiln_runtime *runtime; /* opened for the first file */
    const kiln_define *defines;
    const char *what; /* the argument that is being explained */
    json_t *rows;     /* NULL: text */
} explain_work;

/* --- reports ---------------------------------------------------------------------------------- */

/* A digest of 64 digits says no more than its first 12. */
static const char *shorten_value(cli_pool *pool, const char *value)
{
    char *text = value != NULL ? out_clean(pool, value) : pool_text(pool, "(none)", 6);
    if (text == NULL) {
        return "?";
    }
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        size_t digits = strspn(from, "0123456789abcdef");
        size_t kept = digits >= 32 ? 12 : digits > 0 ? digits : 1;
        memmove(to, from, kept);
        to += kept;
        from += digits > 0 ? digits : 1;
        if (digits >= 32) {
            memcpy(to, "..", 2);
            to += 2;
        }
    }
    *to = '\0';
    return text;
}

/* Recipes hold digests of sources and no names of files: among entries of other texts the nearest
 * is as likely another file's as this one's of yesterday. Then there is nothing to compare with. */
static bool is_comparable(const kiln_explanation *e)
{
    for (size_t i = 0; i < e->difference_count; i++) {
        if (e->differences[i]->why == KILN_WHY_SOURCE && e->why != KILN_WHY_HIT) {
            return false;
        }
    }
    return e->has_nearest;
}

/* "" for an entry that is not on disk or that nobody named. */
static const char *name_entry(const explain_work *work, const kiln_key *key)
{
    entry_name name = {.name = ""};
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_status status = entry_name_find(work->cache, key, work->context->pool, &name, &diag);
    kiln_diag_clear(&diag);
    return status == KILN_OK ? name.name : "";
}

static void print_explanation(const explain_work *work, const kiln_explanation *e)
{
    char key[KILN_KEY_TEXT_SIZE];
    cli_pool *pool = work->context->pool;
    kiln_key_format(&e->key, key);
    out_print(stdout, "%s: %s%s%s%s%s\n", work->what, e->stage, *e->stage != '\0' ? ": " : "",
              kiln_why_text(e->why), *e->detail != '\0' ? ": " : "", e->detail);
    if (e->why != KILN_WHY_NOT_YET) {
        (void)printf("  key      %.16s\n", key);
    }
    const char *name = e->why == KILN_WHY_HIT ? name_entry(work, &e->key) : "";
    if (*name != '\0') {
        out_print(stdout, "  name     %s\n", name);
    }
    if (!is_comparable(e)) {
        return;
    }
    kiln_key_format(&e->nearest, key);
    name = name_entry(work, &e->nearest);
    out_print(stdout, "  nearest  %.16s of %s%s%s, which differs in\n", key, e->nearest_target,
              *name != '\0' ? ", " : "", name);
    for (size_t i = 0; i < e->difference_count; i++) {
        const kiln_difference *d = e->differences[i];
        (void)printf("    %-20s %s -> %s\n", out_clean(pool, d->field),
                     shorten_value(pool, d->then), shorten_value(pool, d->now));
    }
}

static json_t *text_or_null(const char *text)
{
    return text != NULL ? out_json_text(text) : json_null();
}

static void add_explanation_row(explain_work *work, const kiln_explanation *e)
{
    char key[KILN_KEY_TEXT_SIZE];
    json_t *row = json_object();
    json_t *differences = json_array();
    for (size_t i = 0; is_comparable(e) && i < e->difference_count; i++) {
        const kiln_difference *d = e->differences[i];
        json_t *item = json_object();
        out_json_set(&item, "field", out_json_text(d->field));
        out_json_set(&item, "why", out_json_text(kiln_why_text(d->why)));
        out_json_set(&item, "then", text_or_null(d->then));
        out_json_set(&item, "now", text_or_null(d->now));
        out_json_append(&differences, item);
    }
    out_json_set(&row, "what", out_json_text(work->what));
    out_json_set(&row, "stage", out_json_text(e->stage));
    out_json_set(&row, "why", out_json_text(kiln_why_text(e->why)));
    out_json_set(&row, "detail", out_json_text(e->detail));
    kiln_key_format(&e->key, key);
    out_json_set(&row, "key", e->why != KILN_WHY_NOT_YET ? out_json_text(key) : json_null());
    out_json_set(&row, "name",
                 out_json_text(e->why == KILN_WHY_HIT ? name_entry(work, &e->key) : ""));
    out_json_set(&row, "nearest_name",
                 out_json_text(is_comparable(e) ? name_entry(work, &e->nearest) : ""));
    kiln_key_format(&e->nearest, key);
    out_json_set(&row, "nearest", is_comparable(e) ? out_json_text(key) : json_null());
    out_json_set(&row, "differences", differences);
    out_json_append(&work->rows, row);
}

static kiln_status report_stage(void *user, const kiln_explanation *explanation)
{
    explain_work *work = user;
    if (work->options->session.json) {
        add_explanation_row(work, explanation);
    } else {
        print_explanation(work, explanation);
    }
    return KILN_OK;
}

/* --- files ------------------------------------------------------------------------------------ */

static exit_code need_runtime(explain_work *work)
{
    session_options session = work->options->session;
    if (work->runtime != NULL) {
        return EXIT_FINE;
    }
    session.compile_only = true;
    if (work->options->target != NULL) {
        session.backend = targets_backend(work->options->target, work->context->pool);
        if (session.backend == NULL) {
            return cmd_no_memory(work->context);
        }
    }
    return session_open_runtime(work->context, &session, work->cache, &work->runtime);
}

/* As kiln compile chooses it. */
static kiln_status choose_explained_target(const explain_work *work, const kiln_source *source,
                                           const char **out_target, kiln_diag *diag)
{
    const session_options *session = &work->options->session;
    const targets_wish wish = {session->backend, session->device, NULL};
    *out_target = work->options->target;
    return *out_target != NULL ? KILN_OK
                               : targets_choose(work->runtime, &wish, source, work->context->pool,
                                                out_target, diag);
}

static exit_code explain_file(explain_work *work, const char *path)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source;
    const char *target = NULL;
    char *text = NULL;
    char name[1024];
    exit_code code = need_runtime(work);
    if (code != EXIT_FINE) {
        return code;
    }
    kiln_status status =
        source_file_describe(&work->options->file, work->defines, path, &source, &diag);
    if (status == KILN_OK) {
        status = source_file_read(path, &source, &text, &diag);
    }
    if (status == KILN_OK) {
        source.name = host_spell(path, name, sizeof(name));
        status = choose_explained_target(work, &source, &target, &diag);
    }
    if (status == KILN_OK) {
        status = (work->options->drop_in ? kiln_dropin_explain : kiln_explain)(
            work->runtime, target, &source, report_stage, work, &diag);
    }
    free(text);
    return status == KILN_OK ? EXIT_FINE : cmd_fail(work->context, &diag);
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool is_key(const char *text)
{
    size_t digits = strspn(text, "0123456789abcdef");
    return text[digits] == '\0' && digits >= 4 && digits <= 64 && !host_exists(text);
}

static exit_code explain_key(explain_work *work, const char *text)
{
    kiln_diag diag = KILN_DIAG_INIT;
    cli_listing listing;
    kiln_key key;
    kiln_status status = KILN_OK;
    if (strlen(text) == 64) {
        status = kiln_key_parse(text, &key, &diag);
    } else {
        status = listing_make(work->cache, NULL, work->context->pool, &listing, &diag);
        if (status == KILN_OK) {
            status = listing_find(&listing, text, &key, &diag);
        }
    }
    if (status == KILN_OK) {
        status = kiln_cache_explain_key(work->cache, &key, report_stage, work, &diag);
    }
    return status == KILN_OK ? EXIT_FINE : cmd_fail(work->context, &diag);
}

static exit_code run_explain(const cmd_context *context, void *fields, const opt_list *arguments)
{
    explain_work work = {.context = context, .options = fields};
    if (!source_file_defines(&work.options->file.defines, context->pool, &work.defines)) {
        return cmd_no_memory(context);
    }
    work.rows = work.options->session.json ? json_array() : NULL;
    exit_code code = session_open_cache(context, &work.options->session, &work.cache);
    for (size_t i = 0; code == EXIT_FINE && i < arguments->count; i++) {
        work.what = arguments->items[i];
        code = is_key(work.what) ? explain_key(&work, work.what) : explain_file(&work, work.what);
    }
    if (work.options->session.json && code == EXIT_FINE) {
        json_t *root = json_object();
        out_json_set(&root, "explanations", work.rows);
        code = out_json(stdout, root) ? EXIT_FINE : cmd_no_memory(context);
    } else {
        json_decref(work.rows);
    }
    session_close(work.cache, work.runtime);
    return code;
}

const cli_command cmd_explain = {
    .name = "explain",
    .usage = "FILE|KEY...",
    .summary = "Says why a kernel would be compiled again",
    .details =
        "For a file: whether each stage of its compile is in the cache, and if not, what differs\n"
        "from the nearest entry that is. For a key: whether its entry is there, and what differs\n"
        "from the nearest other. Give the options that the file is compiled with.",
    .options = specs,
    .options_size = sizeof(explain_options),
    .min_arguments = 1,
    .max_arguments = 100000,
    .run = run_explain,
};

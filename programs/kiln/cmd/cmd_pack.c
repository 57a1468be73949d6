/* kiln pack: makes packs of a cache, looks into them, copies out of them. */
#include <string.h>

#include <kiln/unstable/pack.h>

#include "cli/chosen_target.h"
#include "cli/diag.h"
#include "cli/host.h"
#include "cli/listing.h"
#include "cli/removal.h"
#include "cli/session.h"
#include "cmd/pack_report.h"

typedef struct pack_options {
    session_options session;
    const char *target;
    opt_number level;
    bool raw;
    bool full;
} pack_options;

static const opt_spec specs[] = {
    {"target", 't', OPT_TEXT, offsetof(pack_options, target), "NAME",
     "only entries of this target"},
    {"level", 'l', OPT_COUNT, offsetof(pack_options, level), "N",
     "create, add, merge: how hard to compress, 1 to 22 (default 12)"},
    {"raw", 0, OPT_FLAG, offsetof(pack_options, raw), NULL,
     "create, add, merge: do not compress: larger, but read in place"},
    {"full", 'f', OPT_FLAG, offsetof(pack_options, full), NULL, "list: print whole keys"},
    SESSION_CACHE_ROW(pack_options),
    SESSION_JSON_ROW(pack_options),
    OPT_END};

typedef struct pack_work {
    const cmd_context *context;
    const pack_options *options;
    const char *path;
    const opt_list *arguments; /* action, file, keys */
    kiln_cache *cache;
    cli_listing listing;
    size_t seen;
} pack_work;

static exit_code open_pack_at(const pack_work *work, const char *path, kiln_pack **out_pack)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kiln_pack_open(path, out_pack, &diag);
    if (status == KILN_OK) {
        return EXIT_FINE;
    }
    if (status == KILN_MISS) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "kiln pack create makes one", path,
                            "there is no such file");
    }
    if (status == KILN_E_CORRUPT) {
        const kiln_diag said = diag;
        (void)kiln_diag_set(&diag, KILN_E_CORRUPT,
                            "give a pack, or make it again with kiln pack create", path,
                            "is not a complete pack: %s", said.why);
    }
    return cmd_fail_as(work->context, status == KILN_E_CORRUPT ? EXIT_DAMAGE : EXIT_USAGE, &diag);
}

static exit_code open_pack(const pack_work *work, kiln_pack **out_pack)
{
    return open_pack_at(work, work->path, out_pack);
}

/* --- create and add --------------------------------------------------------------------------- */

static kiln_status show_progress(void *user, const kiln_entry_info *info)
{
    pack_work *work = user;
    console_progress(work->context->console, work->seen++, work->listing.count, info->target, 0);
    return KILN_OK;
}

/* The entries whose keys, or beginnings of keys, were named. */
static kiln_status add_named(pack_work *work, kiln_pack_writer *writer, kiln_pack_copied *copied,
                             kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 2; status == KILN_OK && i < work->arguments->count; i++) {
        const char *name = work->arguments->items[i];
        bool added = false;
        kiln_key key;
        status = listing_find(&work->listing, name, &key, diag);
        if (status == KILN_OK) {
            status = kiln_pack_writer_add(writer, work->cache, &key, &added, diag);
        }
        if (status == KILN_MISS && diag->status == KILN_OK) {
            (void)kiln_diag_set(diag, KILN_E_INVALID, NULL, name, "the entry is gone");
        }
        copied->added += added;
        copied->present += !added;
    }
    return status;
}

static kiln_status fill_pack(pack_work *work, kiln_pack *base, kiln_pack_copied *copied,
                             kiln_pack_info *info, kiln_diag *diag)
{
    const pack_options *options = work->options;
    const kiln_pack_writer_options how = {.struct_size = sizeof(how),
                                          .level = (int)options->level.value,
                                          .raw = options->raw,
                                          .base = base};
    kiln_pack_writer *writer = NULL;
    kiln_status status = kiln_pack_writer_create(work->path, &how, &writer, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (work->arguments->count > 2) {
        status = add_named(work, writer, copied, diag);
    } else {
        status = kiln_pack_writer_add_all(writer, work->cache, options->target, show_progress, work,
                                          copied, diag);
    }
    if (status == KILN_OK) {
        console_progress(work->context->console, work->seen, work->listing.count,
                         "compressing and writing", 0);
        status = kiln_pack_writer_finish(writer, info, diag);
    }
    console_progress_end(work->context->console);
    kiln_pack_writer_destroy(writer);
    return status;
}

static bool is_level_good(const pack_work *work)
{
    const opt_number *level = &work->options->level;
    kiln_diag diag = KILN_DIAG_INIT;
    if (!level->given || (level->value >= 1 && level->value <= KILN_PACK_LEVEL_MAX)) {
        return true;
    }
    (void)kiln_diag_set(&diag, KILN_E_INVALID, NULL, "--level", "is not 1 to %d",
                        KILN_PACK_LEVEL_MAX);
    (void)cmd_fail(work->context, &diag);
    return false;
}

static exit_code write_pack_file(pack_work *work, bool extend)
{
    const cmd_context *context = work->context;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_pack *base = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    kiln_pack_info info = {.struct_size = sizeof(info)};
    if (!is_level_good(work)) {
        return EXIT_USAGE;
    }
    exit_code code = extend ? open_pack(work, &base) : EXIT_FINE;
    if (code == EXIT_FINE) {
        code = session_open_disk(context, &work->options->session, &work->cache);
    }
    if (code == EXIT_FINE) {
        code = chosen_target_check(context, work->cache, work->options->target);
    }
    if (code == EXIT_FINE) {
        kiln_status status =
            listing_make(work->cache, work->options->target, context->pool, &work->listing, &diag);
        if (status == KILN_OK) {
            status = fill_pack(work, base, &copied, &info, &diag);
        }
        left_out_list list = {NULL, 0};
        if (status == KILN_OK && copied.skipped > 0 &&
            !pack_left_out(work->cache, &work->listing, &list)) {
            status = diag_no_memory(&diag, work->path);
        }
        code = status != KILN_OK ? cmd_fail(context, &diag)
                                 : pack_tell_written(context, work->path, &info, &copied, &list,
                                                     work->options->session.json);
    }
    kiln_cache_destroy(work->cache);
    kiln_pack_close(base);
    return code;
}

static exit_code do_create(pack_work *work)
{
    return write_pack_file(work, false);
}

static exit_code do_add(pack_work *work)
{
    return write_pack_file(work, true);
}

/* --- merge ------------------------------------------------------------------------------------ */

/* One pack's entries. *out_damaged are those that could not be read. */
static exit_code merge_pack(const pack_work *work, const char *path, kiln_pack_writer *writer,
                            kiln_pack_copied *copied, uint64_t *out_damaged)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_pack *pack = NULL;
    kiln_pack_copied one = {.struct_size = sizeof(one)};
    kiln_verify_result found = {.struct_size = sizeof(found)};
    exit_code code = open_pack_at(work, path, &pack);
    if (code != EXIT_FINE) {
        return code;
    }
    kiln_status status =
        kiln_pack_writer_add_pack(writer, pack, work->options->target, &one, &diag);
    if (status == KILN_OK && one.skipped > 0) {
        status = kiln_pack_verify(pack, &found, &diag);
    }
    kiln_pack_close(pack);
    if (status != KILN_OK) {
        return status == KILN_E_CORRUPT ? cmd_fail_as(work->context, EXIT_DAMAGE, &diag)
                                        : cmd_fail(work->context, &diag);
    }
    if (found.entries_bad > 0) {
        console_say(work->context->console, "%s: %llu damaged %s left out", path,
                    (unsigned long long)found.entries_bad,
                    found.entries_bad == 1 ? "entry is" : "entries are");
    }
    copied->added += one.added;
    copied->present += one.present;
    copied->skipped += one.skipped;
    *out_damaged += found.entries_bad;
    return EXIT_FINE;
}

/* What is whole is merged, and exit code 5 says that something was not. */
static exit_code do_merge(pack_work *work)
{
    const cmd_context *context = work->context;
    const pack_options *options = work->options;
    const kiln_pack_writer_options how = {
        .struct_size = sizeof(how), .level = (int)options->level.value, .raw = options->raw};
    const left_out_list none = {NULL, 0};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    kiln_pack_info info = {.struct_size = sizeof(info)};
    kiln_pack_writer *writer = NULL;
    uint64_t damaged = 0;
    if (work->arguments->count < 3) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "name the packs to be merged", work->path,
                            "there is nothing to merge into it");
        return cmd_fail(context, &diag);
    }
    if (!is_level_good(work)) {
        return EXIT_USAGE;
    }
    if (kiln_pack_writer_create(work->path, &how, &writer, &diag) != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    exit_code code = EXIT_FINE;
    for (size_t i = 2; code == EXIT_FINE && i < work->arguments->count; i++) {
        console_progress(context->console, i - 2, work->arguments->count - 2,
                         work->arguments->items[i], 0);
        code = merge_pack(work, work->arguments->items[i], writer, &copied, &damaged);
    }
    console_progress_end(context->console);
    if (code == EXIT_FINE && options->target != NULL && copied.added == 0) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "kiln pack list shows each pack's targets",
                            work->path, "no pack has entries of the target \"%.60s\"",
                            options->target);
        code = cmd_fail(context, &diag);
    }
    if (code == EXIT_FINE) {
        code = kiln_pack_writer_finish(writer, &info, &diag) == KILN_OK
                   ? pack_tell_written(context, work->path, &info, &copied, &none,
                                       options->session.json)
                   : cmd_fail(context, &diag);
    }
    kiln_pack_writer_destroy(writer);
    return code == EXIT_FINE && damaged > 0 ? EXIT_DAMAGE : code;
}

/* --- list, extract, verify -------------------------------------------------------------------- */

static exit_code do_list(pack_work *work)
{
    const pack_options *options = work->options;
    kiln_pack *pack = NULL;
    exit_code code = open_pack(work, &pack);
    if (code == EXIT_FINE) {
        code = chosen_target_check_pack(work->context, pack, options->target);
    }
    if (code == EXIT_FINE) {
        code = pack_tell_list(work->context, work->path, pack, options->target, options->full,
                              options->session.json);
    }
    kiln_pack_close(pack);
    return code;
}

static exit_code do_extract(pack_work *work)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_pack *pack = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    exit_code code = open_pack(work, &pack);
    if (code == EXIT_FINE) {
        code = chosen_target_check_pack(work->context, pack, work->options->target);
    }
    if (code == EXIT_FINE) {
        code = session_open_disk_to_write(work->context, &work->options->session, &work->cache);
    }
    if (code == EXIT_FINE) {
        kiln_status status =
            kiln_pack_extract(pack, work->cache, work->options->target, &copied, &diag);
        code = status == KILN_OK
                   ? pack_tell_extracted(work->context, &copied, work->options->session.json)
               : status == KILN_E_UNAVAILABLE || status == KILN_E_UNSUPPORTED
                   ? cmd_fail_as(work->context, EXIT_CACHE, &diag)
                   : cmd_fail(work->context, &diag);
    }
    kiln_cache_destroy(work->cache);
    kiln_pack_close(pack);
    return code;
}

static exit_code do_verify(pack_work *work)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_pack *pack = NULL;
    kiln_verify_result result = {.struct_size = sizeof(result)};
    exit_code code = open_pack(work, &pack);
    if (code == EXIT_FINE) {
        code =
            kiln_pack_verify(pack, &result, &diag) == KILN_OK
                ? removal_tell_verified(work->context, &result, NULL, work->options->session.json)
                : cmd_fail_as(work->context, EXIT_DAMAGE, &diag);
        kiln_pack_close(pack);
    }
    return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct pack_action {
    const char *name;
    exit_code (*run)(pack_work *work);
    bool more; /* takes keys, or packs, after the file */
} actions[] = {
    {"create", do_create, true}, {"add", do_add, true},          {"merge", do_merge, true},
    {"list", do_list, false},    {"extract", do_extract, false}, {"verify", do_verify, false},
};

static exit_code run_pack(const cmd_context *context, void *fields, const opt_list *arguments)
{
    kiln_diag diag = KILN_DIAG_INIT;
    pack_work work = {
        .context = context, .options = fields, .path = arguments->items[1], .arguments = arguments};
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(arguments->items[0], actions[i].name) != 0) {
            continue;
        }
        if (arguments->count > 2 && !actions[i].more) {
            (void)kiln_diag_set(&diag, KILN_E_INVALID, "give one pack", "",
                                "unexpected argument \"%.100s\"", arguments->items[2]);
            return cmd_fail(context, &diag);
        }
        return actions[i].run(&work);
    }
    (void)kiln_diag_set(&diag, KILN_E_INVALID, "give create, add, merge, list, extract or verify",
                        "", "kiln pack has no action \"%.60s\"", arguments->items[0]);
    return cmd_fail(context, &diag);
}

const cli_command cmd_pack = {
    .name = "pack",
    .usage = "create|add|merge|list|extract|verify FILE [KEY...|PACK...]",
    .summary = "Makes one read-only file of many entries, and looks into it",
    .details =
        "create   writes the cache's entries (or those with the KEYs) to FILE, replacing it\n"
        "add      adds them to FILE; what is in it stays as it is\n"
        "merge    writes the entries of all PACKs to FILE; of one key the first is kept; exits 5\n"
        "         if a pack has damage, with what is whole\n"
        "list     lists what is in FILE\n"
        "extract  copies it into the cache; what is there stays as it is\n"
        "verify   reads and checks all of FILE; exits 5 if there is damage\n\n"
        "Programs use packs through KILN_PACKS=FILE[:FILE...] (absolute paths).",
    .options = specs,
    .options_size = sizeof(pack_options),
    .min_arguments = 2,
    .max_arguments = 100000,
    .run = run_pack,
};

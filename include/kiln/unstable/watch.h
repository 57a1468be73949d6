/* Hot reload: a program that follows its source file and every header that the source reaches.
 *
 *     kiln_watch_create(device, &source, NULL, &watch, &diag);     source.name is the file
 *     while drawing frames:
 *         if (kiln_watch_poll(watch, &changed, &diag) != KILN_OK) show diag.log, go on
 *         program = kiln_watch_program(watch);                     the last one that compiled
 *         ... launch ...
 *         kiln_program_release(program);
 *
 * A poll costs one stat a file while nothing changes. What does not compile is reported once, and
 * the program before it stays. Nothing happens behind the caller's back: no thread, no signal. */
#ifndef KILN_UNSTABLE_WATCH_H
#define KILN_UNSTABLE_WATCH_H

#include "kiln/program.h"

KILN_BEGIN_DECLS

typedef struct kiln_watch kiln_watch; /* create/destroy */

/* Prepares a watch; the first poll reads and builds. `source` is as for kiln_program_build, but its
 * text is read from the file `name`; `text` and `length` are not looked at. NULL options mean none.
 * Threads: any.   Blocks: never.
 * Owns: copies source and options (not what options->user points to); *out_watch is yours,
 * kiln_watch_destroy(), before the runtime.
 * Fails: KILN_E_INVALID (no name, no language), KILN_E_UNSUPPORTED (a language that the device does
 * not take, or that has no file), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_watch_create(kiln_device *device,
                                                       const kiln_source *source,
                                                       const kiln_build_options *options,
                                                       kiln_watch **out_watch, kiln_diag *diag);
KILN_API void kiln_watch_destroy(kiln_watch *watch);

/* Builds if the source or a header that it reaches changed, appeared or went since the last poll;
 * *out_changed is true if there is another program now.
 * Threads: one at a time per watch.   Blocks: disk; when something changed, as kiln_program_build.
 * Owns: nothing.
 * Fails: as kiln_program_build, and KILN_E_IO if the source cannot be read: once for each change;
 * the program stays what it was. */
KILN_API KILN_MUST_CHECK kiln_status kiln_watch_poll(kiln_watch *watch, bool *out_changed,
                                                     kiln_diag *diag);

/* The last program that was built, or NULL if there has been none yet; and the number of files and
 * absent places that a poll looks at.
 * Threads: one at a time per watch.   Blocks: never.
 * Owns: the program is yours, kiln_program_release().   Fails: never. */
KILN_API kiln_program *kiln_watch_program(kiln_watch *watch);
KILN_API size_t kiln_watch_place_count(const kiln_watch *watch);

KILN_END_DECLS

#endif

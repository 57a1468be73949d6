/* The page about a recording. */
#ifndef KILN_PROGRAM_PAGE_RECORDING_PAGE_H
#define KILN_PROGRAM_PAGE_RECORDING_PAGE_H

#include <kiln/cache.h>
#include <kiln/unstable/recording.h>

#include "page/page.h"

/* What it has, and what of that `cache` has. */
void recording_page_write(html_page *page, const char *path, const kiln_recording *recording,
                          kiln_cache *cache);

#endif

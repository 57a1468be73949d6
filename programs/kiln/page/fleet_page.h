/* The page about the caches of many machines, from their metrics. */
#ifndef KILN_PROGRAM_PAGE_FLEET_PAGE_H
#define KILN_PROGRAM_PAGE_FLEET_PAGE_H

#include "page/metrics.h"
#include "page/page.h"

void fleet_page_write(html_page *page, const metrics_set *set);

#endif

/* The page about one cache. */
#ifndef KILN_PROGRAM_PAGE_CACHE_PAGE_H
#define KILN_PROGRAM_PAGE_CACHE_PAGE_H

#include "page/holdings.h"
#include "page/page.h"

void cache_page_write(html_page *page, const holdings *held);

#endif

/* The sections that a page about one cache and one about many share: what the counters say. */
#ifndef KILN_PROGRAM_PAGE_SUMS_H
#define KILN_PROGRAM_PAGE_SUMS_H

#include "page/page.h"

uint64_t sums_hits(const uint64_t *counters);
/* The figures on top. */
void sums_cards(html_page *page, const uint64_t *counters, uint64_t entries, uint64_t bytes);
/* Where time went, where answers came from, and why something had to be compiled. */
void sums_sections(html_page *page, const uint64_t *counters);

#endif

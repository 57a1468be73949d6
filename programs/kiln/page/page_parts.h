/* report.html up to its data, and from the data's end on, as the build embeds them: embed.cmake. */
#ifndef KILN_PROGRAM_PAGE_PARTS_H
#define KILN_PROGRAM_PAGE_PARTS_H

extern const char page_before_data[];
extern const char page_after_data[];

#endif

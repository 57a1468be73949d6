/* Entries cut short and with flipped bits: each is a miss and made again, and the driver is not
 * asked about it. */
#ifndef KILN_TESTS_GLSL_DAMAGE_H
#define KILN_TESTS_GLSL_DAMAGE_H

/* `target`: part of the directory's name that holds the entries made for the device. */
void glsl_damaged_entries_are_made_again(const char *backend, const char *target);

#endif

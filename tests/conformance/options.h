/* Options of each backend's language, for tests that compare hits with compiles. */
#ifndef KILN_TESTS_CONFORMANCE_OPTIONS_H
#define KILN_TESTS_CONFORMANCE_OPTIONS_H

/* Ends with NULL; the first is "". One string may hold several options. */
const char *const *conformance_options(const char *backend);

#endif

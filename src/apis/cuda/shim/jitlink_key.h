/* The keys of what a caller does with nvJitLink: each step has one, made of the one before it. */
#ifndef KILN_CUDA_SHIM_JITLINK_KEY_H
#define KILN_CUDA_SHIM_JITLINK_KEY_H

#include "apis/cuda/options/nvjitlink_options.h"
#include "apis/cuda/shim/jitlink_link.h"

/* What a library is called in keys. False if its file cannot be read. Blocks: disk. */
bool kn_jitlink_identify(kiln_cache *cache, const kn_jitlink_real *library, char *out, size_t size);

/* The recipes of a creation, of the last input's adding, of the link, and of the version.
 * KILN_E_NOMEM. *out_recipe is yours. */
kiln_status kn_jitlink_key_create(const kn_jitlink_link *link, const char *identity,
                                  kiln_recipe **out_recipe);
kiln_status kn_jitlink_key_add(const kn_jitlink_link *link, kiln_recipe **out_recipe);
kiln_status kn_jitlink_key_complete(const kn_jitlink_link *link, unsigned release,
                                    kiln_recipe **out_recipe);
kiln_status kn_jitlink_key_version(const char *identity, kiln_recipe **out_recipe);

#endif

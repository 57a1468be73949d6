/* Kernel manifests: a JSON file that names kernels, their sources by language, arguments, launch
 * shape and reference. The format is described in kiln-manifest(5).
 *
 * Errors name the place: "kernels.json:14:27: kernels[2].args[1].shape: ..." */
#ifndef KILN_PROGRAM_MANIFEST_H
#define KILN_PROGRAM_MANIFEST_H

#include "cli/opt.h"
#include "kernel/kernel.h"

typedef struct cli_manifest {
    const char *path;
    cli_kernel *kernels;
    size_t count;
} cli_manifest;

/* Reads a manifest; paths in it are seen from its directory. KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status manifest_read(const char *path, cli_pool *pool, cli_manifest *out_manifest,
                          kiln_diag *diag);
/* The same where nothing will be launched: "args" and "launch" may be missing. */
kiln_status manifest_read_to_compile(const char *path, cli_pool *pool, cli_manifest *out_manifest,
                                     kiln_diag *diag);
/* As manifest_read from text in memory (NUL-terminated, `length` without the NUL). */
kiln_status manifest_parse(const char *text, size_t length, const char *path, cli_pool *pool,
                           cli_manifest *out_manifest, kiln_diag *diag);

/* Keeps the kernels that are named; without names all. KILN_E_INVALID: one of them is not there. */
kiln_status manifest_keep(cli_manifest *manifest, const opt_list *names, kiln_diag *diag);

#endif

/* A recording in a registry of container images: one layer, its files in a tar, signed. */
#ifndef KILN_PROGRAM_SHIP_RECORDING_H
#define KILN_PROGRAM_SHIP_RECORDING_H

#include "ship/ship.h"

/* Pushes the recording at `path` to `place` ("oci://..."). `entries` of the result are its uses.
 * KILN_E_INVALID: it is not a recording, or a place. */
kiln_status ship_push_recording(const cmd_context *context, const char *place, const char *path,
                                ship_result *out_result, kiln_diag *diag);
/* Pulls one into a new directory, 0700, which is there when all of it is right. Whose signature it
 * needs: as ship_pull. */
kiln_status ship_pull_recording(const cmd_context *context, const char *place, const char *path,
                                bool unsigned_too, ship_result *out_result, kiln_diag *diag);

#endif

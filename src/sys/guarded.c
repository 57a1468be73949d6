/* Small files that others must keep away from; see guarded.h. The permission bits say it. */
#include "sys/guarded.h"

#include <stdlib.h>

#include "sys/fail.h"
#include "sys/file.h"
#include "sys/publish.h"

#define OTHERS_WRITE 022u
#define OTHERS_READ 007u
#define GROUP_READS 070u

kiln_status kn_guarded_read(const char *path, size_t limit, void **out_data, size_t *out_size,
                            kn_exposure *out_exposure, kiln_diag *diag)
{
    kn_file_facts facts;
    *out_exposure = KN_EXPOSED_TO_WRITERS;
    kiln_status status = kn_file_read(path, limit, false, out_data, out_size, &facts, diag);
    if (status == KILN_OK) {
        *out_exposure = (facts.mode & OTHERS_WRITE) != 0  ? KN_EXPOSED_TO_WRITERS
                        : (facts.mode & OTHERS_READ) != 0 ? KN_EXPOSED_TO_READERS
                        : (facts.mode & GROUP_READS) != 0 ? KN_EXPOSED_TO_GROUP
                                                          : KN_EXPOSED_TO_NOBODY;
    }
    return status;
}

kiln_status kn_guarded_make(const char *path, const void *data, size_t size, kiln_diag *diag)
{
    kn_publish publish;
    char *dir = kn_path_dir(path);
    kiln_status status = dir != NULL ? kn_publish_begin_unnamed(&publish, dir, path, diag)
                                     : kn_fail_nomem(diag, "cannot make", path);
    if (status == KILN_OK) {
        kn_publish_write(&publish, data, size);
        kn_publish_insist(&publish);
        status = kn_publish_commit(&publish, true, diag);
    }
    free(dir);
    return status;
}

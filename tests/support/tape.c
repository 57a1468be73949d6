/* tape RECORDING FRONTEND TARGET COUNT FILE [OPTION...]: records the text of a file COUNT times,
 * each time with another comment (COUNT 1: as it is), as a program that was used for TARGET.
 * FRONTEND is walk, opencl or nvrtc; the language is that of the file's name. The keys are made up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/names.h>

#include "base/text.h"
#include "record/recording.h"
#include "support/tmpdir.h"

static int fail(const char *what, const kiln_diag *diag)
{
    (void)fprintf(stderr, "tape: %s: %s\n", what, diag->why);
    return 1;
}

static kn_recorded_frontend frontend_of(const char *name)
{
#define KN_FRONTEND(id, number, text)                                                              \
    if (strcmp(name, text) == 0) {                                                                 \
        return KN_FRONTEND_##id;                                                                   \
    }
#include "record/frontends.def"
#undef KN_FRONTEND
    return KN_FRONTEND_WALK;
}

static kiln_status record_one(const char *root, kn_recorded *program, const char *text,
                              const char *target, uint64_t index, kiln_diag *diag)
{
    kn_recorded_text recorded = {.options = ""};
    kn_recorded_use use = {.target = target, .first_ns = (int64_t)index + 1};
    kiln_key key;
    uint64_t written = 0;
    kiln_status status = kn_object_put(root, text, strlen(text), &recorded.text, &written, diag);
    program->texts = &recorded;
    program->text_count = 1;
    if (status == KILN_OK) {
        status = kn_object_put_program(root, program, use.program, &written, diag);
    }
    if (status == KILN_OK && kn_digest_of(use.program, sizeof(use.program), key.bytes)) {
        key.bytes[0] ^= (uint8_t)target[strlen(target) - 1];
        status = kn_object_put_use(root, &key, &use, &written, diag);
    }
    return status;
}

int main(int argc, char **argv)
{
    kiln_diag diag = KILN_DIAG_INIT;
    uint64_t count = 0;
    if (argc < 6 || !kn_text_to_u64(argv[4], &count)) {
        (void)fprintf(stderr, "usage: tape RECORDING FRONTEND TARGET COUNT FILE [OPTION...]\n");
        return 2;
    }
    size_t size = 0;
    char *text = kt_file_read(argv[5], &size);
    char *one = text != NULL ? malloc(size + 64) : NULL;
    if (one == NULL || kn_recording_prepare(argv[1], &diag) != KILN_OK) {
        return fail(argv[1], &diag);
    }
    const char *slash = strrchr(argv[5], '/');
    kn_recorded program = KN_RECORDED_INIT;
    program.frontend = frontend_of(argv[2]);
    program.language = kiln_language_of_path(argv[5]);
    program.name = slash != NULL ? slash + 1 : argv[5];
    program.options = (const char *const *)argv + 6;
    program.option_count = (size_t)argc - 6;
    kiln_status status = KILN_OK;
    for (uint64_t i = 0; status == KILN_OK && i < count; i++) {
        (void)snprintf(one, size + 64, count > 1 ? "%s// %llu\n" : "%s", text,
                       (unsigned long long)i);
        status = record_one(argv[1], &program, one, argv[3], i, &diag);
    }
    free(one);
    free(text);
    return status == KILN_OK ? 0 : fail(argv[5], &diag);
}

/* The public half: a recording, its uses, and compiling one of them again. */
#include <kiln/unstable/recording.h>

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/map.h"
#include "base/text.h"
#include "core/build/plan.h"
#include "core/runtime/runtime.h"
#include "replay/call.h"
#include "replay/opencl.h"
#include "replay/program.h"
#include "sized/sized.h"
#include "sys/clock.h"

_Static_assert(KILN_RECORDING_STAGES == KILN_STAGE_MAX, "one key a stage");

/* What its uses say of a program. */
typedef struct program_row {
    char *name;
    kn_recorded_frontend frontend;
    kiln_language language;
    uint64_t source_bytes;
    size_t same; /* index of the first that is compiled as this one is */
    bool damaged;
} program_row;

struct kiln_recording {
    kn_recording files;
    kn_scratch scratch;
    kn_map known; /* digest -> index + 1 */
    kn_map alike; /* digest of what a replay takes of a program -> index + 1 */
    program_row *programs;
    size_t program_count;
    kiln_recorded_use *uses;
    size_t *places; /* of each use in `files` */
    size_t use_count;
};

static const char opening[] = "opening a recording";

/* --- opening ---------------------------------------------------------------------------------- */

static void note_trouble(kiln_recording *recording, const uint8_t digest[KN_DIGEST_SIZE],
                         const kiln_diag *diag)
{
    char name[2 * KN_DIGEST_SIZE + 1];
    if (recording->files.damaged++ == 0) {
        kn_hex_encode(digest, KN_DIGEST_SIZE, name);
        kn_text_putf(recording->files.damage, sizeof(recording->files.damage),
                     "programs/%.2s/%s: %s", name, name, diag->why);
    }
}

/* Files of a toolchain are this machine's, whatever they were: programs that differ in those alone,
 * since two compilers saw them, are one. */
static kiln_status find_same(kiln_recording *recording, const kn_recorded *program, size_t own,
                             size_t *out_same)
{
    uint8_t digest[KN_DIGEST_SIZE];
    kn_strbuf bytes;
    kn_recorded less = *program;
    kn_recorded_file *files = (kn_recorded_file *)calloc(program->file_count + 1, sizeof(*files));
    if (files == NULL) {
        return KILN_E_NOMEM;
    }
    less.files = files;
    less.file_count = 0;
    for (size_t i = 0; i < program->file_count; i++) {
        if (!program->files[i].system) {
            files[less.file_count++] = program->files[i];
        }
    }
    kn_strbuf_init(&bytes, 0);
    bool good = kn_recorded_encode(&less, &bytes) && kn_strbuf_ok(&bytes) &&
                kn_digest_of(kn_strbuf_text(&bytes), bytes.length, digest);
    const uintptr_t known =
        good ? (uintptr_t)kn_map_find(&recording->alike, digest, sizeof(digest)) : 0;
    *out_same = known > 0 ? known - 1 : own;
    if (good && known == 0) {
        good = kn_map_put(&recording->alike, digest, sizeof(digest), (void *)(uintptr_t)(own + 1),
                          NULL); // NOLINT
    }
    kn_strbuf_deinit(&bytes);
    free(files);
    return good ? KILN_OK : KILN_E_NOMEM;
}

static uint64_t sum_source(const kn_recorded *program)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < program->text_count; i++) {
        bytes += program->texts[i].text.size;
        for (size_t k = 0; k < program->texts[i].header_count; k++) {
            bytes += program->texts[i].headers[k].text.size;
        }
    }
    for (size_t i = 0; i < program->file_count; i++) {
        bytes += program->files[i].content.size;
    }
    return bytes;
}

static kiln_status read_row(kiln_recording *recording, const uint8_t digest[KN_DIGEST_SIZE],
                            program_row *row)
{
    kn_recorded program;
    char *bytes = NULL;
    kiln_diag own = KILN_DIAG_INIT;
    kiln_status status = kn_recording_program(&recording->files, digest, &bytes, &program, &own);
    if (status == KILN_OK) {
        *row = (program_row){.name = kn_text_copy(program.name != NULL ? program.name : ""),
                             .frontend = program.frontend,
                             .language = program.language,
                             .source_bytes = sum_source(&program)};
        status = row->name != NULL
                     ? find_same(recording, &program, recording->program_count, &row->same)
                     : KILN_E_NOMEM;
        if (status != KILN_OK) {
            free(row->name);
            row->name = NULL;
        }
        kn_recorded_deinit(&program);
    } else if (status != KILN_E_NOMEM) {
        note_trouble(recording, digest, &own);
        row->damaged = true;
        status = KILN_OK;
    }
    kiln_diag_clear(&own);
    free(bytes);
    return status;
}

/* The index of a program, which is read when its first use is met. */
static kiln_status find_row(kiln_recording *recording, const uint8_t digest[KN_DIGEST_SIZE],
                            size_t *out_index)
{
    const uintptr_t known = (uintptr_t)kn_map_find(&recording->known, digest, KN_DIGEST_SIZE);
    if (known > 0) {
        *out_index = known - 1;
        return KILN_OK;
    }
    *out_index = recording->program_count;
    if (read_row(recording, digest, &recording->programs[recording->program_count]) != KILN_OK) {
        return KILN_E_NOMEM;
    }
    recording->program_count++;
    return kn_map_put(&recording->known, digest, KN_DIGEST_SIZE,
                      (void *)(uintptr_t)recording->program_count, NULL) // NOLINT
               ? KILN_OK
               : KILN_E_NOMEM;
}

static kiln_status list_use(kiln_recording *recording, size_t place)
{
    const kn_recording_use *use = &recording->files.uses[place];
    size_t index = 0;
    kiln_status status = find_row(recording, use->program, &index);
    if (status != KILN_OK || recording->programs[index].damaged) {
        return status;
    }
    const program_row *row = &recording->programs[index];
    recording->places[recording->use_count] = place;
    recording->uses[recording->use_count++] = (kiln_recorded_use){
        .struct_size = sizeof(kiln_recorded_use),
        .name = row->name,
        .target = use->target,
        .door = kn_recorded_frontend_name(row->frontend),
        .language = row->language,
        .way = kn_replay_by_call(row->frontend) ? KILN_REPLAY_CALL : KILN_REPLAY_COMPILE,
        .program = row->same,
        .key = use->key,
        .first_ns = use->first_ns,
        .last_ns = use->last_ns,
        .compile_ns = use->compile_ns,
        .days = use->days,
        .source_bytes = row->source_bytes};
    return KILN_OK;
}

static kiln_status list_uses(kiln_recording *recording)
{
    const size_t count = recording->files.use_count;
    recording->programs = (program_row *)calloc(count + 1, sizeof(*recording->programs));
    recording->uses = (kiln_recorded_use *)calloc(count + 1, sizeof(*recording->uses));
    recording->places = (size_t *)calloc(count + 1, sizeof(*recording->places));
    if (recording->programs == NULL || recording->uses == NULL || recording->places == NULL) {
        return KILN_E_NOMEM;
    }
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        status = list_use(recording, i);
    }
    return status;
}

bool kiln_recording_is(const char *path)
{
    return kn_recording_is(path);
}

kiln_status kiln_recording_open(const char *path, kiln_recording **out_recording, kiln_diag *diag)
{
    kiln_recording *recording = (kiln_recording *)calloc(1, sizeof(*recording));
    *out_recording = NULL;
    if (recording == NULL) {
        return kn_no_memory(diag, opening);
    }
    kn_scratch_init(&recording->scratch);
    kn_map_init(&recording->known);
    kn_map_init(&recording->alike);
    kiln_status status = kn_recording_open(path, &recording->files, diag);
    if (status == KILN_OK && list_uses(recording) != KILN_OK) {
        status = kn_no_memory(diag, opening);
    }
    if (status == KILN_OK) {
        *out_recording = recording;
    } else {
        kiln_recording_close(recording);
    }
    return status;
}

void kn_replay_place(kiln_recording *recording, const char *parent)
{
    recording->scratch.parent = parent;
}

void kiln_recording_close(kiln_recording *recording)
{
    if (recording == NULL) {
        return;
    }
    for (size_t i = 0; i < recording->program_count; i++) {
        free(recording->programs[i].name);
    }
    free(recording->programs);
    free(recording->uses);
    free(recording->places);
    kn_map_deinit(&recording->known);
    kn_map_deinit(&recording->alike);
    kn_recording_close(&recording->files);
    kn_scratch_deinit(&recording->scratch);
    free(recording);
}

size_t kiln_recording_count(const kiln_recording *recording)
{
    return recording->use_count;
}

const kiln_recorded_use *kiln_recording_use(const kiln_recording *recording, size_t index)
{
    return index < recording->use_count ? &recording->uses[index] : NULL;
}

size_t kiln_recording_damage(const kiln_recording *recording, const char **out_what)
{
    *out_what = recording->files.damage;
    return recording->files.damaged;
}

/* --- compiling -------------------------------------------------------------------------------- */

/* "opencl:opencl-pocl-cpu" of a recording is "opencl:0" here; what names no device stays. */
static void spell_target(const kiln_runtime *runtime, const char *target, char *out, size_t size)
{
    const char *colon = strchr(target, ':');
    kn_text_put(out, size, target);
    for (size_t i = 0; colon != NULL && i < runtime->device_count; i++) {
        const kiln_device *device = runtime->devices[i];
        const size_t backend = strlen(device->info.backend);
        if (strncmp(device->info.backend, target, (size_t)(colon - target)) == 0 &&
            backend == (size_t)(colon - target) && strcmp(device->info.target, colon + 1) == 0) {
            kn_text_putf(out, size, "%s:%u", device->info.backend, device->info.index);
            return;
        }
    }
}

static kiln_status compile_walk(kn_plan *plan, kiln_blob **out_blob, kiln_build_info *info,
                                kiln_key *keys, size_t *out_key_count, kiln_diag *diag)
{
    kiln_status status = kn_build_artifacts(&plan->build, diag);
    if (status == KILN_OK) {
        const kn_stage_run *last = &plan->build.runs[plan->build.stage_count - 1];
        *out_blob = kiln_blob_retain(last->blob);
        *info = plan->build.info;
        info->origin = last->origin;
        info->key = last->key;
        for (size_t i = 0; i < plan->build.stage_count; i++) {
            if (plan->build.runs[i].bypass[0] == '\0') {
                keys[(*out_key_count)++] = plan->build.runs[i].key;
            }
        }
    }
    return status;
}

static kiln_status compile_program(const kn_replay_program *program, kiln_runtime *runtime,
                                   const char *target, kiln_blob **out_blob, kiln_build_info *info,
                                   kiln_key *keys, size_t *out_key_count, kiln_diag *diag)
{
    const kiln_source source = kn_replay_program_source(program);
    kn_plan plan;
    kiln_status status = kn_plan_open(runtime, target, &source, NULL, &plan, diag);
    if (status == KILN_OK && program->recorded.frontend == KN_FRONTEND_OPENCL) {
        status = kn_replay_opencl(program, runtime, &plan, out_blob, info, diag);
        if (status == KILN_OK) {
            keys[0] = info->key;
            *out_key_count = 1;
        }
    } else if (status == KILN_OK) {
        status = compile_walk(&plan, out_blob, info, keys, out_key_count, diag);
    }
    kn_plan_close(&plan);
    return status;
}

static kiln_status read_program(kiln_recording *recording, size_t index, kn_replay_program *program,
                                kiln_diag *diag)
{
    if (index >= recording->use_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "replaying a recording", "it has %zu uses",
                             recording->use_count);
    }
    const kn_recording_use *use = &recording->files.uses[recording->places[index]];
    return kn_replay_program_init(program, &recording->files, &recording->scratch, use->program,
                                  diag);
}

kiln_status kiln_recording_compile(kiln_recording *recording, size_t index, kiln_runtime *runtime,
                                   const char *target, kiln_blob **out_blob,
                                   kiln_build_info *out_info, kiln_key *keys, size_t *out_key_count,
                                   kiln_diag *diag)
{
    const uint64_t start = kn_clock_now();
    kn_replay_program program;
    kiln_build_info info;
    char spelt[KILN_DEVICE_TEXT];
    *out_blob = NULL;
    *out_key_count = 0;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_build_info), out_info, &info, diag);
    if (status == KILN_OK) {
        status = read_program(recording, index, &program, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    if (recording->uses[index].way != KILN_REPLAY_COMPILE) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, recording->uses[index].name,
                               "it is replayed by calls alone");
    } else {
        spell_target(runtime, target, spelt, sizeof(spelt));
        status =
            compile_program(&program, runtime, spelt, out_blob, &info, keys, out_key_count, diag);
    }
    info.total_ns = kn_clock_now() - start;
    info.log = "";
    if (status != KILN_OK) {
        kiln_blob_release(*out_blob);
        *out_blob = NULL;
        info = (kiln_build_info){.log = ""};
    }
    kn_sized_end(KN_SIZED(kiln_build_info), &info, out_info);
    kn_replay_program_deinit(&program);
    return status;
}

kiln_status kn_replay_call_init(kn_replay_call *call, kiln_recording *recording, size_t index,
                                const char *target, kiln_diag *diag)
{
    *call = (kn_replay_call){.options = NULL};
    kiln_status status = read_program(recording, index, &call->program, diag);
    if (status == KILN_OK) {
        status = kn_replay_call_choose(call, recording->uses[index].target, target, diag);
        if (status != KILN_OK) {
            kn_replay_call_deinit(call);
        }
    }
    return status;
}

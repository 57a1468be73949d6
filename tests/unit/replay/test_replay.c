/* Recorded programs compiled again: by the same key, to the same bytes, without the files that they
 * were made of. On the compilers of this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "kiln/kiln.h"
#include "kiln/unstable/compile.h"
#include "kiln/unstable/explain.h"
#include "kiln/unstable/recording.h"
#include "record/recording.h"
#include "replay/call.h"
#include "support/cmocka.h"
#include "support/skip.h"
#include "support/tmpdir.h"

/* --- a rig: a cache, a runtime that compiles for a target ------------------------------------- */

typedef struct rig {
    kiln_cache *cache;
    kiln_runtime *runtime;
} rig;

/* False where the backend does not work on this machine. */
static bool rig_init(rig *r, const char *root, const char *backend)
{
    kiln_cache_options options;
    kiln_runtime_options wishes;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &r->cache, NULL), KILN_OK);
    assert_int_equal(kiln_runtime_options_init(&wishes, NULL), KILN_OK);
    wishes.backend = backend;
    wishes.strict = true;
    wishes.compile_only = true;
    wishes.cache = r->cache;
    r->runtime = NULL;
    return kiln_runtime_create(&wishes, &r->runtime, NULL) == KILN_OK;
}

static void rig_deinit(rig *r)
{
    kiln_runtime_destroy(r->runtime);
    kiln_cache_destroy(r->cache);
}

static kiln_status take_first_key(void *user, const kiln_explanation *stage)
{
    memcpy(user, &stage->key, sizeof(stage->key));
    return KILN_MISS;
}

/* --- recording by hand ------------------------------------------------------------------------ */

static kn_object put_text(const char *root, const char *text)
{
    kn_object object;
    uint64_t written = 0;
    assert_int_equal(kn_object_put(root, text, strlen(text), &object, &written, NULL), KILN_OK);
    return object;
}

static void record_program(const char *root, const kn_recorded *program, const kiln_key *key,
                           const char *target)
{
    uint64_t written = 0;
    kn_recorded_use use = {.target = target, .first_ns = 1};
    assert_int_equal(kn_object_put_program(root, program, use.program, &written, NULL), KILN_OK);
    assert_int_equal(kn_object_put_use(root, key, &use, &written, NULL), KILN_OK);
}

/* A directory with the recording, the header's directory and two caches. */
typedef struct place {
    char *recording, *include, *header, *first, *second;
} place;

static place place_make(const char *root, const char *header_text)
{
    place p = {kt_path(root, "recording"), kt_path(root, "include"), kt_path(root, "include/n.h"),
               kt_path(root, "cache"), kt_path(root, "other")};
    assert_int_equal(kn_recording_prepare(p.recording, NULL), KILN_OK);
    assert_int_equal(mkdir(p.include, 0700), 0);
    kt_file_write(p.header, header_text, strlen(header_text));
    return p;
}

static void place_free(place *p)
{
    free(p->recording);
    free(p->include);
    free(p->header);
    free(p->first);
    free(p->second);
}

/* --- the walk --------------------------------------------------------------------------------- */

typedef struct walk_case {
    const char *backend, *target, *name, *text;
    kiln_language language;
} walk_case;

/* As the walk would have recorded it. */
static void record_walk(const place *p, const walk_case *c, const kiln_key *key)
{
    const char *const dirs[] = {p->include};
    const kn_recorded_text text = {.text = put_text(p->recording, c->text), .options = ""};
    const kn_recorded_file file = {.path = p->header,
                                   .content = put_text(p->recording, "#define N 7\n")};
    kn_recorded program = KN_RECORDED_INIT;
    program.frontend = KN_FRONTEND_WALK;
    program.language = c->language;
    program.name = c->name;
    program.texts = &text;
    program.text_count = 1;
    program.include_dirs = dirs;
    program.include_dir_count = 1;
    program.files = &file;
    program.file_count = 1;
    record_program(p->recording, &program, key, c->target);
}

/* Compiles the program as a program would, with a header of a directory; records it; takes the
 * header away; compiles the recording into another cache. */
static void replay_walk(const char *root, const walk_case *c)
{
    place p = place_make(root, "#define N 7\n");
    const char *const dirs[] = {p.include};
    kiln_source source = KILN_SOURCE_INIT;
    rig one, two;
    kiln_key key = {{0}};
    kiln_blob *blob = NULL, *again = NULL;
    if (!rig_init(&one, p.first, c->backend)) {
        rig_deinit(&one);
        place_free(&p);
        print_message("no %s here\n", c->backend);
        assert_false(kn_test_required(c->backend));
        skip();
    }
    source.language = c->language;
    source.name = c->name;
    source.text = c->text;
    source.length = strlen(c->text);
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    assert_int_equal(kiln_compile(one.runtime, c->target, &source, &blob, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_compile_plan(one.runtime, c->target, &source, take_first_key, &key, NULL),
                     KILN_MISS);

    record_walk(&p, c, &key);
    assert_int_equal(remove(p.header), 0);

    kiln_recording *recording = NULL;
    kiln_build_info info = {.struct_size = sizeof(info)};
    kiln_key keys[KILN_RECORDING_STAGES];
    size_t key_count = 0;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_true(rig_init(&two, p.second, c->backend));
    assert_int_equal(kiln_recording_open(p.recording, &recording, NULL), KILN_OK);
    assert_int_equal(kiln_recording_count(recording), 1);
    assert_string_equal(kiln_recording_use(recording, 0)->name, c->name);
    assert_int_equal(kiln_recording_compile(recording, 0, two.runtime, c->target, &again, &info,
                                            keys, &key_count, &diag),
                     KILN_OK);
    assert_true(info.compiles > 0);
    assert_true(key_count > 0);
    assert_memory_equal(keys[0].bytes, key.bytes, sizeof key.bytes);
    assert_int_equal(kiln_blob_size(again), kiln_blob_size(blob));
    assert_memory_equal(kiln_blob_data(again), kiln_blob_data(blob), kiln_blob_size(blob));
    kiln_blob_release(again);
    assert_int_equal(kiln_recording_compile(recording, 0, two.runtime, c->target, &again, &info,
                                            keys, &key_count, &diag),
                     KILN_OK);
    assert_int_equal(info.compiles, 0);
    kiln_blob_release(again);
    kiln_blob_release(blob);
    kiln_diag_clear(&diag);
    kiln_recording_close(recording);
    rig_deinit(&two);
    rig_deinit(&one);
    place_free(&p);
}

static void a_c_program_is_compiled_again_by_its_key(void **state)
{
    replay_walk(*state, &(walk_case){.backend = "cpu",
                                     .target = "cpu:native",
                                     .name = "scale.c",
                                     .language = KILN_LANG_C,
                                     .text = "#include <kiln_kernel.h>\n#include \"n.h\"\n"
                                             "KILN_KERNEL(scale, KILN_INOUT(float, p))\n"
                                             "{ KILN_ITEMS_X(i) { p[i] *= N; } }\n"});
}

static void a_glsl_program_is_compiled_again_by_its_key(void **state)
{
    replay_walk(*state,
                &(walk_case){.backend = "vulkan",
                             .target = "vulkan:spirv",
                             .name = "scale.comp",
                             .language = KILN_LANG_GLSL,
                             .text = "#version 450\n#extension GL_GOOGLE_include_directive : "
                                     "require\n#include \"n.h\"\n"
                                     "layout(local_size_x = 1) in;\n"
                                     "layout(std430, binding = 0) buffer B { float p[]; };\n"
                                     "void main() { p[gl_GlobalInvocationID.x] *= float(N); }\n"});
}

static void a_cuda_program_is_compiled_again_by_its_key(void **state)
{
    if (kn_test_is_emulated()) {
        print_message("the NVRTC of the machine below is for its own processors\n");
        skip();
    }
    replay_walk(*state, &(walk_case){.backend = "cuda",
                                     .target = "cuda:sm_90",
                                     .name = "scale.cu",
                                     .language = KILN_LANG_CUDA,
                                     .text = "#include \"n.h\"\nextern \"C\" __global__ void "
                                             "scale(float *p) { p[threadIdx.x] *= N; }\n"});
}

/* --- the OpenCL drop-in ----------------------------------------------------------------------- */

static void record_opencl(const place *p, const char *text, const kiln_key *key, const char *target)
{
    char options[4200];
    (void)snprintf(options, sizeof(options), "-I %s", p->include);
    const kn_recorded_text recorded_text = {.text = put_text(p->recording, text),
                                            .options = options};
    const kn_recorded_file file = {.path = p->header,
                                   .content = put_text(p->recording, "#define N 7\n")};
    kn_recorded program = KN_RECORDED_INIT;
    program.frontend = KN_FRONTEND_OPENCL;
    program.language = KILN_LANG_OPENCL_C;
    program.texts = &recorded_text;
    program.text_count = 1;
    program.files = &file;
    program.file_count = 1;
    record_program(p->recording, &program, key, target);
}

static void an_opencl_call_is_compiled_again_by_its_key(void **state)
{
    static const char text[] =
        "#include \"n.h\"\n"
        "__kernel void scale(__global float *p) { p[get_global_id(0)] *= N; }\n";
    place p = place_make(*state, "#define N 7\n");
    const char *const dirs[] = {p.include};
    kiln_source source = KILN_SOURCE_INIT;
    rig one, two;
    kiln_build_info info = {.struct_size = sizeof(info)};
    kiln_blob *blob = NULL, *again = NULL;
    if (!rig_init(&one, p.first, "opencl") || kiln_runtime_device_count(one.runtime) == 0) {
        rig_deinit(&one);
        place_free(&p);
        assert_false(kn_test_required("opencl"));
        skip();
    }
    source.language = KILN_LANG_OPENCL_C;
    source.name = "scale.cl";
    source.text = text;
    source.length = strlen(text);
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    assert_int_equal(kiln_dropin_compile(one.runtime, "opencl:0", &source, &blob, &info, NULL),
                     KILN_OK);
    const kiln_key key = info.key;

    char target[KILN_DEVICE_TEXT];
    (void)snprintf(target, sizeof(target), "opencl:%s",
                   kiln_device_get_info(kiln_runtime_device(one.runtime, 0))->target);
    record_opencl(&p, text, &key, target);
    assert_int_equal(remove(p.header), 0);

    kiln_recording *recording = NULL;
    kiln_key keys[KILN_RECORDING_STAGES];
    size_t key_count = 0;
    assert_true(rig_init(&two, p.second, "opencl"));
    assert_int_equal(kiln_recording_open(p.recording, &recording, NULL), KILN_OK);
    assert_int_equal(kiln_recording_compile(recording, 0, two.runtime, target, &again, &info, keys,
                                            &key_count, NULL),
                     KILN_OK);
    assert_int_equal(key_count, 1);
    assert_memory_equal(keys[0].bytes, key.bytes, sizeof key.bytes);
    assert_int_equal(info.compiles, 1);
    kiln_blob_release(again);
    kiln_blob_release(blob);
    kiln_recording_close(recording);
    rig_deinit(&two);
    rig_deinit(&one);
    place_free(&p);
}

/* --- calls of NVRTC --------------------------------------------------------------------------- */

static void record_call(const char *root, kn_recorded_frontend frontend, uint32_t flags,
                        const char *const *options, size_t count, const char *target)
{
    static const char *const expressions[] = {"f<int>"};
    const kiln_key key = {{(uint8_t)strlen(target)}};
    const kn_recorded_header header = {.name = "n.h", .text = put_text(root, "#define N 7")};
    const kn_recorded_text text = {
        .text = put_text(root, "kernel"), .options = "", .headers = &header, .header_count = 1};
    const kn_recorded_file file = {.path = "/usr/x/a.h", .content = put_text(root, "a")};
    kn_recorded program = KN_RECORDED_INIT;
    program.frontend = frontend;
    program.flags = flags;
    program.language = frontend == KN_FRONTEND_NVRTC ? KILN_LANG_CUDA : KILN_LANG_HIP;
    program.name = "/tmp/odd/kernel.cu";
    program.dir = "/srv/app";
    program.texts = &text;
    program.text_count = 1;
    program.options = options;
    program.option_count = count;
    program.entries = expressions;
    program.entry_count = 1;
    program.files = &file;
    program.file_count = 1;
    record_program(root, &program, &key, target);
}

static void record_nvrtc(const char *root, const char *const *options, size_t count,
                         const char *target)
{
    record_call(root, KN_FRONTEND_NVRTC, 0, options, count, target);
}

static void expect_call(kiln_recording *recording, size_t index, const char *target,
                        const char *kind, const char *const options[3])
{
    kn_replay_call call;
    assert_int_equal(kn_replay_call_init(&call, recording, index, target, NULL), KILN_OK);
    assert_string_equal(kn_libraries[call.library].id, kind);
    assert_int_equal(call.program.recorded.option_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(call.options[i], options[i]);
    }
    kn_replay_call_deinit(&call);
}

/* hipRTC has one spelling of each, and takes any processor in the place of the recorded one. */
static void a_call_of_hiprtc_is_for_any_processor(void **state)
{
    static const char *const options[] = {"--offload-arch=gfx90a:xnack-", "-DARCH=gfx90a", "-O3"};
    static const char *const other[] = {"--offload-arch=gfx942", "-DARCH=gfx90a", "-O3"};
    kiln_recording *recording = NULL;
    kn_replay_call call;
    assert_int_equal(kn_recording_prepare(*state, NULL), KILN_OK);
    record_call(*state, KN_FRONTEND_HIPRTC, 0, options, 3, "hip:gfx90a:xnack-");
    record_call(*state, KN_FRONTEND_HIPRTC, KN_RECORDED_RUNTIME, other, 3, "hip:gfx942");
    assert_int_equal(kiln_recording_open(*state, &recording, NULL), KILN_OK);
    assert_int_equal(kiln_recording_count(recording), 2);
    const size_t first = strcmp(kiln_recording_use(recording, 0)->target, "hip:gfx942") == 0;
    assert_int_equal(kiln_recording_use(recording, first)->way, KILN_REPLAY_CALL);
    assert_string_equal(kiln_recording_use(recording, first)->door, "hiprtc");
    expect_call(recording, first, NULL, "hiprtc", options);
    expect_call(recording, first, "hip:gfx942", "hiprtc", other);
    expect_call(recording, 1 - first, NULL, "hip", other);
    assert_int_equal(kn_replay_call_init(&call, recording, first, "hip:native", NULL),
                     KILN_E_UNSUPPORTED);
    assert_int_equal(kn_replay_call_init(&call, recording, first, "cuda:sm_90", NULL),
                     KILN_E_UNSUPPORTED);
    kiln_recording_close(recording);
}

static void a_call_of_nvrtc_is_written_with_its_paths_and_architecture(void **state)
{
    static const char *const options[] = {"-arch=compute_75", "-I/usr/x", "-I", "inc", "-DA=1"};
    kiln_recording *recording = NULL;
    kn_replay_call call;
    assert_int_equal(kn_recording_prepare(*state, NULL), KILN_OK);
    record_nvrtc(*state, options, 5, "cuda:compute_75");
    assert_int_equal(kiln_recording_open(*state, &recording, NULL), KILN_OK);
    assert_int_equal(kiln_recording_use(recording, 0)->way, KILN_REPLAY_CALL);
    assert_int_equal(kn_replay_call_init(&call, recording, 0, "cuda:sm_90", NULL), KILN_OK);
    char expected[4200];
    assert_int_equal(call.library, KN_LIBRARY_nvrtc);
    assert_string_equal(call.program.name, "/tmp/odd/kernel.cu"); /* nothing lies there */
    assert_string_equal(call.options[0], "-arch=compute_90");
    (void)snprintf(expected, sizeof(expected), "-I%s/usr/x", call.program.tree);
    assert_string_equal(call.options[1], expected);
    assert_string_equal(call.options[2], "-I");
    (void)snprintf(expected, sizeof(expected), "%s/srv/app/inc", call.program.tree);
    assert_string_equal(call.options[3], expected);
    assert_string_equal(call.options[4], "-DA=1");
    kn_replay_call_deinit(&call);
    assert_int_equal(kn_replay_call_init(&call, recording, 0, NULL, NULL), KILN_OK);
    assert_string_equal(call.options[0], "-arch=compute_75");
    kn_replay_call_deinit(&call);
    assert_int_equal(kn_replay_call_init(&call, recording, 0, "vulkan:spirv", NULL),
                     KILN_E_UNSUPPORTED);
    kiln_recording_close(recording);
}

static void code_for_one_architecture_alone_is_for_no_other(void **state)
{
    static const char *const options[] = {"--gpu-architecture=sm_90a"};
    kiln_recording *recording = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_replay_call call;
    assert_int_equal(kn_recording_prepare(*state, NULL), KILN_OK);
    record_nvrtc(*state, options, 1, "cuda:sm_90a");
    assert_int_equal(kiln_recording_open(*state, &recording, NULL), KILN_OK);
    assert_int_equal(kn_replay_call_init(&call, recording, 0, "cuda:sm_80", &diag),
                     KILN_E_UNSUPPORTED);
    assert_non_null(strstr(diag.why, "sm_90a"));
    assert_int_equal(kn_replay_call_init(&call, recording, 0, "cuda:sm_90a", NULL), KILN_OK);
    kn_replay_call_deinit(&call);
    kiln_diag_clear(&diag);
    kiln_recording_close(recording);
}

static void a_program_whose_text_is_gone_says_so(void **state)
{
    kiln_recording *recording = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_replay_call call;
    const char *what = NULL;
    const kn_object object = put_text(*state, "kernel");
    char *path = kn_object_path(*state, "objects", object.digest);
    assert_int_equal(kn_recording_prepare(*state, NULL), KILN_E_INVALID); /* no marker yet */
    char *marker = kt_at(*state, "kiln-recording");
    kt_file_write(marker, "kiln-recording 1\n", 17);
    record_nvrtc(*state, NULL, 0, "cuda:");
    assert_int_equal(remove(path), 0);
    assert_int_equal(kiln_recording_open(*state, &recording, NULL), KILN_OK);
    assert_int_equal(kiln_recording_damage(recording, &what), 0);
    assert_int_equal(kn_replay_call_init(&call, recording, 0, NULL, &diag), KILN_MISS);
    assert_non_null(strstr(diag.why, "lacks"));
    kiln_diag_clear(&diag);
    kiln_recording_close(recording);
    free(path);
}

#define TEST(name) kt_dir_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_c_program_is_compiled_again_by_its_key),
        TEST(a_glsl_program_is_compiled_again_by_its_key),
        TEST(a_cuda_program_is_compiled_again_by_its_key),
        TEST(an_opencl_call_is_compiled_again_by_its_key),
        TEST(a_call_of_hiprtc_is_for_any_processor),
        TEST(a_call_of_nvrtc_is_written_with_its_paths_and_architecture),
        TEST(code_for_one_architecture_alone_is_for_no_other),
        TEST(a_program_whose_text_is_gone_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

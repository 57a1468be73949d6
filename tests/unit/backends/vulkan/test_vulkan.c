/* The vulkan backend on whatever driver is here (lavapipe in CI): its pool, what reaches
 * vkCreatePipelineCache, and warm starts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/text.h"
#include "hal/artifact.h"
#include "support/cmocka.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/elf.h"
#include "unit/backends/glsl_rig.h"

extern const kiln_backend kn_backend_vulkan;

static void *instance;
static kn_vk_device *device;

static int open_device(void **state)
{
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_diag diag = KILN_DIAG_INIT;
    void *opened = NULL;
    if (kn_backend_vulkan.open(&kn_host, &instance, &report, &diag) != KILN_OK ||
        report.device_count == 0) {
        kn_test_skip("vulkan", report.why);
    }
    assert_int_equal(kn_backend_vulkan.device->device_open(instance, 0, &opened, &diag), KILN_OK);
    device = (kn_vk_device *)opened;
    return 0;
}

static int close_device(void **state)
{
    kn_backend_vulkan.device->device_close(device);
    kn_backend_vulkan.close(instance);
    return 0;
}

/* --- the pool --------------------------------------------------------------------------------- */

enum { PIECES = 200 };

static void buffers_share_memory_and_do_not_overlap(void **state)
{
    kn_vk_buffer buffers[PIECES];
    memset(buffers, 0, sizeof(buffers));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < PIECES; i++) {
            if (buffers[i].handle == VK_NULL_HANDLE) {
                assert_int_equal(kn_vk_buffer_init(device, 1 + i * 331 % 9000,
                                                   VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, &buffers[i],
                                                   NULL),
                                 KILN_OK);
                assert_non_null(buffers[i].memory.mapped);
                memset(buffers[i].memory.mapped, (int)i, buffers[i].size);
            }
        }
        size_t blocks = 0;
        for (size_t i = 0; i < PIECES; i++) {
            const unsigned char *bytes = (const unsigned char *)buffers[i].memory.mapped;
            bool first = true;
            for (size_t at = 0; at < buffers[i].size; at++) {
                assert_int_equal(bytes[at], (unsigned char)i);
            }
            for (size_t j = 0; j < i; j++) {
                first = first && buffers[j].memory.handle != buffers[i].memory.handle;
            }
            blocks += first;
        }
        assert_true(blocks <= 4); /* 200 buffers, hardly an allocation */
        for (size_t i = (size_t)round; i < PIECES; i += 3) {
            kn_vk_buffer_deinit(device, &buffers[i]);
            memset(&buffers[i], 0, sizeof(buffers[i]));
        }
    }
    for (size_t i = 0; i < PIECES; i++) {
        if (buffers[i].handle != VK_NULL_HANDLE) {
            kn_vk_buffer_deinit(device, &buffers[i]);
        }
    }
}

static void a_large_buffer_is_one_of_its_own(void **state)
{
    kn_vk_buffer large;
    kn_vk_buffer small;
    assert_int_equal(kn_vk_buffer_init(device, (size_t)80 << 20,
                                       VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, &large, NULL),
                     KILN_OK);
    assert_int_equal(
        kn_vk_buffer_init(device, 100, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, &small, NULL), KILN_OK);
    assert_true(large.memory.handle != small.memory.handle);
    kn_vk_buffer_deinit(device, &large);
    kn_vk_buffer_deinit(device, &small);
}

/* --- what reaches the driver ------------------------------------------------------------------ */

static PFN_vkCreatePipelineCache real_create;
static size_t caches_with_data;

static VkResult VKAPI_PTR spy(VkDevice handle, const VkPipelineCacheCreateInfo *info,
                              const VkAllocationCallbacks *allocator, VkPipelineCache *cache)
{
    caches_with_data += info->initialDataSize > 0;
    return real_create(handle, info, allocator, cache);
}

static kiln_status load(const kiln_source *source, const void *blob, size_t size)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = glsl_load(&kn_backend_vulkan, device, source, blob, size, &diag);
    assert_true(status == KILN_OK || diag.why[0] != '\0');
    kiln_diag_clear(&diag);
    return status;
}

/* Truncated, bit-flipped and foreign pipeline data never reaches vkCreatePipelineCache. */
static void row_88_foreign_pipeline_data_stays_out(void **state)
{
    kn_artifact artifact;
    kiln_source source = KILN_SOURCE_INIT;
    size_t size = 0;
    char *module = kt_file_read(KILN_SPIRV_MODULE, &size);
    source.language = KILN_LANG_SPIRV;
    source.name = "module.spv";
    source.text = module;
    source.length = size;
    glsl_compile(&kn_backend_vulkan, instance, device, &source, &artifact);
    char *blob = (char *)malloc(artifact.base.size);
    assert_non_null(blob);
    memcpy(blob, artifact.base.data, artifact.base.size);

    real_create = device->fn.vkCreatePipelineCache;
    device->fn.vkCreatePipelineCache = spy;
    caches_with_data = 0;
    assert_int_equal(load(&source, blob, artifact.base.size), KILN_OK);
    assert_int_equal(caches_with_data, 1); /* the spy sees what a good one does */
    for (size_t cut = 0; cut < 32; cut++) {
        assert_int_equal(load(&source, blob, cut), KILN_E_REJECTED);
    }
    for (size_t bit = 0; bit < 32 * 8; bit++) {
        blob[bit / 8] = (char)(blob[bit / 8] ^ (1 << bit % 8));
        assert_int_equal(load(&source, blob, artifact.base.size), KILN_E_REJECTED);
        blob[bit / 8] = (char)(blob[bit / 8] ^ (1 << bit % 8));
    }
    assert_int_equal(caches_with_data, 1);
    device->fn.vkCreatePipelineCache = real_create;
    kn_artifact_deinit(&artifact);
    free(blob);
    free(module);
}

/* --- through the cache ------------------------------------------------------------------------ */

static void damaged_entries_are_made_again(void **state)
{
    glsl_damaged_entries_are_made_again("vulkan", "vulkan-");
}

/* A work-group size that was launched is in the entry that the next process finds. */
static void all_sizes_launched_are_kept(void **state)
{
    char *dir = kt_tmpdir_create();
    glsl_rig rig;
    glsl_open(&rig, "vulkan", dir);
    kiln_program *program = glsl_build(&rig, glsl_increment);
    glsl_run(&rig, program, 8);
    glsl_run(&rig, program, 32);
    kiln_program_release(program);
    glsl_close(&rig);
    glsl_open(&rig, "vulkan", dir);
    program = glsl_build(&rig, glsl_increment);
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    glsl_run(&rig, program, 8);
    glsl_run(&rig, program, 32);
    glsl_run(&rig, program, 0);
    kiln_program_release(program);
    glsl_close(&rig);
    kt_tmpdir_remove(dir);
}

static void two_views_are_one_buffer(void **state)
{
    glsl_two_views_are_one_buffer("vulkan");
}

/* Two dimensions that are one constant: a square group, or a refusal. */
static void dimensions_of_one_constant_have_one_size(void **state)
{
    static const char text[] =
        "#version 450\n"
        "#include <kiln.glsl>\n"
        "layout(local_size_x_id = 0, local_size_y_id = 0) in;\n"
        "KILN_BUFFER(0, uint, data)\n"
        "void main() { data[gl_GlobalInvocationID.y * 16 + "
        "gl_GlobalInvocationID.x] = gl_WorkGroupSize.x * gl_WorkGroupSize.y; }\n";
    kiln_diag diag = KILN_DIAG_INIT;
    glsl_bed b;
    glsl_bed_init(&b, "vulkan", text);
    kiln_launch launch = {.struct_size = sizeof(launch),
                          .dims = 2,
                          .global = {16, 16},
                          .local = {8, 4},
                          .args = &b.arg,
                          .arg_count = 1};
    assert_int_equal(kiln_queue_launch(b.queue, b.program, "main", &launch, NULL, &diag),
                     KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "one constant"));
    launch.local[1] = 8;
    assert_int_equal(glsl_bed_run(&b, &launch), 64);
    kiln_diag_clear(&diag);
    glsl_bed_deinit(&b);
}

/* A header without a guard that includes itself, twice: an error, and at once. */
static void a_header_that_includes_itself_is_told(void **state)
{
    static const char text[] = "#version 450\n"
                               "#extension GL_GOOGLE_include_directive : require\n"
                               "#include \"self.h\"\n"
                               "layout(local_size_x = 1) in;\n"
                               "void main() {}\n";
    static const char self[] = "#include \"self.h\"\n#include \"self.h\"\n";
    const kiln_header header = {.name = "self.h", .text = self, .length = sizeof(self) - 1};
    kiln_target target = {.has_device = false};
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    size_t count = 0;
    kiln_source source = glsl_source(text);
    source.headers = &header;
    source.header_count = 1;
    if (((kn_vk *)instance)->shaderc_path[0] == '\0') {
        skip();
    }
    assert_int_equal(kn_backend_vulkan.compiler->target_parse(instance, "spirv", &target, &diag),
                     KILN_OK);
    const kiln_compile_request request = {
        .stage = kn_backend_vulkan.compiler->stages(instance, &target, KILN_LANG_GLSL, &count),
        .target = &target,
        .source = &source};
    kn_artifact_init(&artifact);
    assert_int_equal(
        kn_backend_vulkan.compiler->compile(instance, &request, &artifact.base, NULL, &diag),
        KILN_E_COMPILE);
    assert_non_null(strstr(diag.log, "includes itself"));
    kn_artifact_deinit(&artifact);
    kiln_diag_clear(&diag);
}

/* A size of which the shader leaves one dimension open: what is chosen fits with the fixed ones.
 */
static void a_chosen_size_fits_beside_fixed_ones(void **state)
{
    static const char text[] = "#version 450\n"
                               "#include <kiln.glsl>\n"
                               "layout(local_size_x_id = 0, local_size_y = 64) in;\n"
                               "KILN_BUFFER(0, uint, data)\n"
                               "void main() { data[gl_GlobalInvocationID.x] = 7u; }\n";
    glsl_bed b;
    glsl_bed_init(&b, "vulkan", text);
    const kiln_launch launch = {.struct_size = sizeof(launch),
                                .dims = 2,
                                .global = {256, 64},
                                .args = &b.arg,
                                .arg_count = 1};
    assert_int_equal(glsl_bed_run(&b, &launch), 7);
    glsl_bed_deinit(&b);
}

/* Makes another "build" of the library at `path`, whose bytes are these. */
static void rebuild(const char *path, char *bytes, size_t size, const char *build_id)
{
    unsigned char id[64];
    const size_t id_size = strlen(build_id) / 2;
    assert_true(id_size <= sizeof(id));
    for (size_t i = 0; i < id_size; i++) {
        unsigned int byte = 0;
        assert_int_equal(sscanf(build_id + 2 * i, "%2x", &byte), 1); /* NOLINT(cert-err34-c) */
        id[i] = (unsigned char)byte;
    }
    char *place = (char *)memmem(bytes, size, id, id_size);
    assert_non_null(place);
    place[0] = (char)(place[0] ^ 1);
    assert_int_equal(remove(path), 0);
    kt_file_write(path, bytes, size);
}

/* The file that the keys name is found at the start and mapped at the first compile: what an
 * upgrade put there in between compiles nothing under the old name. */
static void K8_shaderc_replaced_before_the_first_compile(void **state)
{
    kn_vk *found = (kn_vk *)instance;
    kn_elf_facts facts;
    kn_artifact artifact;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_target target = {.has_device = false};
    void *fresh = NULL;
    size_t size = 0, count = 0;
    if (found->shaderc_path[0] == '\0' ||
        kn_elf_inspect(found->shaderc_path, &facts, NULL) != KILN_OK || facts.build_id[0] == '\0') {
        skip();
    }
    char *bytes = kt_file_read(found->shaderc_path, &size);
    char *dir = kt_tmpdir_create();
    char *path = kt_at(dir, "libkiln-shaderc.so");
    char *keep = kn_text_copy(getenv("KILN_LIBEXEC"));
    assert_non_null(bytes);
    kt_file_write(path, bytes, size);
    setenv("KILN_LIBEXEC", dir, 1);
    assert_int_equal(kn_backend_vulkan.open(&kn_host, &fresh, &report, &diag), KILN_OK);
    assert_string_equal(((kn_vk *)fresh)->shaderc_path, path);
    rebuild(path, bytes, size, facts.build_id);

    const kiln_source source = glsl_source(glsl_increment);
    assert_int_equal(kn_backend_vulkan.compiler->target_parse(fresh, "spirv", &target, &diag),
                     KILN_OK);
    const kiln_stage *stages =
        kn_backend_vulkan.compiler->stages(fresh, &target, KILN_LANG_GLSL, &count);
    const kiln_compile_request request = {.stage = stages, .target = &target, .source = &source};
    kn_artifact_init(&artifact);
    assert_int_equal(
        kn_backend_vulkan.compiler->compile(fresh, &request, &artifact.base, NULL, &diag),
        KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "replaced"));
    kn_artifact_deinit(&artifact);
    kiln_diag_clear(&diag);
    kn_backend_vulkan.close(fresh);
    if (keep != NULL) {
        setenv("KILN_LIBEXEC", keep, 1);
    } else {
        unsetenv("KILN_LIBEXEC");
    }
    kt_tmpdir_remove(dir);
    free(keep);
    free(bytes);
}

/* --- launches --------------------------------------------------------------------------------- */

static VkDeviceSize uniform_range;
static PFN_vkUpdateDescriptorSets real_update;

static void VKAPI_PTR spy_update(VkDevice handle, uint32_t count,
                                 const VkWriteDescriptorSet *writes, uint32_t copy_count,
                                 const VkCopyDescriptorSet *copies)
{
    for (uint32_t i = 0; i < count; i++) {
        if (writes[i].descriptorType == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER) {
            uniform_range = writes[i].pBufferInfo->range;
        }
    }
    real_update(handle, count, writes, copy_count, copies);
}

/* The corpus' module on the device of these tests, with arguments to change. */
typedef struct runner {
    kiln_source source;
    char *module;
    kn_artifact artifact;
    void *queue, *program, *plain, *block;
    float a;
    uint32_t n;
    kiln_sys_arg args[5];
    kiln_sys_launch launch;
} runner;

enum { PLAIN = 4096 };

static void open_runner(runner *r, size_t block_size)
{
    const kiln_device_ops *ops = kn_backend_vulkan.device;
    kiln_diag diag = KILN_DIAG_INIT;
    size_t size = 0;
    memset(r, 0, sizeof(*r));
    r->source = (kiln_source)KILN_SOURCE_INIT;
    r->module = kt_file_read(KILN_SPIRV_MODULE, &size);
    r->source.language = KILN_LANG_SPIRV;
    r->source.text = r->module;
    r->source.length = size;
    glsl_compile(&kn_backend_vulkan, instance, device, &r->source, &r->artifact);
    const kiln_artifact *list[] = {&r->artifact.base};
    const kiln_load_request request = {
        .source = &r->source, .artifacts = list, .artifact_count = 1};
    assert_int_equal(ops->program_load(device, &request, &r->program, &diag), KILN_OK);
    assert_int_equal(ops->queue_create(device, &r->queue, &diag), KILN_OK);
    assert_int_equal(ops->buffer_create(device, PLAIN, &r->plain, &diag), KILN_OK);
    assert_int_equal(ops->buffer_create(device, block_size, &r->block, &diag), KILN_OK);
    r->n = 1;
    r->args[0] = (kiln_sys_arg){.kind = KILN_ARG_BUFFER, .buffer = r->plain, .size = PLAIN};
    r->args[1] = (kiln_sys_arg){.kind = KILN_ARG_BUFFER, .buffer = r->block, .size = block_size};
    r->args[2] = r->args[0];
    r->args[3] = (kiln_sys_arg){.kind = KILN_ARG_VALUE, .value = &r->a, .size = sizeof(r->a)};
    r->args[4] = (kiln_sys_arg){.kind = KILN_ARG_VALUE, .value = &r->n, .size = sizeof(r->n)};
    r->launch = (kiln_sys_launch){.program = r->program,
                                  .entry = "main",
                                  .dims = 2,
                                  .global = {8, 2, 1},
                                  .args = r->args,
                                  .arg_count = 5};
}

static void close_runner(runner *r)
{
    const kiln_device_ops *ops = kn_backend_vulkan.device;
    ops->queue_destroy(device, r->queue);
    ops->program_unload(device, r->program);
    ops->buffer_destroy(device, r->plain);
    ops->buffer_destroy(device, r->block);
    kn_artifact_deinit(&r->artifact);
    free(r->module);
}

/* A uniform block has an alignment and a largest range of its own. */
static void a_uniform_block_keeps_to_its_limits(void **state)
{
    const kiln_device_ops *ops = kn_backend_vulkan.device;
    VkPhysicalDeviceLimits *limits =
        &((kn_vk *)instance)->physical[0].properties.limits; /* also of `device` */
    const VkDeviceSize keep = limits->minUniformBufferOffsetAlignment;
    kiln_diag diag = KILN_DIAG_INIT;
    runner r;
    open_runner(&r, 2 * (size_t)limits->maxUniformBufferRange);
    real_update = device->fn.vkUpdateDescriptorSets;
    device->fn.vkUpdateDescriptorSets = spy_update;
    assert_int_equal(ops->queue_launch(r.queue, &r.launch, NULL, &diag), KILN_OK);
    assert_int_equal(uniform_range, limits->maxUniformBufferRange);
    limits->minUniformBufferOffsetAlignment = 4 * limits->minStorageBufferOffsetAlignment;
    r.args[1].offset = (size_t)limits->minStorageBufferOffsetAlignment;
    assert_int_equal(ops->queue_launch(r.queue, &r.launch, NULL, &diag), KILN_E_INVALID);
    limits->minUniformBufferOffsetAlignment = keep;
    device->fn.vkUpdateDescriptorSets = real_update;
    kiln_diag_clear(&diag);
    close_runner(&r);
}

static PFN_vkWaitForFences real_wait;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static bool arrived, released;

static VkResult VKAPI_PTR spy_wait(VkDevice handle, uint32_t count, const VkFence *fences,
                                   VkBool32 all, uint64_t timeout)
{
    (void)pthread_mutex_lock(&gate);
    arrived = true;
    (void)pthread_cond_broadcast(&moved);
    while (!released) {
        (void)pthread_cond_wait(&moved, &gate);
    }
    (void)pthread_mutex_unlock(&gate);
    return real_wait(handle, count, fences, all, timeout);
}

static void *wait_for_event(void *event)
{
    return kn_backend_vulkan.device->event_wait(device, event, NULL) == KILN_OK ? event : NULL;
}

/* One thread waits for the device; others launch into the same queue and ask, without waiting. */
static void who_waits_holds_up_nobody(void **state)
{
    const kiln_device_ops *ops = kn_backend_vulkan.device;
    runner r;
    void *first = NULL, *second = NULL, *answer = NULL;
    pthread_t thread;
    open_runner(&r, PLAIN);
    real_wait = device->fn.vkWaitForFences;
    device->fn.vkWaitForFences = spy_wait;
    assert_int_equal(ops->queue_launch(r.queue, &r.launch, &first, NULL), KILN_OK);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_event, first), 0);
    (void)pthread_mutex_lock(&gate);
    while (!arrived) {
        (void)pthread_cond_wait(&moved, &gate);
    }
    (void)pthread_mutex_unlock(&gate);
    assert_int_equal(ops->queue_launch(r.queue, &r.launch, &second, NULL), KILN_OK);
    (void)ops->event_done(device, second);
    (void)pthread_mutex_lock(&gate);
    released = true;
    (void)pthread_cond_broadcast(&moved);
    (void)pthread_mutex_unlock(&gate);
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_ptr_equal(answer, first);
    assert_int_equal(ops->event_wait(device, second, NULL), KILN_OK);
    assert_int_equal(ops->queue_finish(r.queue, NULL), KILN_OK);
    device->fn.vkWaitForFences = real_wait;
    ops->event_destroy(device, first);
    ops->event_destroy(device, second);
    close_runner(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_share_memory_and_do_not_overlap),
        cmocka_unit_test(a_large_buffer_is_one_of_its_own),
        cmocka_unit_test(row_88_foreign_pipeline_data_stays_out),
        cmocka_unit_test(damaged_entries_are_made_again),
        cmocka_unit_test(all_sizes_launched_are_kept),
        cmocka_unit_test(two_views_are_one_buffer),
        cmocka_unit_test(dimensions_of_one_constant_have_one_size),
        cmocka_unit_test(a_header_that_includes_itself_is_told),
        cmocka_unit_test(K8_shaderc_replaced_before_the_first_compile),
        cmocka_unit_test(a_chosen_size_fits_beside_fixed_ones),
        cmocka_unit_test(a_uniform_block_keeps_to_its_limits),
        cmocka_unit_test(who_waits_holds_up_nobody),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}

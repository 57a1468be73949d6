/* dropin_vulkan: level 2 on every Vulkan device that is here. A pipeline from the cache answers
 * every query of Vulkan as the pipeline that was compiled did, and computes the same, for shaders,
 * compiler's options, specialisation constants, sizes of subgroups and flags: from memory, from
 * disk, from a pack. Exit 77 without a device. */
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/compile.h>
#include <kiln/unstable/counters.h>
#include <kiln/vulkan.h>

#include "conformance/dropin_rig.h"
#include "conformance/dropin_vulkan_device.h"
#include "conformance/options.h"
#include "support/skip.h"
#include "support/tmpdir.h"

#define WORDS 32
#define TEXT_MAX ((size_t)1 << 20)

/* --- everything that can be asked ------------------------------------------------------------- */

static void note_text(FILE *out, const char *of, const char *text)
{
    (void)fprintf(out, "%s: ", of);
    for (; *text != '\0'; text++) {
        (void)fputc(*text == '\n' ? '|' : *text, out);
    }
    (void)fputc('\n', out);
}

static void note_executable(FILE *out, VkPipeline pipeline, uint32_t index)
{
    static VkPipelineExecutableStatisticKHR statistics[128];
    static VkPipelineExecutableInternalRepresentationKHR shapes[32];
    const VkPipelineExecutableInfoKHR which = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                               .pipeline = pipeline,
                                               .executableIndex = index};
    uint32_t count = 128;
    for (uint32_t i = 0; i < count; i++) {
        statistics[i] = (VkPipelineExecutableStatisticKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
    }
    VkResult result = vk.statistics(here.device, &which, &count, statistics);
    (void)fprintf(out, "statistics of %u: %d, %u\n", index, result, count);
    for (uint32_t i = 0; i < count && result >= 0; i++) {
        unsigned long long bits = 0;
        memcpy(&bits, &statistics[i].value, sizeof(bits));
        bits = statistics[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR
                   ? statistics[i].value.b32
                   : bits;
        note_text(out, "statistic", statistics[i].description);
        (void)fprintf(out, "statistic %s: format %d, %llx\n", statistics[i].name,
                      (int)statistics[i].format, bits);
    }
    count = 32;
    for (uint32_t i = 0; i < count; i++) {
        shapes[i] = (VkPipelineExecutableInternalRepresentationKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR};
    }
    result = vk.representations(here.device, &which, &count, shapes);
    (void)fprintf(out, "representations of %u: %d, %u\n", index, result, count);
    for (uint32_t i = 0; i < count && result >= 0; i++) {
        shapes[i].dataSize = shapes[i].dataSize < TEXT_MAX ? shapes[i].dataSize : TEXT_MAX;
        shapes[i].pData = calloc(1, shapes[i].dataSize + 1);
        assert_non_null(shapes[i].pData);
    }
    result = count > 0 ? vk.representations(here.device, &which, &count, shapes) : VK_SUCCESS;
    for (uint32_t i = 0; i < count && result >= 0; i++) {
        note_text(out, "representation", shapes[i].name);
        note_text(out, "representation", shapes[i].description);
        dropin_note_bytes(out, "representation", shapes[i].pData, shapes[i].dataSize);
        free(shapes[i].pData);
    }
}

static void note_executables(FILE *out, VkPipeline pipeline)
{
    VkPipelineExecutablePropertiesKHR list[16];
    const VkPipelineInfoKHR which = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR,
                                     .pipeline = pipeline};
    uint32_t count = 16;
    for (uint32_t i = 0; i < count; i++) {
        list[i] = (VkPipelineExecutablePropertiesKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
    }
    const VkResult result = vk.properties(here.device, &which, &count, list);
    (void)fprintf(out, "executables: %d, %u\n", result, count);
    for (uint32_t i = 0; i < count && result >= 0; i++) {
        note_text(out, "executable", list[i].name);
        note_text(out, "executable", list[i].description);
        (void)fprintf(out, "executable %u: stages %x, subgroup %u\n", i, list[i].stages,
                      list[i].subgroupSize);
        note_executable(out, pipeline, i);
    }
}

static void note_results(FILE *out, VkPipeline pipeline)
{
    static const unsigned values[16] = {0x000002ca, 0x60ad78ec, 0x3f800800, 0x3f7ff000,
                                        0xbf800000, 0x7fc00000, 0x7f800000, 0x80000000,
                                        0x7149f2ca, 0x3f800000, 0x40400000, 0x3dcccccd};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &here.commands};
    memcpy(here.words[0], values, sizeof(values));
    memset(here.words[1], 0, BYTES);
    OK(vk.vkBeginCommandBuffer(here.commands, &begin));
    vk.vkCmdBindPipeline(here.commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vk.vkCmdBindDescriptorSets(here.commands, VK_PIPELINE_BIND_POINT_COMPUTE, here.layout, 0, 1,
                               &here.set, 0, NULL);
    vk.vkCmdDispatch(here.commands, 1, 1, 1);
    OK(vk.vkEndCommandBuffer(here.commands));
    OK(vk.vkQueueSubmit(here.queue, 1, &submit, VK_NULL_HANDLE));
    OK(vk.vkQueueWaitIdle(here.queue));
    for (size_t i = 0; i < WORDS; i++) {
        (void)fprintf(out, "word %zu: %08x\n", i, here.words[1][i]);
    }
}

/* --- requests --------------------------------------------------------------------------------- */

typedef struct constants {
    uint32_t group;
    VkBool32 flag;
    int32_t whole;
    uint32_t natural;
    float real;
    uint32_t length;
} constants;

typedef struct request {
    const void *code;
    size_t size;
    const constants *values; /* NULL: the size of a group alone */
    VkPipelineCreateFlags flags;
    VkPipelineShaderStageCreateFlags stage_flags;
    uint32_t subgroup; /* 0: not asked for */
    size_t count;      /* of pipelines in one call, of which each but the first has a group of 1 */
    const kiln_vulkan_code *named; /* NULL: kiln is given the code of the module */
} request;

static const VkSpecializationMapEntry rows[] = {
    {0, offsetof(constants, group), 4}, {1, offsetof(constants, flag), 4},
    {2, offsetof(constants, whole), 4}, {3, offsetof(constants, natural), 4},
    {4, offsetof(constants, real), 4},  {5, offsetof(constants, length), 4}};

static char *describe(void *user, kiln_cache *cache, bool first)
{
    const request *r = (const request *)user;
    const constants one = {.group = 1}, eight = {.group = 8};
    const constants *values = r->values != NULL ? r->values : &eight;
    const uint32_t used = r->values != NULL ? 6 : 1;
    const VkSpecializationInfo specials[2] = {{used, rows, sizeof(constants), values},
                                              {1, rows, sizeof(constants), &one}};
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = r->size,
                                           .pCode = (const uint32_t *)r->code};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = r->subgroup};
    VkComputePipelineCreateInfo infos[2];
    const kiln_vulkan_code own = {r->code, r->size};
    const kiln_vulkan_code *named = r->named != NULL ? r->named : &own, codes[2] = {*named, *named};
    const kiln_vulkan_device where = {.struct_size = sizeof(where),
                                      .instance = here.instance,
                                      .physical_device = here.physical,
                                      .device = here.device};
    VkPipeline pipelines[2] = {VK_NULL_HANDLE, VK_NULL_HANDLE};
    VkShaderModule module = VK_NULL_HANDLE;
    kiln_diag diag = KILN_DIAG_INIT;
    char *text = NULL;
    size_t size = 0;
    OK(vk.vkCreateShaderModule(here.device, &code, NULL, &module));
    for (size_t i = 0; i < 2; i++) {
        infos[i] = (VkComputePipelineCreateInfo){
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .flags = r->flags,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .pNext = r->subgroup > 0 ? &subgroup : NULL,
                      .flags = r->stage_flags,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = module,
                      .pName = "main",
                      .pSpecializationInfo = &specials[i]},
            .layout = here.layout};
    }
    const kiln_status status = kiln_vulkan_create_compute_pipelines(cache, &where, r->count, infos,
                                                                    codes, pipelines, &diag);
    if (status != KILN_OK) {
        print_error("%s: %s\n", diag.what, diag.why);
    }
    (void)first;
    assert_int_equal(status, KILN_OK);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < r->count; i++) {
        if (vk.properties != NULL) {
            note_executables(out, pipelines[i]);
        }
        note_results(out, pipelines[i]);
        vk.vkDestroyPipeline(here.device, pipelines[i], NULL);
    }
    vk.vkDestroyShaderModule(here.device, module, NULL);
    assert_int_equal(fclose(out), 0);
    return text;
}

static size_t compared;

/* Frees what is in *last (may be NULL), which must differ: a setting without effect tests nothing.
 */
static void check(const char *what, request *r, char **last)
{
    char name[32];
    char *compiled = NULL;
    (void)snprintf(name, sizeof(name), "%zu", compared++);
    r->count = r->count > 0 ? r->count : 1;
    const dropin_case one = {here.dir, name, what, describe, NULL, r};
    assert_true(dropin_compare(&one, &compiled));
    if (last != NULL) {
        if (*last != NULL && strcmp(*last, compiled) == 0) {
            print_error("%s changes nothing\n", what);
            fail();
        }
        free(*last);
        *last = compiled;
    } else {
        free(compiled);
    }
}

/* SPIR-V of a kernel; NULL where the compiler does not take the option. */
static kiln_blob *compile_glsl(kiln_runtime *runtime, const char *kernel, const char *option)
{
    char path[512];
    kiln_blob *blob = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)snprintf(path, sizeof(path), KILN_CONFORMANCE_DIR "/kernels/%s.comp", kernel);
    char *text = kt_file_read(path, NULL);
    assert_non_null(text);
    source.language = KILN_LANG_GLSL;
    source.name = path;
    source.text = text;
    source.length = strlen(text);
    source.options = &option;
    source.option_count = option[0] != '\0';
    if (kiln_compile(runtime, "vulkan:spirv", &source, &blob, NULL, &diag) != KILN_OK) {
        print_message("not taken: %s (%s)\n", option, diag.why);
        kiln_diag_clear(&diag);
    }
    free(text);
    return blob;
}

static kiln_runtime *runtime;

static void with_each_option(void **state)
{
    const char *const *options = conformance_options("vulkan");
    size_t taken = 0;
    (void)state;
    for (size_t i = 0; options[i] != NULL; i++) {
        kiln_blob *blob = compile_glsl(runtime, "sense", options[i]);
        if (blob != NULL) {
            request r = {.code = kiln_blob_data(blob), .size = kiln_blob_size(blob)};
            check(options[i], &r, NULL);
            taken++;
        }
        kiln_blob_release(blob);
    }
    assert_true(taken >= 4);
}

static void with_each_setting(void **state)
{
    static const constants values[] = {
        {8, VK_FALSE, -3, 4, 0.5F, 2},  {8, VK_TRUE, -3, 4, 0.5F, 2},
        {8, VK_FALSE, 12, 4, 0.5F, 2},  {8, VK_FALSE, -3, 5, 0.5F, 2},
        {8, VK_FALSE, -3, 4, 3.0F, 2},  {8, VK_FALSE, -3, 4, 0.5F, 3},
        {16, VK_FALSE, -3, 4, 0.5F, 2}, {1, VK_FALSE, -3, 4, 0.5F, 2}};
    static const VkPipelineCreateFlags flags[] = {
        VK_PIPELINE_CREATE_DISABLE_OPTIMIZATION_BIT, VK_PIPELINE_CREATE_ALLOW_DERIVATIVES_BIT,
        VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR,
        VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
            VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR};
    char *last = NULL;
    (void)state;
    kiln_blob *blob = compile_glsl(runtime, "special", "--target-env=vulkan1.1");
    assert_non_null(blob);
    const request plain = {
        .code = kiln_blob_data(blob), .size = kiln_blob_size(blob), .values = &values[0]};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        request r = plain;
        r.values = &values[i];
        check("constants", &r, &last);
    }
    free(last);
    last = NULL;
    for (size_t i = 0; i < (vk.properties != NULL ? 4 : 2); i++) {
        request r = plain;
        r.flags = flags[i];
        check("flags", &r, NULL);
    }
    for (uint32_t size = here.smallest; size > 0 && size <= here.largest; size *= 2) {
        request r = plain;
        r.subgroup = size;
        check("a subgroup of a size", &r, &last);
    }
    free(last);
    if (here.smallest > 0) {
        request r = plain;
        r.stage_flags = VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT;
        check("subgroups of any size", &r, NULL);
    }
    if (here.full_subgroups && here.smallest > 0) {
        constants wide = values[0];
        wide.group = here.largest;
        request r = plain;
        r.values = &wide;
        r.stage_flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
        check("full subgroups", &r, NULL);
    }
    request two = plain;
    two.count = 2;
    check("two pipelines", &two, NULL);
    kiln_blob_release(blob);
}

/* --- what no key names ----------------------------------------------------------------------- */

static kiln_cache *open_shared(const char *name)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    char *root = kt_path(here.dir, name);
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    free(root);
    return cache;
}

static void expect_same(request *r, kiln_cache *cache, const char *expected)
{
    char *got = describe(r, cache, false);
    assert_string_equal(got, expected);
    free(got);
}

/* What is stored goes into a VkPipelineCache, and the driver looks there for what it was asked for:
 * so a key need not name the flags of a stage, what its pNext has, or a layout. Here it does not
 * even name the code. */
static void what_no_key_names_the_driver_sees(void **state)
{
    kiln_blob *blobs[2] = {compile_glsl(runtime, "special", "-O"),
                           compile_glsl(runtime, "sense", "-O")};
    kiln_cache *own = open_shared("named"), *shared = NULL;
    char *expected[2];
    request r[2];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_non_null(blobs[i]);
        r[i] = (request){
            .code = kiln_blob_data(blobs[i]), .size = kiln_blob_size(blobs[i]), .count = 1};
        expected[i] = describe(&r[i], own, true);
    }
    assert_string_not_equal(expected[0], expected[1]);
    const kiln_vulkan_code first = {r[0].code, r[0].size};
    r[1].named = &first;
    for (size_t round = 0; round < 2; round++) { /* then from disk, the other one first */
        shared = open_shared("misnamed");
        for (size_t i = 0; i < 4; i++) {
            const size_t one = (round + i) % 2;
            expect_same(&r[one], shared, expected[one]);
        }
        assert_int_equal(kiln_cache_counter(shared, KILN_COUNTER_COMPILES), round == 0 ? 1 : 0);
        kiln_cache_destroy(shared);
    }
    kiln_cache_destroy(own);
    for (size_t i = 0; i < 2; i++) {
        free(expected[i]);
        kiln_blob_release(blobs[i]);
    }
}

/* --- every device ----------------------------------------------------------------------------- */

static void open_compiler(const char *dir)
{
    kiln_runtime_options options;
    kiln_cache_options cache_options;
    kiln_cache *cache = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    char *root = kt_path(dir, "spirv");
    assert_int_equal(kiln_cache_options_init(&cache_options, NULL), KILN_OK);
    cache_options.root = root;
    assert_int_equal(kiln_cache_create(&cache_options, &cache, NULL), KILN_OK);
    assert_int_equal(kiln_runtime_options_init(&options, NULL), KILN_OK);
    options.backend = "vulkan";
    options.compile_only = true;
    options.strict = true;
    options.cache = cache; /* both go with the process */
    if (kiln_runtime_create(&options, &runtime, &diag) != KILN_OK) {
        kn_test_skip("vulkan", diag.why);
    }
    free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_each_option),
                                       cmocka_unit_test(with_each_setting),
                                       cmocka_unit_test(what_no_key_names_the_driver_sees)};
    VkPhysicalDevice devices[8];
    uint32_t count = 8, tested = 0;
    int failed = 0;
    if (!dropin_vulkan_open() ||
        vk.vkEnumeratePhysicalDevices(here.instance, &count, devices) < VK_SUCCESS) {
        kn_test_skip("vulkan", "no loader of Vulkan, or no device");
    }
    char *dir = kt_tmpdir_create();
    open_compiler(dir);
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(here.dir, sizeof(here.dir), "%s", dir);
        if (dropin_vulkan_open_device(devices[i])) {
            failed += cmocka_run_group_tests(tests, NULL, NULL);
            tested++;
        }
    }
    kt_tmpdir_remove(dir);
    if (tested == 0) {
        kn_test_skip("vulkan", "no device that computes");
    }
    return failed;
}

/* What one has to know about NVIDIA's binaries. The driver gives PTX, a text that ends in a NUL,
 * and assembles it each time that it is loaded: 8 to 54 ms on an H200, where its own cache is
 * empty. In its place it takes the machine code that ptxas makes of it, with all that programs ask
 * of kernels, in 2 to 4 ms. ptxas comes with the CUDA toolkit and not with the driver, so it may be
 * missing; and a driver may refuse what it made. So the PTX is kept in any case, and the code in
 * addition to it.
 *
 * The code, as it is kept:  8  "kilncode"   8  length of the names   the kernels' names, each after
 * the other with ';' between them   the CUBIN, empty where ptxas refused the PTX. Next to PTX in
 * one piece:  the PTX   the code   8  length of the code   8  "kilnboth". */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/opencl.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/process.h"

#define CAPABILITY_MAJOR_NV 0x4000 /* cl_nv_device_attribute_query */
#define CODE_MAGIC "kilncode"
#define BOTH_MAGIC "kilnboth"
enum { MAGIC = 8, CODE_HEAD = 16, BOTH_TAIL = 16 };

#define CODE_LIMIT ((size_t)512 << 20)
#define TIME_LIMIT_NS (120ull * 1000000000ull)

static const char entry_word[] = ".entry ";

/* --- which programs --------------------------------------------------------------------------- */

static bool has_option(const char *options, const char *option)
{
    const size_t length = strlen(option);
    while (*options != '\0') {
        options += strspn(options, " \t");
        const size_t word = strcspn(options, " \t");
        if (word == length && strncmp(options, option, length) == 0) {
            return true;
        }
        options += word;
    }
    return false;
}

/* Options that mean something to the driver's own assembler, or may. */
static bool steers_assembler(const char *options)
{
    return strstr(options, "-cl-nv-") != NULL || strstr(options, "-cl-opt-disable") != NULL ||
           has_option(options, "-g");
}

/* PTX for exactly this capability: "sm_90", not "sm_90a" or another. */
static bool is_ptx_for(const char *text, uint32_t capability)
{
    static const char word[] = ".target sm_";
    const char *target = strstr(text, word);
    char *rest = NULL;
    if (strstr(text, ".version ") == NULL || target == NULL) {
        return false;
    }
    const unsigned long number = strtoul(target + sizeof(word) - 1, &rest, 10);
    return number == capability && !isalnum((unsigned char)*rest);
}

/* One text, and nothing but NULs after it: two, as a rule. */
static bool is_whole_text(const char *text, size_t size)
{
    const char *end = (const char *)memchr(text, '\0', size);
    for (const char *at = end; at != NULL && at < text + size; at++) {
        if (*at != '\0') {
            return false;
        }
    }
    return end != NULL;
}

bool kn_nvidia_can_assemble(uint32_t capability, const void *data, size_t size, const char *options)
{
    const char *text = (const char *)data;
    return capability > 0 && data != NULL && size > 0 && is_whole_text(text, size) &&
           is_ptx_for(text, capability) && strstr(text, entry_word) != NULL &&
           !steers_assembler(options);
}

/* --- making ----------------------------------------------------------------------------------- */

/* malloc'ed; NULL where there is none. */
static char *find_ptxas(void)
{
    static const char *const variables[] = {"CUDA_PATH", "CUDA_HOME"};
    kn_file_facts facts;
    for (size_t i = 0; i <= sizeof(variables) / sizeof(variables[0]); i++) {
        const bool last = i == sizeof(variables) / sizeof(variables[0]);
        char *found = last ? kn_paths_find_program("ptxas") : NULL;
        const char *root = last ? "/usr/local/cuda" : kn_env_get(variables[i]);
        if (found == NULL && root != NULL && kn_path_is_absolute(root)) {
            found = kn_path_join(root, "bin/ptxas");
        }
        if (found != NULL && kn_file_stat(found, true, &facts, NULL) == KILN_OK) {
            return found;
        }
        free(found);
    }
    return NULL;
}

static void append_number(kn_strbuf *out, uint64_t number)
{
    unsigned char bytes[8];
    kn_put_u64(bytes, number);
    kn_strbuf_append(out, bytes, sizeof(bytes));
}

static void list_entries(const char *text, kn_strbuf *names)
{
    for (const char *at = strstr(text, entry_word); at != NULL; at = strstr(at, entry_word)) {
        at += sizeof(entry_word) - 1;
        kn_strbuf_append_text(names, names->length > 0 ? ";" : "");
        kn_strbuf_append(names, at, strcspn(at, "( \t\r\n"));
    }
}

static bool append_names(kn_strbuf *out, const char *text)
{
    kn_strbuf names;
    kn_strbuf_init(&names, 0);
    list_entries(text, &names);
    append_number(out, names.length);
    kn_strbuf_append(out, kn_strbuf_text(&names), names.length);
    const bool whole = kn_strbuf_ok(&names);
    kn_strbuf_deinit(&names);
    return whole;
}

static bool is_machine_code(const kn_process_result *result)
{
    return result->exit_code == 0 && result->out != NULL && result->out_size > 4 &&
           memcmp(result->out, "\177ELF", 4) == 0;
}

kiln_status kn_nvidia_assemble(uint32_t capability, const char *ptx, kn_strbuf *out,
                               kiln_diag *diag)
{
    static const char what[] = "assembling an OpenCL program";
    static const char *const environment[] = {"KILN_DISABLE=1", NULL}; /* a ptxas of kiln exec */
    char arch[24];
    kn_process_result result;
    memset(&result, 0, sizeof(result));
    char *program = find_ptxas();
    if (program == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install the CUDA toolkit", what,
                             "ptxas was not found");
    }
    kn_text_putf(arch, sizeof(arch), "-arch=sm_%u", (unsigned)capability);
    const char *argv[] = {program, arch, "/dev/stdin", "-o", "/dev/stdout", NULL};
    const kn_process_request request = {.argv = argv,
                                        .environment = environment,
                                        .input = ptx,
                                        .input_size = strlen(ptx), /* ptxas refuses a NUL */
                                        .output_limit = CODE_LIMIT,
                                        .limit_ns = TIME_LIMIT_NS};
    kiln_status status = kn_process_run(&request, &result, diag);
    if (status == KILN_OK && result.exit_code < 0) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, program, "ptxas was killed%s",
                               result.timed_out ? " after 120 s" : "");
    }
    if (status == KILN_OK) {
        const bool made = is_machine_code(&result);
        kn_log(KILN_LOG_DEBUG, "ptxas %s the PTX of an OpenCL program: %.200s",
               made ? "assembled" : "refused", result.err != NULL ? result.err : "");
        kn_strbuf_append(out, CODE_MAGIC, MAGIC);
        const bool named = append_names(out, ptx);
        kn_strbuf_append(out, result.out, made ? result.out_size : 0);
        status = named && kn_strbuf_ok(out) ? KILN_OK : kn_no_memory(diag, what);
    }
    kn_process_result_deinit(&result);
    free(program);
    return status;
}

/* --- names of kernels ------------------------------------------------------------------------- */

bool kn_nvidia_lists_kernels(const kn_opencl_site *site, size_t names)
{
    const size_t safe = 256;
    cl_uint major = 0;
    return names < safe || site->api->clGetDeviceInfo(site->device, CAPABILITY_MAJOR_NV,
                                                      sizeof(major), &major, NULL) != CL_SUCCESS;
}

void kn_nvidia_names(const kn_opencl_site *site, cl_program program, kn_strbuf *names)
{
    void *binary = NULL;
    size_t size = 0;
    if (kn_nvidia_lists_kernels(site, SIZE_MAX) ||
        kn_opencl_read_binary(site, program, &binary, &size, NULL) != KILN_OK) {
        return;
    }
    char *text = calloc(1, size + 1); /* its NUL is not to be relied on */
    if (text != NULL) {
        memcpy(text, binary, size);
        list_entries(text, names);
    }
    free(text);
    free(binary);
}

/* --- loading ---------------------------------------------------------------------------------- */

/* By making each: see kn_nvidia_lists_kernels. */
static bool has_kernels(const kn_opencl_site *site, cl_program program, const char *names,
                        size_t length)
{
    cl_kernel *made = NULL;
    size_t count = 0;
    const bool there = length > 0 && kn_opencl_handles_named(site, program, names, length, &made,
                                                             &count, NULL) == KILN_OK;
    kn_opencl_handles_release(site->api, made, count);
    return there;
}

bool kn_nvidia_load(const kn_opencl_site *site, const void *code, size_t size, const char *options,
                    cl_program *out_program)
{
    const char *bytes = (const char *)code;
    if (size < CODE_HEAD || memcmp(bytes, CODE_MAGIC, MAGIC) != 0) {
        return false;
    }
    const uint64_t names = kn_get_u64((const unsigned char *)bytes + MAGIC);
    if (names >= size - CODE_HEAD) {
        return false; /* there is no code, or no more than a part of it */
    }
    const size_t head = CODE_HEAD + (size_t)names;
    cl_program program = NULL;
    if (kn_opencl_build_binary(site, false, bytes + head, size - head, options, &program, NULL) !=
        KILN_OK) {
        kn_log(KILN_LOG_INFO, "OpenCL: the driver refused machine code; it gets the PTX");
        return false;
    }
    if (!has_kernels(site, program, bytes + CODE_HEAD, (size_t)names)) {
        kn_log(KILN_LOG_INFO, "OpenCL: machine code lacks kernels of its PTX; the driver gets the "
                              "PTX");
        (void)site->api->clReleaseProgram(program);
        return false;
    }
    *out_program = program;
    return true;
}

/* --- both in one piece ------------------------------------------------------------------------ */

void kn_nvidia_join(const void *ptx, size_t size, const kn_strbuf *code, kn_strbuf *out)
{
    kn_strbuf_append(out, ptx, size);
    kn_strbuf_append(out, code->data, code->length);
    append_number(out, code->length);
    kn_strbuf_append(out, BOTH_MAGIC, MAGIC);
}

const void *kn_nvidia_split(const void *data, size_t *size, size_t *out_code_size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    if (*size < BOTH_TAIL || memcmp(bytes + *size - MAGIC, BOTH_MAGIC, MAGIC) != 0) {
        return NULL;
    }
    const uint64_t code = kn_get_u64(bytes + *size - BOTH_TAIL);
    if (code >= *size - BOTH_TAIL) {
        return NULL;
    }
    *size -= (size_t)code + BOTH_TAIL;
    *out_code_size = (size_t)code;
    return bytes + *size;
}

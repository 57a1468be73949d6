/* A fake OpenCL library. It "compiles" by putting a word in front of the text, and has one kernel,
 * "k", without arguments. FAKE_POCL calls itself PoCL, gives binaries with a header as PoCL's, and
 * has one kernel for each "__kernel" in the text: "k", "k1", "k2". What goes wrong with it is
 * chosen when it is compiled:
 *
 *   FAKE_NO_PLATFORM     a loader without drivers
 *   FAKE_BAD_PLATFORM    two platforms; the first has no devices to give
 *   FAKE_CRASHES         dies in clGetPlatformIDs
 *   FAKE_HANGS           never returns from clGetPlatformIDs
 *   FAKE_OLD_DRIVER      offers OpenCL 1.1
 *   FAKE_ONLY_1_0        lacks all later symbols
 *   FAKE_WITHOUT_BINARY  lacks one symbol of 1.0
 *   FAKE_SALT=n          another build, same versions
 *   FAKE_REFUSES         every binary is invalid
 *   FAKE_REFUSES_BUILD   every binary is refused later, in clBuildProgram
 *   FAKE_EMPTY           gives empty binaries
 *   FAKE_LAZY            binaries are empty until a kernel is made (as Mali's)
 *   FAKE_CHOOSY          takes no -D with a binary
 *   FAKE_NVIDIA          calls itself NVIDIA's, has kernels as FAKE_POCL, gives PTX and takes code
 *
 * FAKE_NVIDIA takes machine code ("\177ELF") unless $FAKECL_REFUSES_CODE is set; of code with
 * "lost" in it it finds one kernel less.
 *
 * Source text with "broken" in it does not compile, with "silent" without a log, with "stumble" so
 * the first time only; with "loose" it does not link; with "unreadable" in it, it gives an error
 * for its binary. $FAKECL_LOG names a file that gets one letter a call: S from source, B from a
 * binary, M from machine code, I from SPIR-V, G for a binary read, C for a unit compiled, L for a
 * link. FAKE_TWO has two devices. With $FAKECL_DIES_ON_BINARY it dies where it is given a binary,
 * and where it builds a program with the text $FAKECL_DIES_ON in it. $FAKE_LIE: support/lies.h. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/fakecl/fakecl.h"
#include "support/lies.h"

#define EXPORT CL_API_ENTRY __attribute__((visibility("default")))

#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif
__attribute__((visibility("default"), used)) const int fakecl_salt = FAKE_SALT;

struct _cl_platform_id {
    const char *name;
    cl_int devices_code;
};
struct _cl_device_id {
    const char *name;
};

#ifdef FAKE_POCL
#define PLATFORM_NAME "Portable Computing Language"
static const char magic[77] = {'p', 'o', 'c', 'l', 'b', 'i', 'n', 0, [16] = 99};
#elif defined(FAKE_NVIDIA)
#define PLATFORM_NAME "NVIDIA CUDA"
static const char magic[] = "//\n.version 9.0\n.target sm_90, texmode_independent\n//";
#else
#define PLATFORM_NAME "Fake Platform"
static const char magic[] = "FAKE";
#endif
#ifdef FAKE_NVIDIA
#define MAGIC_SIZE (sizeof(magic) - 1) /* PTX is one text */
#else
#define MAGIC_SIZE sizeof(magic)
#endif

static struct _cl_platform_id platforms[] = {
#ifdef FAKE_BAD_PLATFORM
    {"Broken Platform", CL_OUT_OF_HOST_MEMORY},
#endif
    {PLATFORM_NAME, CL_SUCCESS},
};
#define PLATFORMS ((cl_uint)(sizeof(platforms) / sizeof(platforms[0])))

#ifdef FAKE_TWO
#define DEVICES 2
#else
#define DEVICES 1
#endif
static struct _cl_device_id devices_here[DEVICES] = {{"Fake Device (R) 3000"}};
static int context_mark;
static char kernel_marks[FAKECL_KERNELS];

static void count(const char *letter)
{
    const char *path = getenv("FAKECL_LOG");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        (void)fputs(letter, file);
        (void)fclose(file);
    }
}

static const char *asked_call = "";
static unsigned asked_question;

static void is_asked(const char *call, unsigned question)
{
    asked_call = call;
    asked_question = question;
}

/* What is answered is never more than `size`; a handle that is none would end a driver. */
static cl_int give(const void *data, size_t length, size_t size, void *value, size_t *out_size)
{
    uint64_t number = 0;
    if (lie_is_told_of(asked_call, asked_question, "error", &number)) {
        return (cl_int)(int64_t)number;
    }
    if (lie_is_told_of(asked_call, asked_question, "value", &number)) {
        lie_fill(value, size, number);
        if (out_size != NULL) {
            *out_size = length;
        }
        return CL_SUCCESS;
    }
    if (lie_is_told_of(asked_call, asked_question, "length", &number)) {
        if (out_size != NULL) {
            *out_size = (size_t)number;
        }
        if (value != NULL) {
            memcpy(value, data, size < length ? size : length);
        }
        return CL_SUCCESS;
    }
    if (out_size != NULL) {
        *out_size = length;
    }
    if (value != NULL) {
        if (size < length) {
            return CL_INVALID_VALUE;
        }
        memcpy(value, data, length);
    }
    return CL_SUCCESS;
}

/* How many there are said to be. */
static cl_int count_is_lied(const char *call, cl_uint *count_said)
{
    uint64_t number = 0;
    if (lie_is_told(call, "error", &number)) {
        return (cl_int)(int64_t)number;
    }
    if (count_said != NULL && lie_is_told(call, "value", &number)) {
        *count_said = (cl_uint)number;
    }
    return CL_SUCCESS;
}

/* A driver ends its process with a handle that is none. */
static void must_be(const void *handle)
{
    if (handle == NULL) {
        (void)fputs("a NULL handle\n", stderr);
        abort();
    }
}

static cl_int give_text(const char *text, size_t size, void *value, size_t *out_size)
{
    return give(text, strlen(text) + 1, size, value, out_size);
}

static cl_int give_u32(cl_uint number, size_t size, void *value, size_t *out_size)
{
    return give(&number, sizeof(number), size, value, out_size);
}

static cl_int give_u64(cl_ulong number, size_t size, void *value, size_t *out_size)
{
    return give(&number, sizeof(number), size, value, out_size);
}

EXPORT cl_int CL_API_CALL clGetPlatformIDs(cl_uint entries, cl_platform_id *out, cl_uint *out_count)
{
#if defined(FAKE_CRASHES)
    abort();
#elif defined(FAKE_HANGS)
    for (;;) {
        (void)pause();
    }
#elif defined(FAKE_NO_PLATFORM)
    (void)entries, (void)out, (void)out_count;
    return -1001;
#endif
    for (cl_uint i = 0; i < entries && i < PLATFORMS; i++) {
        out[i] = &platforms[i];
    }
    if (out_count != NULL) {
        *out_count = PLATFORMS;
    }
    return count_is_lied("clGetPlatformIDs", out_count);
}

#ifdef FAKE_OLD_DRIVER
#define VERSION "OpenCL 1.1 Fake"
#else
#define VERSION "OpenCL 2.1 Fake"
#endif

EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info name,
                                            size_t size, void *value, size_t *out_size)
{
    must_be(platform);
    is_asked("clGetPlatformInfo", name);
    switch (name) {
    case CL_PLATFORM_NAME:
        return give_text(platform->name, size, value, out_size);
    case CL_PLATFORM_VERSION:
        return give_text(VERSION, size, value, out_size);
    default:
        return give_text("", size, value, out_size);
    }
}

EXPORT cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type type,
                                         cl_uint entries, cl_device_id *out, cl_uint *out_count)
{
    must_be(platform);
    (void)type;
    if (platform->devices_code != CL_SUCCESS) {
        return platform->devices_code;
    }
    for (cl_uint i = 0; i < entries && i < DEVICES; i++) {
        devices_here[i].name = devices_here[0].name;
        out[i] = &devices_here[i];
    }
    if (out_count != NULL) {
        *out_count = DEVICES;
    }
    return count_is_lied("clGetDeviceIDs", out_count);
}

EXPORT cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size,
                                          void *value, size_t *out_size)
{
    must_be(device);
    is_asked("clGetDeviceInfo", name);
    const size_t dims[3] = {64, 64, 64};
    const size_t group = 64;
    cl_platform_id platform = &platforms[PLATFORMS - 1];
    switch (name) {
    case CL_DEVICE_PLATFORM:
        return give(&platform, sizeof(cl_platform_id), size, value, out_size);
    case CL_DEVICE_NAME:
        return give_text(device->name, size, value, out_size);
    case CL_DEVICE_VENDOR:
        return give_text("Fake Vendor", size, value, out_size);
    case CL_DRIVER_VERSION:
        return give_text("1.0", size, value, out_size);
    case CL_DEVICE_VERSION:
        return give_text(VERSION, size, value, out_size);
    case CL_DEVICE_EXTENSIONS:
        return give_text("cl_khr_fp64 cl_khr_fp16_not_quite", size, value, out_size);
    case CL_DEVICE_IL_VERSION:
        return give_text("SPIR-V_1.2", size, value, out_size);
    case CL_DEVICE_TYPE:
        return give_u64(CL_DEVICE_TYPE_GPU, size, value, out_size);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return give_u32(CL_TRUE, size, value, out_size);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return give_u32(7, size, value, out_size);
    case CL_DEVICE_ADDRESS_BITS:
        return give_u32(64, size, value, out_size);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        return give_u32(1024, size, value, out_size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return give_u64(1 << 20, size, value, out_size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return give(&group, sizeof(group), size, value, out_size);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return give(dims, sizeof(dims), size, value, out_size);
#ifdef FAKE_NVIDIA
    case 0x4000: /* CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, and _MINOR_NV */
        return give_u32(9, size, value, out_size);
    case 0x4001:
        return give_u32(0, size, value, out_size);
#endif
    default:
        return CL_INVALID_VALUE;
    }
}

EXPORT cl_context CL_API_CALL clCreateContext(
    const cl_context_properties *properties, cl_uint device_count, const cl_device_id *devices,
    void(CL_CALLBACK *notify)(const char *text, const void *data, size_t size, void *user),
    void *user, cl_int *code)
{
    (void)properties, (void)device_count, (void)devices, (void)notify, (void)user;
    *code = CL_SUCCESS;
    return (cl_context)(void *)&context_mark;
}

EXPORT cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                         cl_command_queue_properties properties,
                                                         cl_int *code)
{
    (void)context, (void)device, (void)properties;
    *code = CL_SUCCESS;
    return (cl_command_queue)(void *)&context_mark;
}

/* --- programs --------------------------------------------------------------------------------- */

static cl_program program_of(const void *text, size_t length, int from_binary, cl_int *code)
{
    cl_program program = calloc(1, sizeof(*program));
    char *copy = calloc(1, length + 1);
    if (program == NULL || copy == NULL) {
        free(program);
        free(copy);
        *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    memcpy(copy, text, length);
    program->text = copy;
    program->length = length;
    program->from_binary = from_binary;
    atomic_init(&program->references, 1);
    *code = CL_SUCCESS;
    return program;
}

EXPORT cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint strings,
                                                        const char **text, const size_t *lengths,
                                                        cl_int *code)
{
    (void)context, (void)strings;
    count("S");
    return program_of(text[0], lengths[0], 0, code);
}

#ifndef FAKE_ONLY_1_0
EXPORT cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void *bytes,
                                                    size_t length, cl_int *code)
{
    (void)context;
    count("I");
    return program_of(bytes, length, 0, code);
}
#endif

#ifndef FAKE_WITHOUT_BINARY
EXPORT cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context, cl_uint devices,
                                                        const cl_device_id *device,
                                                        const size_t *lengths,
                                                        const unsigned char **binaries,
                                                        cl_int *statuses, cl_int *code)
{
    (void)context, (void)device;
#ifdef FAKE_NVIDIA
    if (lengths[0] > 4 && memcmp(binaries[0], "\177ELF", 4) == 0) {
        count("M");
        statuses[0] = getenv("FAKECL_REFUSES_CODE") == NULL ? CL_SUCCESS : CL_INVALID_BINARY;
        *code = statuses[0];
        cl_program made =
            *code == CL_SUCCESS ? program_of(binaries[0] + 4, lengths[0] - 4, 1, code) : NULL;
        if (made != NULL) {
            made->is_code = 1;
        }
        return made;
    }
#endif
    count("B");
    fakecl_may_die("FAKECL_DIES_ON_BINARY", NULL);
    int good = 1;
    for (cl_uint i = 0; i < devices; i++) {
#ifdef FAKE_REFUSES
        good = 0;
#endif
        good = good && lengths[i] >= MAGIC_SIZE && memcmp(binaries[i], magic, MAGIC_SIZE) == 0;
        statuses[i] = good ? CL_SUCCESS : CL_INVALID_BINARY;
    }
    *code = good ? CL_SUCCESS : CL_INVALID_BINARY;
    return good ? program_of(binaries[0] + MAGIC_SIZE, lengths[0] - MAGIC_SIZE, 1, code) : NULL;
}
#endif

EXPORT cl_int CL_API_CALL clRetainProgram(cl_program program)
{
    (void)atomic_fetch_add(&program->references, 1);
    return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clReleaseProgram(cl_program program)
{
    if (atomic_fetch_sub(&program->references, 1) > 1) {
        return CL_SUCCESS;
    }
    free(program->text);
    free(program);
    return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint devices,
                                         const cl_device_id *device, const char *options,
                                         void(CL_CALLBACK *notify)(cl_program program, void *user),
                                         void *user)
{
    (void)devices, (void)device, (void)options, (void)notify, (void)user;
    fakecl_may_die("FAKECL_DIES_ON", program->text);
#ifdef FAKE_REFUSES_BUILD
    if (program->from_binary) {
        return CL_BUILD_PROGRAM_FAILURE;
    }
#endif
#ifdef FAKE_NVIDIA
    if (!program->from_binary && strstr(program->text, ".entry ") == NULL) {
        return fakecl_make_ptx(program);
    }
#endif
#ifdef FAKE_CHOOSY
    if (program->from_binary && strstr(options, "-D") != NULL) {
        return CL_INVALID_BUILD_OPTIONS;
    }
#endif
    if (strstr(program->text, "slowly built") != NULL && !program->from_binary) {
        const clock_t begin = clock(); /* work, not a pause */
        while (clock() - begin < CLOCKS_PER_SEC / 10 * 8) {
        }
    }
    if (strstr(program->text, "stumble") != NULL || strstr(program->text, "silent") != NULL) {
        static int builds; /* "stumble" only at the first, "silent" at each */
        return builds++ == 0 || strstr(program->text, "silent") != NULL ? CL_BUILD_PROGRAM_FAILURE
                                                                        : CL_SUCCESS;
    }
    return strstr(program->text, "broken") != NULL ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL
clCompileProgram(cl_program program, cl_uint devices, const cl_device_id *device,
                 const char *options, cl_uint headers, const cl_program *header, const char **names,
                 void(CL_CALLBACK *notify)(cl_program program, void *user), void *user)
{
    (void)devices, (void)device, (void)options, (void)notify, (void)user;
    count("C");
    for (cl_uint i = 0; i < headers; i++) {
        if (strstr(program->text, names[i]) == NULL || header[i]->length == 0) {
            return CL_COMPILE_PROGRAM_FAILURE;
        }
    }
    return strstr(program->text, "broken") != NULL ? CL_COMPILE_PROGRAM_FAILURE : CL_SUCCESS;
}

EXPORT cl_program CL_API_CALL
clLinkProgram(cl_context context, cl_uint devices, const cl_device_id *device, const char *options,
              cl_uint programs, const cl_program *program,
              void(CL_CALLBACK *notify)(cl_program program, void *user), void *user, cl_int *code)
{
    char whole[4096] = "";
    size_t length = 0;
    (void)context, (void)devices, (void)device, (void)options, (void)notify, (void)user;
    count("L");
    for (cl_uint i = 0; i < programs && length < sizeof(whole); i++) {
        length += (size_t)snprintf(whole + length, sizeof(whole) - length, "%s", program[i]->text);
    }
    cl_program linked = program_of(whole, strlen(whole), 0, code);
    *code = strstr(whole, "loose") != NULL ? CL_LINK_PROGRAM_FAILURE : *code;
    return linked;
}

EXPORT cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                                cl_program_build_info name, size_t size,
                                                void *value, size_t *out_size)
{
    (void)device;
    is_asked("clGetProgramBuildInfo", name);
    const char *log = strstr(program->text, "loose") != NULL ? "an end is loose\n" : "";
    return give_text(strstr(program->text, "broken") != NULL ? "1:1: it is broken\n" : log, size,
                     value, out_size);
}

static size_t binary_size(cl_program program)
{
#if defined(FAKE_EMPTY)
    (void)program;
    return 0;
#elif defined(FAKE_LAZY)
    return program->kernels_made ? program->length + MAGIC_SIZE : 0;
#else
    return program->length + MAGIC_SIZE;
#endif
}

EXPORT cl_int CL_API_CALL clGetProgramInfo(cl_program program, cl_program_info name, size_t size,
                                           void *value, size_t *out_size)
{
    is_asked("clGetProgramInfo", name);
    size_t bytes = binary_size(program);
    size_t sizes[DEVICES];
    cl_device_id all[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        sizes[i] = bytes;
        all[i] = &devices_here[i];
    }
    uint64_t number = 0;
#ifdef FAKE_NVIDIA
    char names[FAKECL_NAMES];
#endif
    switch (name) {
    case CL_PROGRAM_REFERENCE_COUNT:
        return give_u32(atomic_load(&program->references), size, value, out_size);
    case CL_PROGRAM_NUM_KERNELS:
        bytes = fakecl_make_list(program);
        return give(&bytes, sizeof(bytes), size, value, out_size);
#ifdef FAKE_NVIDIA
    case CL_PROGRAM_KERNEL_NAMES:
        fakecl_list_kernels(program, names);
        return give_text(names, size, value, out_size);
#endif
    case CL_PROGRAM_NUM_DEVICES:
        return give_u32(DEVICES, size, value, out_size);
    case CL_PROGRAM_DEVICES:
        return give(all, sizeof(all), size, value, out_size);
    case CL_PROGRAM_BINARY_SIZES:
        return give(sizes, sizeof(sizes), size, value, out_size);
    case CL_PROGRAM_BINARIES:
        count("G");
        if (strstr(program->text, "unreadable") != NULL) {
            return CL_OUT_OF_RESOURCES;
        }
        if (strstr(program->text, "slowly read") != NULL) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        }
        if (lie_is_told_of("clGetProgramInfo", CL_PROGRAM_BINARIES, "error", &number)) {
            return (cl_int)(int64_t)number;
        }
        if (lie_is_told_of("clGetProgramInfo", CL_PROGRAM_BINARY_SIZES, "value", &number) &&
            number < bytes) {
            return CL_SUCCESS; /* it would write more than there is room for */
        }
        for (int i = 0; i < DEVICES; i++) {
            unsigned char *at = ((unsigned char **)value)[i];
            if (at != NULL && bytes > 0) {
                memcpy(at, magic, MAGIC_SIZE);
                memcpy(at + MAGIC_SIZE, program->text, program->length);
            }
        }
        return CL_SUCCESS;
    default:
        return CL_INVALID_VALUE;
    }
}

/* --- kernels ---------------------------------------------------------------------------------- */

EXPORT cl_int CL_API_CALL clCreateKernelsInProgram(cl_program program, cl_uint entries,
                                                   cl_kernel *kernels, cl_uint *out_count)
{
    const cl_uint found = fakecl_make_list(program);
    program->kernels_made = 1;
    for (cl_uint i = 0; i < entries && i < found; i++) {
        kernels[i] = (cl_kernel)(void *)&kernel_marks[i];
    }
    if (out_count != NULL) {
        *out_count = found;
    }
    return CL_SUCCESS;
}

EXPORT cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    const unsigned long index = name[1] != '\0' ? strtoul(name + 1, NULL, 10) : 0;
    const int found = name[0] == 'k' && index < fakecl_count_kernels(program);
    program->kernels_made = 1;
    if (code != NULL) {
        *code = found ? CL_SUCCESS : CL_INVALID_KERNEL_NAME;
    }
    return found ? (cl_kernel)(void *)&kernel_marks[index] : NULL;
}

EXPORT cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel, cl_kernel_info name, size_t size,
                                          void *value, size_t *out_size)
{
    char text[16];
    const int index = (int)((char *)(void *)kernel - kernel_marks);
    (void)snprintf(text, sizeof(text), index > 0 ? "k%d" : "k", index);
    return name == CL_KERNEL_FUNCTION_NAME ? give_text(text, size, value, out_size)
                                           : give_u32(0, size, value, out_size);
}

EXPORT cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                   cl_kernel_work_group_info name, size_t size,
                                                   void *value, size_t *out_size)
{
    must_be(kernel);
    is_asked("clGetKernelWorkGroupInfo", name);
    const size_t group = 64;
    (void)kernel, (void)device;
    return name == CL_KERNEL_WORK_GROUP_SIZE ? give(&group, sizeof(group), size, value, out_size)
                                             : CL_INVALID_VALUE;
}

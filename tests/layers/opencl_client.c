/* A program that knows nothing of kiln: calls everything that the OpenCL layer stands in for, and
 * prints what it gets. Its output without the layer, with it, and with what the cache has by then
 * must be the same. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 16, THREADS = 4, ROUNDS = 2 };

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static const char plain[] =
    "#include \"offset.h\"\n"
    "#ifdef WARN\n#warning listen\n#endif\n"
    "__kernel void add(__global const int *a, __global int *out) {\n"
    "  size_t i = get_global_id(0); out[i] = a[i] + OFFSET; }\n"
    "__kernel __attribute__((reqd_work_group_size(4, 1, 1)))\n"
    "void scale(__global int *out, const int by) { out[get_global_id(0)] *= by; }\n";
static const char unit_a[] = "#include \"shared.h\"\n"
                             "int twice(int x) { return SHARED * x; }\n";
static const char unit_b[] = "int twice(int x);\n"
                             "__kernel void add(__global const int *a, __global int *out) {\n"
                             "  size_t i = get_global_id(0); out[i] = twice(a[i]); }\n";
static const char shared[] = "#define SHARED 2\n";

static void print_bytes(const char *name, cl_int code, const void *value, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)value;
    printf("%s: %d, %zu:", name, code, size);
    for (size_t i = 0; code == CL_SUCCESS && i < size; i++) {
        printf(bytes[i] >= ' ' && bytes[i] < 127 ? "%c" : "<%02x>", bytes[i]);
    }
    printf("\n");
}

#define ASK(name, function, ...)                                                                   \
    do {                                                                                           \
        unsigned char value_[65536];                                                               \
        size_t size_ = 0;                                                                          \
        cl_int code_ = function(__VA_ARGS__, sizeof(value_), value_, &size_);                      \
        print_bytes(name, code_, value_, size_);                                                   \
        code_ = function(__VA_ARGS__, 1, value_, NULL);                                            \
        printf("%s, 1 byte: %d; ", name, code_);                                                   \
        size_ = 77;                                                                                \
        code_ = function(__VA_ARGS__, 0, NULL, &size_);                                            \
        printf("size: %d %zu\n", code_, size_);                                                    \
    } while (0)

static void print_program(const char *title, cl_program program)
{
    cl_context of = NULL;
    cl_device_id first = NULL;
    cl_uint references = 0;
    printf("-- program %s\n", title);
    ASK("source", clGetProgramInfo, program, CL_PROGRAM_SOURCE);
    ASK("kernels", clGetProgramInfo, program, CL_PROGRAM_NUM_KERNELS);
    ASK("names", clGetProgramInfo, program, CL_PROGRAM_KERNEL_NAMES);
    ASK("status", clGetProgramBuildInfo, program, device, CL_PROGRAM_BUILD_STATUS);
    ASK("log", clGetProgramBuildInfo, program, device, CL_PROGRAM_BUILD_LOG);
    ASK("options", clGetProgramBuildInfo, program, device, CL_PROGRAM_BUILD_OPTIONS);
    ASK("type", clGetProgramBuildInfo, program, device, CL_PROGRAM_BINARY_TYPE);
    ASK("unknown", clGetProgramInfo, program, 0x9999);
    ASK("unknown build", clGetProgramBuildInfo, program, device, 0x9999);
    printf("no device: %d\n",
           clGetProgramBuildInfo(program, NULL, CL_PROGRAM_BUILD_STATUS, 4, &references, NULL));
    (void)clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(references), &references,
                           NULL);
    (void)clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof(cl_context), &of, NULL);
    (void)clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(cl_device_id), &first, NULL);
    printf("references %u, context %d, device %d\n", references, of == context, first == device);
}

static void print_kernel(cl_kernel kernel, cl_program program)
{
    cl_program of = NULL;
    cl_uint args = 0;
    printf("-- kernel\n");
    ASK("name", clGetKernelInfo, kernel, CL_KERNEL_FUNCTION_NAME);
    ASK("attributes", clGetKernelInfo, kernel, CL_KERNEL_ATTRIBUTES);
    ASK("references", clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT);
    ASK("group", clGetKernelWorkGroupInfo, kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
    (void)clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(args), &args, NULL);
    for (cl_uint i = 0; i <= args; i++) {
        ASK("argument", clGetKernelArgInfo, kernel, i, CL_KERNEL_ARG_NAME);
        ASK("type", clGetKernelArgInfo, kernel, i, CL_KERNEL_ARG_TYPE_NAME);
        ASK("address", clGetKernelArgInfo, kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER);
        ASK("access", clGetKernelArgInfo, kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER);
        ASK("qualifier", clGetKernelArgInfo, kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER);
    }
    const cl_int code = clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(cl_program), &of, NULL);
    printf("program %d %d\n", code, of == program);
}

static void launch(cl_kernel kernel, const char *title)
{
    int in[ITEMS], out[ITEMS] = {0};
    const size_t global = ITEMS, local = 4;
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < ITEMS; i++) {
        in[i] = i;
    }
    cl_mem a = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(in), in, &code);
    cl_mem b = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(out), NULL, &code);
    code |= clSetKernelArg(kernel, 0, sizeof(cl_mem), (const void *)&a);
    code |= clSetKernelArg(kernel, 1, sizeof(cl_mem), (const void *)&b);
    code |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    code |= clEnqueueReadBuffer(queue, b, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL);
    printf("launch %s: %d, %d %d %d\n", title, code, out[0], out[1], out[ITEMS - 1]);
    clReleaseMemObject(a);
    clReleaseMemObject(b);
}

static cl_program create(const char *text)
{
    cl_int code = CL_SUCCESS;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    printf("create: %d\n", code);
    return program;
}

static cl_uint references_of(cl_program program)
{
    cl_uint count = 0;
    (void)clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(count), &count, NULL);
    return count;
}

/* --- sequences -------------------------------------------------------------------------------- */

/* PoCL's threads let go of a launched kernel, and so of its program, after the launch has ended. */
static void let_kernels_go(cl_program program)
{
    for (int i = 0; i < 400 && references_of(program) > 1; i++) {
        (void)usleep(5000);
    }
}

static void build_and_release(const char *options)
{
    cl_int code = CL_SUCCESS;
    cl_program program = create(plain);
    printf("before: %d\n", clCreateKernel(program, "add", &code) == NULL ? code : 1);
    printf("build: %d\n", clBuildProgram(program, 1, &device, options, NULL, NULL));
    print_program("built", program);
    cl_kernel kernel = clCreateKernel(program, "add", &code);
    printf("kernel: %d, none: ", code);
    printf("%d %d\n", clCreateKernel(program, "none", &code) == NULL, code);
    print_kernel(kernel, program);
    cl_kernel scale = clCreateKernel(program, "scale", NULL);
    print_kernel(scale, program);
    printf("references with kernels %u\n", references_of(program));
    launch(kernel, "add");
    clRetainKernel(kernel);
    clReleaseKernel(kernel);
    clRetainProgram(program);
    printf("references retained %u\n", references_of(program));
    clReleaseProgram(program);
    printf("release: %d\n", clReleaseProgram(program));
    cl_program of = NULL;
    (void)clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(cl_program), &of, NULL);
    printf("program after its release %d, references %u\n", of == program, references_of(of));
    launch(kernel, "add after release");
    clRetainProgram(of);
    clReleaseKernel(scale);
    printf("kernel release: %d\n", clReleaseKernel(kernel));
    let_kernels_go(of);
    print_program("alone", of);
    clReleaseProgram(of);
}

static void create_all_kernels(void)
{
    cl_program program = create(plain);
    cl_kernel kernels[4] = {NULL};
    cl_uint count = 0;
    printf("build: %d\n", clBuildProgram(program, 0, NULL, "-I include", NULL, NULL));
    printf("count: %d", clCreateKernelsInProgram(program, 0, NULL, &count));
    printf(" %u; too few: %d\n", count, clCreateKernelsInProgram(program, 1, kernels, NULL));
    printf("all: %d\n", clCreateKernelsInProgram(program, 4, kernels, &count));
    for (cl_uint i = 0; i < count; i++) {
        print_kernel(kernels[i], program);
        clReleaseKernel(kernels[i]);
    }
    size_t size = 0;
    cl_int code = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL);
    unsigned char *binary = malloc(size);
    code |= clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL);
    printf("binary: %d %d\n", code, size > 0);
    const unsigned char *bytes = binary;
    cl_int status = 0;
    cl_program loaded =
        clCreateProgramWithBinary(context, 1, &device, &size, &bytes, &status, &code);
    printf("loaded: %d %d %d\n", code, status, clBuildProgram(loaded, 0, NULL, NULL, NULL, NULL));
    cl_kernel kernel = clCreateKernel(loaded, "add", &code);
    launch(kernel, "from its binary");
    clReleaseKernel(kernel);
    clReleaseProgram(loaded);
    free(binary);
    printf("again without kernels: %d\n",
           clBuildProgram(program, 1, &device, "-I include -DMORE", NULL, NULL));
    print_program("built twice", program);
    clReleaseProgram(program);
}

static void CL_CALLBACK notify(cl_program program, void *user)
{
    cl_build_status status = CL_BUILD_NONE;
    (void)clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                                NULL);
    printf("callback %d, status %d\n",
           program == *(cl_program *)user || *(cl_program *)user == NULL, status);
}

static void build_with_callbacks(void)
{
    cl_program program = create(plain);
    printf("build: %d\n",
           clBuildProgram(program, 1, &device, "-I include -DCB", notify, (void *)&program));
    clReleaseProgram(program);
    program = create("__kernel void broken(__global int *a) { a[0] = nonsense; }");
    printf("broken: %d\n", clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_build_status status = CL_BUILD_NONE;
    (void)clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                                NULL);
    printf("status %d\n", status);
    clReleaseProgram(program);
}

static void make_errors(void)
{
    cl_program program = create(plain);
    cl_int code = CL_SUCCESS;
    printf("no devices: %d %d\n", clBuildProgram(program, 1, NULL, "", NULL, NULL),
           clBuildProgram(program, 0, &device, "", NULL, NULL));
    printf("user without notify: %d\n", clBuildProgram(program, 1, &device, "", NULL, &code));
    printf("no option: %d\n", clBuildProgram(program, 1, &device, "-no-such-option", NULL, NULL));
    printf("null: %d %d %d\n", clBuildProgram(NULL, 0, NULL, NULL, NULL, NULL),
           clReleaseProgram(NULL), clRetainProgram(NULL));
    printf("null kernel: %d %d\n", clReleaseKernel(NULL), clRetainKernel(NULL));
    printf("built after errors: %d\n",
           clBuildProgram(program, 1, &device, "-I include", NULL, NULL));
    printf("link of nothing: %d",
           clLinkProgram(context, 0, NULL, "", 0, NULL, NULL, NULL, &code) == NULL);
    printf(" %d\n", code);
    printf("link of what is not compiled: %d",
           clLinkProgram(context, 0, NULL, "", 1, &program, NULL, NULL, &code) == NULL);
    printf(" %d\n", code);
    clReleaseProgram(program);
}

static void compile_and_link(void)
{
    cl_int code = CL_SUCCESS;
    const char *name = "shared.h";
    cl_program inputs[2] = {create(unit_a), create(unit_b)}, header = create(shared);
    printf("compile: %d\n",
           clCompileProgram(inputs[0], 1, &device, "-DA=1", 1, &header, &name, NULL, NULL));
    printf("compile: %d\n",
           clCompileProgram(inputs[1], 1, &device, NULL, 0, NULL, NULL, NULL, NULL));
    print_program("compiled", inputs[1]);
    cl_program program = clLinkProgram(context, 1, &device, "", 2, inputs, NULL, NULL, &code);
    printf("link: %d\n", code);
    clReleaseProgram(inputs[0]);
    clReleaseProgram(header);
    if (program != NULL) {
        print_program("linked", program);
        cl_kernel kernel = clCreateKernel(program, "add", &code);
        printf("kernel: %d\n", code);
        print_kernel(kernel, program);
        launch(kernel, "linked");
        clReleaseKernel(kernel);
        clReleaseProgram(program);
    }
    size_t size = 0;
    code = clGetProgramInfo(inputs[1], CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL);
    printf("binary of an object: %d %d\n", code, size > 0);
    clReleaseProgram(inputs[1]);
}

/* --- several devices -------------------------------------------------------------------------- */

enum { DEVICES = 4 };

/* One program for all of them, launched on each. */
static void build_for_all(void)
{
    cl_device_id all[DEVICES];
    cl_uint count = 0;
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES, all, &count);
    cl_context one = context;
    cl_command_queue first = queue;
    count = count < DEVICES ? count : DEVICES;
    context = clCreateContext(NULL, count, all, NULL, NULL, &code);
    cl_program program = create(plain);
    printf("devices %u, build %d\n", count,
           clBuildProgram(program, 0, NULL, "-I include -DALL", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "add", &code);
    for (cl_uint i = 0; i < count; i++) {
        cl_build_status status = CL_BUILD_NONE;
        code = clGetProgramBuildInfo(program, all[i], CL_PROGRAM_BUILD_STATUS, sizeof(status),
                                     &status, NULL);
        printf("device %u: %d, status %d\n", i, code, status);
        ASK("log", clGetProgramBuildInfo, program, all[i], CL_PROGRAM_BUILD_LOG);
        queue = clCreateCommandQueue(context, all[i], 0, &code);
        launch(kernel, "on one of them");
        clReleaseCommandQueue(queue);
    }
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseContext(context);
    context = one;
    queue = first;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *build_many(void *user)
{
    long failures = 0;
    (void)user;
    for (int i = 0; i < ROUNDS; i++) {
        const char *text = plain;
        char options[64];
        cl_int code = CL_SUCCESS;
        snprintf(options, sizeof(options), "-I include -DROUND=%d", i % 3);
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
        failures += clBuildProgram(program, 1, &device, options, NULL, NULL) != CL_SUCCESS;
        cl_kernel kernel = clCreateKernel(program, "add", &code);
        cl_program of = NULL;
        failures +=
            clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(cl_program), &of, NULL) != CL_SUCCESS;
        failures += of != program;
        failures += clReleaseProgram(program) != CL_SUCCESS;
        failures += clReleaseKernel(kernel) != CL_SUCCESS;
    }
    return (void *)failures;
}

/* Two kernels, the first of which is launched; the other one's name is long or not. */
static void launch_the_first(const char *what)
{
    char source[1024];
    const int length = strcmp(what, "long") == 0 ? 300 : 20;
    if (length == 20 && strcmp(what, "two") != 0) {
        return;
    }
    int size = snprintf(source, sizeof(source),
                        "__kernel void add(__global const int *a, __global int *out) {\n"
                        "  size_t i = get_global_id(0); out[i] = a[i] + %d; }\n"
                        "__kernel void other_",
                        length);
    memset(source + size, 'n', (size_t)length - 6);
    snprintf(source + size + length - 6, sizeof(source) - (size_t)(size + length - 6),
             "(__global int *out) { *out = %d; }\n", length);
    cl_program program = create(source);
    printf("build: %d\n", clBuildProgram(program, 0, NULL, "", NULL, NULL));
    launch(clCreateKernel(program, "add", NULL), "the first");
    clReleaseProgram(program);
}

static void build_in_threads(void)
{
    pthread_t threads[THREADS];
    long failures = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, build_many, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        failures += (long)result;
    }
    printf("threads: %ld failures\n", failures);
}

int main(int argc, char **argv)
{
    cl_uint found = 0;
    const char *what = argc > 1 ? argv[1] : "all";
    const int all = strcmp(what, "all") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (clGetPlatformIDs(1, &platform, &found) != CL_SUCCESS || found == 0 ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &found) != CL_SUCCESS) {
        return 77;
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    if (all || strcmp(what, "build") == 0) {
        build_and_release("-I include");
        build_and_release("-I include -cl-kernel-arg-info -DWARN");
    }
    if (all) {
        create_all_kernels();
        build_with_callbacks();
        make_errors();
    }
    if (all || strcmp(what, "link") == 0) {
        compile_and_link();
    }
    if (all || strcmp(what, "threads") == 0) {
        build_in_threads();
    }
    if (strcmp(what, "devices") == 0) {
        build_for_all();
    }
    launch_the_first(what);
    if (strcmp(what, "left") == 0) { /* and nothing of it is released */
        cl_program program = create(plain);
        printf("build: %d\n", clBuildProgram(program, 0, NULL, "-I include", NULL, NULL));
        launch(clCreateKernel(program, "add", NULL), "left");
        return 0;
    }
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}

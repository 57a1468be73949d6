/* first_result WAY KERNEL [BINARY]: one sample in a fresh process, from a ready context to the
 * first result on the host, in milliseconds on standard output. Ways:
 *   kiln   libkiln, with whatever cache the environment says
 *   nvrtc  NVRTC and the driver by hand, NVRTC being loaded before the clock starts
 *   late   the same, NVRTC being loaded after that, as kiln does
 *   bare   cuLibraryLoadData of BINARY, read from its file
 *   save   no GPU: compiles KERNEL with NVRTC and writes BINARY
 *   many   no GPU: compiles every file named after WAY, one after the other
 *
 * The answer is checked; a wrong one is a failure. $ARCH is sm_90 unless set. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

#include "apis/cuda/backend/instance.h"
#include "bench/bench.h"

enum { COUNT = 256 };

static kn_cuda_driver cu;
static kn_cuda_nvrtc rtc;
static float input[COUNT], output[COUNT];

static void fail(const char *what, int code)
{
    fprintf(stderr, "first_result: %s (%d)\n", what, code);
    exit(1);
}

static void need(int result, const char *what)
{
    if (result != 0) {
        fail(what, result);
    }
}

/* --- kernels ---------------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static char *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    long size = 0;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) != 0) {
        fail(path, 0);
    }
    char *bytes = malloc((size_t)size + 1);
    if (bytes == NULL || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        fail(path, 1);
    }
    bytes[size] = '\0';
    *out_size = (size_t)size;
    (void)fclose(file);
    return bytes;
}

static unsigned threads_for(const char *kernel)
{
    return strstr(name_of(kernel), "mma") != NULL    ? 32
           : strstr(name_of(kernel), "sort") != NULL ? 64
                                                     : COUNT;
}

static void make_input(const char *kernel)
{
    for (unsigned i = 0; i < COUNT; i++) {
        input[i] =
            strstr(name_of(kernel), "mma") != NULL ? 1.0F : (float)((i * 7919U + 13U) % 1009U);
    }
}

static void check_output(const char *kernel)
{
    for (unsigned i = 0; i < COUNT; i++) {
        bool good = output[i] == 2.0F * input[i];
        if (strstr(name_of(kernel), "mma") != NULL) {
            good = output[i] == 16.0F;
        } else if (strstr(name_of(kernel), "sort") != NULL) {
            good = output[i] > 0.0F && (i == 0 || output[i - 1] <= output[i]);
        }
        if (!good) {
            fail("wrong result", (int)i);
        }
    }
}

/* --- by hand ---------------------------------------------------------------------------------- */

static void bind_all(void *library, const kn_symbol *symbols, size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL && symbols[i].need == KN_REQUIRED) {
            fail(symbols[i].name, 0);
        }
        memcpy((char *)table + symbols[i].offset, &symbol, sizeof(symbol));
    }
}

static const char *arch(void)
{
    const char *named = getenv("ARCH");
    return named != NULL ? named : "sm_90";
}

static const kn_cuda_toolkit *open_nvrtc(void)
{
    static kn_cuda_toolkit toolkit;
    kn_cuda_toolkit_find(&toolkit);
    if (dlopen(toolkit.builtins.path, RTLD_NOW | RTLD_GLOBAL) == NULL) {
        fail("no NVRTC builtins", 0);
    }
    void *library = dlopen(toolkit.nvrtc.path, RTLD_NOW);
    if (library == NULL) {
        fail("no NVRTC", 0);
    }
    bind_all(library, kn_cuda_nvrtc_symbols, kn_cuda_nvrtc_symbol_count, &rtc);
    return &toolkit;
}

static void *compile(const kn_cuda_toolkit *toolkit, const char *kernel, const char *text,
                     size_t *out_size)
{
    char options[3][KN_CUDA_PATH + 32];
    void *program = NULL;
    (void)snprintf(options[0], sizeof(options[0]), "--gpu-architecture=%s", arch());
    (void)snprintf(options[1], sizeof(options[1]), "-I%s", toolkit->include[1]);
    (void)snprintf(options[2], sizeof(options[2]), "-I%s", toolkit->include[0]);
    const char *list[] = {options[0], options[1], options[2]};
    need(rtc.rtc.create(&program, text, name_of(kernel), 0, NULL, NULL), "create");
    const bool searches = strstr(text, "#include") != NULL && toolkit->include[1][0] != '\0';
    need(rtc.rtc.compile(program, searches ? 3 : 1, list), "compile");
    need(rtc.nvrtcGetCUBINSize(program, out_size), "size");
    void *cubin = malloc(*out_size);
    if (cubin == NULL) {
        fail("memory", 0);
    }
    need(rtc.nvrtcGetCUBIN(program, cubin), "cubin");
    need(rtc.rtc.destroy(&program), "destroy");
    return cubin;
}

static void *compile_file(const kn_cuda_toolkit *toolkit, const char *kernel, size_t *out_size)
{
    char *text = read_file(kernel, out_size);
    void *cubin = compile(toolkit, kernel, text, out_size);
    free(text);
    return cubin;
}

static void ready_context(void)
{
    CUdevice device = 0;
    CUcontext context = NULL;
    CUdeviceptr warm = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fail("no libcuda.so.1", 0);
    }
    bind_all(library, kn_cuda_driver_symbols, kn_cuda_driver_symbol_count, &cu);
    need(cu.cuInit(0), "cuInit");
    need(cu.cuDeviceGet(&device, 0), "cuDeviceGet");
    need(cu.cuDevicePrimaryCtxRetain(&context, device), "context");
    need(cu.cuCtxPushCurrent_v2(context), "push");
    need(cu.gpu.mem_alloc(&warm, 4), "alloc");
}

static void run_binary(const void *binary, unsigned threads)
{
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUfunction entry = NULL;
    CUmodule module = NULL;
    void *function = NULL;
    void *stream = NULL;
    CUdeviceptr in = 0;
    CUdeviceptr out = 0;
    if (cu.cuLibraryLoadData != NULL) {
        need(cu.cuLibraryLoadData(&library, binary, NULL, NULL, 0, NULL, NULL, 0), "load");
        need(cu.cuLibraryGetKernel(&kernel, library, "run"), "kernel");
        need(cu.cuKernelGetFunction(&entry, kernel), "function");
        function = entry;
    } else {
        need(cu.cuModuleLoadDataEx(&module, binary, 0, NULL, NULL), "load");
        need(cu.gpu.module_function(&function, module, "run"), "function");
    }
    need(cu.gpu.stream_create(&stream, CU_STREAM_NON_BLOCKING), "stream");
    need(cu.gpu.mem_alloc(&in, sizeof(input)), "alloc");
    need(cu.gpu.mem_alloc(&out, sizeof(output)), "alloc");
    need(cu.gpu.write(in, input, sizeof(input), stream), "write");
    void *params[] = {&in, &out};
    need(cu.gpu.launch(function, 1, 1, 1, threads, 1, 1, 0, stream, params, NULL), "launch");
    need(cu.gpu.read(output, out, sizeof(output), stream), "read");
    need(cu.gpu.stream_synchronize(stream), "wait");
}

static double by_hand(const char *kernel, const char *binary, bool late)
{
    size_t size = 0;
    const kn_cuda_toolkit *toolkit = binary == NULL && !late ? open_nvrtc() : NULL;
    char *text = read_file(kernel, &size); /* a program has it in itself */
    ready_context();
    const double start = bench_now();
    toolkit = late ? open_nvrtc() : toolkit;
    void *bytes =
        binary == NULL ? compile(toolkit, kernel, text, &size) : (void *)read_file(binary, &size);
    run_binary(bytes, threads_for(kernel));
    const double took = bench_now() - start;
    free(bytes);
    free(text);
    return took;
}

/* --- kiln ------------------------------------------------------------------------------------- */

static void need_kiln(kiln_status status, kiln_diag *diag)
{
    if (status != KILN_OK) {
        char line[4096];
        (void)kiln_diag_format(diag, line, sizeof(line));
        fail(line, (int)status);
    }
}

static double by_kiln(const char *kernel)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    kiln_program *program = NULL;
    kiln_queue *queue = NULL;
    kiln_buffer *in = NULL;
    kiln_buffer *out = NULL;
    kiln_buffer *warm = NULL;
    size_t size = 0;
    char *text = read_file(kernel, &size);
    need_kiln(kiln_runtime_options_init(&options, &diag), &diag);
    options.backend = "cuda";
    options.strict = true;
    need_kiln(kiln_runtime_create(&options, &runtime, &diag), &diag);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    need_kiln(kiln_buffer_create(device, 4, &warm, &diag), &diag); /* the context is ready */
    const double start = bench_now();
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_CUDA;
    source.name = kernel;
    source.text = text;
    source.length = size;
    need_kiln(kiln_program_build(device, &source, 1, NULL, &program, &diag), &diag);
    need_kiln(kiln_queue_create(device, &queue, &diag), &diag);
    need_kiln(kiln_buffer_create(device, sizeof(input), &in, &diag), &diag);
    need_kiln(kiln_buffer_create(device, sizeof(output), &out, &diag), &diag);
    need_kiln(kiln_queue_write(queue, in, 0, input, sizeof(input), &diag), &diag);
    const kiln_arg args[] = {{.kind = KILN_ARG_BUFFER, .buffer = in},
                             {.kind = KILN_ARG_BUFFER, .buffer = out}};
    const kiln_launch launch = {.struct_size = sizeof(launch),
                                .dims = 1,
                                .global = {threads_for(kernel)},
                                .local = {threads_for(kernel)},
                                .args = args,
                                .arg_count = 2};
    need_kiln(kiln_queue_launch(queue, program, "run", &launch, NULL, &diag), &diag);
    need_kiln(kiln_queue_read(queue, out, 0, output, sizeof(output), &diag), &diag);
    const double took = bench_now() - start;
    if (getenv("DETAILS") != NULL) {
        const kiln_build_info *info = kiln_program_get_info(program);
        fprintf(stderr, "key %.3f lookup %.3f compile %.3f load %.3f total %.3f of %.3f ms\n",
                (double)info->key_ns / 1e6, (double)info->lookup_ns / 1e6,
                (double)info->compile_ns / 1e6, (double)info->load_ns / 1e6,
                (double)info->total_ns / 1e6, took * 1e3);
    }
    kiln_program_release(program);
    kiln_buffer_destroy(in);
    kiln_buffer_destroy(out);
    kiln_buffer_destroy(warm);
    kiln_queue_destroy(queue);
    kiln_runtime_destroy(runtime);
    free(text);
    return took;
}

int main(int argc, char **argv)
{
    double took = 0.0;
    size_t size = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: first_result kiln|nvrtc|late|bare|save|many KERNEL [BINARY]\n");
        return 2;
    }
    make_input(argv[2]);
    if (strcmp(argv[1], "many") == 0) {
        const double start = bench_now();
        const kn_cuda_toolkit *toolkit = open_nvrtc();
        for (int i = 2; i < argc; i++) {
            free(compile_file(toolkit, argv[i], &size));
        }
        printf("%.3f\n", (bench_now() - start) * 1e3);
        return 0;
    }
    if (strcmp(argv[1], "save") == 0 && argc == 4) {
        void *cubin = compile_file(open_nvrtc(), argv[2], &size);
        FILE *file = fopen(argv[3], "wb");
        if (file == NULL || fwrite(cubin, 1, size, file) != size || fclose(file) != 0) {
            fail(argv[3], 0);
        }
        free(cubin);
        return 0;
    }
    if (strcmp(argv[1], "kiln") == 0) {
        took = by_kiln(argv[2]);
    } else {
        took = by_hand(argv[2], strcmp(argv[1], "bare") == 0 ? argv[3] : NULL,
                       strcmp(argv[1], "late") == 0);
    }
    check_output(argv[2]);
    printf("%.4f\n", took * 1e3);
    return 0;
}

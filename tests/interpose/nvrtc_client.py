"""nvrtc_client.py LIBRARY [CASE ...]: NVRTC's calls in the orders in which callers make them, on the
library that is named, and all that came back, one JSON line a case. It knows nothing of kiln: the
same transcript must come of NVRTC itself and of the library that stands in for it."""
import ctypes
import hashlib
import json
import os
import sys
import tempfile
import threading

LIBRARY = ctypes.CDLL(sys.argv[1])
OUTPUTS = ("PTX", "CUBIN", "LTOIR", "OptiXIR")
CASES = {}
KERNEL = "__global__ void k(int *a) { *a = 1; }"


def case(function):
    CASES[function.__name__] = function
    return function


# What the NVRTC under test lacks, since kiln's library has the functions of all versions.
LACKS = os.environ.get("NVRTC_LACKS", "").split(",")


def has(name):
    return hasattr(LIBRARY, name) and name not in LACKS


class Program:
    """One nvrtcProgram, whose every answer is written down."""

    def __init__(self, text, name=None, headers=(), said=None):
        self.handle = ctypes.c_void_p()
        self.said = said if said is not None else []
        texts = (ctypes.c_char_p * max(1, len(headers)))(*[t.encode() for _, t in headers])
        names = (ctypes.c_char_p * max(1, len(headers)))(*[n.encode() for n, _ in headers])
        self.say("create", LIBRARY.nvrtcCreateProgram(
            ctypes.byref(self.handle), text.encode(), name.encode() if name else None,
            len(headers), texts if headers else None, names if headers else None))

    def say(self, what, *rest):
        self.said.append([what, *rest])

    def express(self, *expressions):
        for expression in expressions:
            self.say("express", LIBRARY.nvrtcAddNameExpression(self.handle, expression.encode()))
        return self

    def compile(self, *options):
        array = (ctypes.c_char_p * max(1, len(options)))(*[o.encode() for o in options])
        self.say("compile", LIBRARY.nvrtcCompileProgram(self.handle, len(options),
                                                        array if options else None))
        return self

    def bytes_of(self, what):
        size = ctypes.c_size_t(4711)
        if not has(f"nvrtcGet{what}Size"):
            return
        code = getattr(LIBRARY, f"nvrtcGet{what}Size")(self.handle, ctypes.byref(size))
        self.say(what + " size", code, size.value)
        if code == 0 and 0 < size.value < 1 << 28:
            room = ctypes.create_string_buffer(size.value)
            code = getattr(LIBRARY, f"nvrtcGet{what}")(self.handle, room)
            text = room.raw.decode(errors="replace") if what == "ProgramLog" else \
                hashlib.sha256(room.raw).hexdigest()
            self.say(what, code, text)

    def lowered(self, *expressions):
        for expression in expressions:
            name = ctypes.c_char_p()
            code = LIBRARY.nvrtcGetLoweredName(self.handle, expression.encode(),
                                               ctypes.byref(name))
            self.say("lowered", code, name.value.decode() if code == 0 else None)
        return self

    def all(self):
        self.bytes_of("ProgramLog")
        for what in OUTPUTS:
            self.bytes_of(what)
        return self

    def destroy(self):
        self.say("destroy", LIBRARY.nvrtcDestroyProgram(ctypes.byref(self.handle)),
                 self.handle.value)
        return self.said


def compiled(text, *options, name=None, headers=()):
    return Program(text, name, headers).compile(*options).all().destroy()


# --- the library ---

@case
def version():
    major, minor = ctypes.c_int(), ctypes.c_int()
    said = [LIBRARY.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), major.value,
            minor.value]
    if has("nvrtcGetNumSupportedArchs"):
        count = ctypes.c_int()
        said += [LIBRARY.nvrtcGetNumSupportedArchs(ctypes.byref(count)), count.value]
        archs = (ctypes.c_int * max(1, count.value))()
        said += [LIBRARY.nvrtcGetSupportedArchs(archs), list(archs)]
    return said


@case
def error_strings():
    LIBRARY.nvrtcGetErrorString.restype = ctypes.c_char_p
    return [LIBRARY.nvrtcGetErrorString(code).decode() for code in range(7)]


# --- one compile ---

@case
def machine_code():
    return compiled(KERNEL, "--gpu-architecture=sm_90")


@case
def virtual_architecture():
    return compiled(KERNEL, "-arch=compute_90")


@case
def default_architecture():
    return compiled(KERNEL)


@case
def warnings_name_the_source():
    text = "__global__ void k(int *a) { int unused; *a = 1; }"
    return [compiled(text, "-arch=sm_90", name=name)
            for name in (None, "plain.cu", "/no/such/place/x.cu", "a\"b.cu")]


@case
def compile_error():
    return [compiled("__global__ void k(int *a) { *a = nothing; }", "-arch=sm_90", name=name)
            for name in (None, "wrong.cu")]


@case
def wrong_options():
    return [compiled(KERNEL, *options) for options in
            (("--no-such-option",), ("-arch=sm_1",), ("-arch",), ("",), ("-I",), ("-include-path=sub",),
             ("-include-path", "sub"), ("--Isub",))]


@case
def definitions():
    return [compiled("#ifdef A\n" + KERNEL + "\n#endif\n#if B == 2\n__device__ int b;\n#endif",
                     "-arch=sm_90", *options)
            for options in ((), ("-DA",), ("-D", "A"), ("-DA", "-DB=2"), ("--define-macro=A",),
                            ("-DA", "-UA"))]


@case
def includes(directory="."):
    said = []
    for text in ('#include "value.h"\n', "#include <value.h>\n"):
        for name in (None, os.path.abspath("sub/x.cu"), "sub/x.cu"):
            for options in ((), ("-Isub",), ("-I", "sub"), ("--include-path=sub",),
                            ("-Isub", "--no-source-include")):
                said.append(compiled(text + "__device__ int v = VALUE;", "-arch=sm_90", *options,
                                     name=name))
    return said


@case
def blanks_around_a_directory():
    return [compiled("#include <value.h>\n__device__ int v = VALUE;", "-arch=sm_90", *options)
            for options in (("-I sub",), ("-Isub ",), ("-I", " sub"), ("-I", "sub\t"),
                            ("--include-path= sub",), ("--include-path=sub\n",))]


@case
def a_source_that_asks_for_itself():
    """To NVRTC the source is a header of its own name."""
    texts = [f"#if __has_include({name})\n__device__ int v = 1;\n#else\n__device__ int v;\n#endif"
             for name in ('"t.cu"', "<t.cu>", '"default_program"', '"sub/t.cu"')]
    texts.append('#ifndef ONCE\n#define ONCE\n#include "value.h"\n#ifdef VALUE\n__device__ int v = VALUE;\n'
                 "#else\n__device__ int w;\n#endif\n#endif")
    return [compiled(text, "-arch=sm_90", name=name)
            for text in texts for name in ("t.cu", "u.cu", None, "sub/t.cu", "value.h")]


READS = "__global__ void k(float *a, const float *b) { a[0] = a[1] + b[%d]; }"


@case
def one_that_reads():
    return compiled(READS % 1, "-arch=sm_90")


@case
def headers_in_memory():
    headers = [("value.h", "#define VALUE 71"), ("deep/more.h", '#include "value.h"')]
    return [compiled(f'#include "{name}"\n__device__ int v = VALUE;', "-arch=sm_90",
                     headers=headers) for name in ("value.h", "deep/more.h", "missing.h")]


@case
def names_of_files():
    text = "__device__ const char *file = __FILE__; __device__ const char *get() { return file; }"
    return [compiled(text, "-arch=sm_90", "-rdc=true", name=name)
            for name in (None, "x.cu", "/tmp/one/x.cu", "/tmp/other/x.cu")]


@case
def line_information():
    return [compiled(KERNEL, "-arch=sm_90", "-lineinfo", name=name)
            for name in (None, "/tmp/one/x.cu", "/tmp/other/x.cu")]


# --- orders of calls ---

@case
def name_expressions():
    text = "template <class T> __global__ void fill(T *x, T v) { *x = v; } __device__ int count;"
    program = Program(text).express("fill<float>", "&fill<int>", "count").compile("-arch=sm_90")
    program.all().lowered("fill<float>", "count", "&fill<int>", "fill<double>")
    return program.destroy()


@case
def wrong_expression():
    return Program(KERNEL).express("nothing<int>").compile("-arch=sm_90").all() \
        .lowered("nothing<int>").destroy()


@case
def before_a_compile():
    return Program(KERNEL).all().lowered("k").destroy()


@case
def expression_after_a_compile():
    return Program(KERNEL).compile("-arch=sm_90").express("k").all().destroy()


@case
def twice_with_other_options():
    return Program("__device__ int a = A;").compile("-DA=1", "-arch=sm_90").all() \
        .compile("-DA=2", "-arch=sm_90").all().compile("-arch=sm_90").all().destroy()


@case
def many_at_once():
    programs = [Program(f"__device__ int v{i};", f"m{i}.cu") for i in range(4)]
    for program in programs:
        program.compile("-arch=sm_90", "-rdc=true")
    for program in reversed(programs):
        program.all()
    return [programs[i].destroy() for i in (2, 0, 3, 1)]


@case
def eight_threads():
    results = [None] * 8

    def work(i):
        results[i] = compiled(f"__device__ int t{i % 3};", "-arch=sm_90", "-rdc=true",
                              name=f"t{i}.cu")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@case
def odd_arguments():
    handle, size = ctypes.c_void_p(), ctypes.c_size_t(7)
    said = [LIBRARY.nvrtcCreateProgram(None, b"x", None, 0, None, None),
            LIBRARY.nvrtcCreateProgram(ctypes.byref(handle), None, None, 0, None, None),
            LIBRARY.nvrtcCreateProgram(ctypes.byref(handle), b"x", None, -1, None, None),
            LIBRARY.nvrtcCreateProgram(ctypes.byref(handle), b"x", None, 1, None, None),
            LIBRARY.nvrtcDestroyProgram(ctypes.byref(handle)),
            LIBRARY.nvrtcDestroyProgram(None),
            LIBRARY.nvrtcCompileProgram(None, 0, None),
            LIBRARY.nvrtcGetPTXSize(None, ctypes.byref(size))]
    program = Program(KERNEL)
    said.append(LIBRARY.nvrtcCompileProgram(program.handle, 1, None))
    program.compile("-arch=sm_90")
    said += [LIBRARY.nvrtcGetPTXSize(program.handle, None),
             LIBRARY.nvrtcGetPTX(program.handle, None),
             LIBRARY.nvrtcGetProgramLogSize(program.handle, None),
             LIBRARY.nvrtcGetLoweredName(program.handle, None, None)]
    return said + program.all().destroy()


@case
def an_empty_program():
    return compiled("", "-arch=sm_90")


@case
def flow_callback():
    if not has("nvrtcSetFlowCallback"):
        return []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    stop = kind(lambda payload, more: 1)
    program = Program("__global__ void stopped(int *a) { *a = 1; }")
    program.say("flow", LIBRARY.nvrtcSetFlowCallback(program.handle, stop, None))
    return program.compile("-arch=sm_90").all().destroy()


@case
def precompiled_headers():
    said = compiled(KERNEL, "-arch=sm_90", "-pch", name="pch.cu")[:2]
    if has("nvrtcGetPCHCreateStatus"):
        program = Program(KERNEL).compile("-arch=sm_90")
        said.append(LIBRARY.nvrtcGetPCHCreateStatus(program.handle))
        program.destroy()
        size = ctypes.c_size_t()
        said.append([LIBRARY.nvrtcGetPCHHeapSize(ctypes.byref(size)), size.value])
    return said


CUB = """#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
extern "C" __global__ void sums(const int *in, int *out)
{
    typedef cub::BlockReduce<int, 128> reduce;
    typedef cub::BlockScan<int, 128> scan;
    __shared__ union { reduce::TempStorage a; scan::TempStorage b; } room;
    const int whole = reduce(room.a).Sum(in[threadIdx.x]);
    int before = 0;
    __syncthreads();
    scan(room.b).ExclusiveSum(in[threadIdx.x], before);
    out[threadIdx.x] = threadIdx.x == 0 ? whole : before;
}
"""
GROUPS = """#include <cooperative_groups.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
template <class T> __global__ void halves(const T *in, __half *out)
{
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const float mine = static_cast<float>(in[threadIdx.x]);
    out[threadIdx.x] = __float2half(tile.shfl_down(mine, 1));
}
"""
BODY = """typedef long long int int64_t;
template <typename scalar_t> scalar_t gelu(scalar_t x) { return x * scalar_t(0.5) * (scalar_t(1) + erf(x)); }
extern "C" __launch_bounds__(256, 4) __global__ void unrolled(const int n, double *out, const double *in)
{
    #pragma unroll
    for (int64_t i = blockIdx.x * 1024 + threadIdx.x, j = 0; j < 4 && i < n; i += 256, j++)
        out[i] = gelu(in[i]);
}
"""


@case
def core_libraries():
    """As CuPy, cuda.core and PyTorch's jiterator compile: CUDA's headers from -I directories, a source
    in a new temporary directory each time, or with no name at all."""
    include = os.environ.get("NVRTC_INCLUDE", "")
    if not os.path.isdir(include + "/cccl/cub"):
        return []
    folders = ("-I" + include + "/cccl", "-I" + include)
    with tempfile.TemporaryDirectory() as folder:
        name = folder + "/0123456789abcdef.cubin.cu"
        program = Program(GROUPS, "default_program").express("halves<int>", "halves<unsigned short>")
        program.compile("-arch=sm_90", "--std=c++17", folders[1]).all().lowered("halves<int>")
        return [compiled(CUB, *folders, "--std=c++17", "-arch=sm_90", "-DCUPY_USE_JITIFY", name=name), program.destroy(),
                compiled(BODY, "--std=c++17", "--gpu-architecture=sm_90", "-default-device", "-DNDEBUG")]


class Encrypted(Program):
    """A program that __nvrtcCPEx creates, as cuDNN and cuBLAS do: nine words, then the ordinary calls. The
    real one takes a text that is not encrypted where nothing says how to read it."""
    FAKE = os.environ.get("NVRTC_KIND") == "fake"
    WORDS = [None, KERNEL, b"encrypted.cu", 1, b"#define KEY 7\n", b"key.h", 2, (1, 2),
             (0x123456789abcdef0, 0xfedcba9876543210)]

    def __init__(self, wrong=None):
        function = getattr(LIBRARY, "__nvrtcCPEx")
        texts, word = ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p
        function.argtypes = [word, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, texts, texts, ctypes.c_int, word, word]
        self.handle, self.said = ctypes.c_void_p(0x1234), []
        source = bytes(byte + 1 for byte in KERNEL.encode()) if self.FAKE else KERNEL.encode()
        header, name = ctypes.c_char_p(self.WORDS[4]), ctypes.c_char_p(self.WORDS[5])
        kinds = (ctypes.c_int * 2)(1, 2) if self.FAKE else (ctypes.c_int * 2)(2, 2)
        values = (ctypes.c_uint64 * 2)(*self.WORDS[8]) if self.FAKE else (ctypes.c_uint64 * 2)(0, 0)
        words = [ctypes.byref(self.handle), source, self.WORDS[2], 1, ctypes.pointer(header), ctypes.pointer(name), 2,
                 kinds, values]
        if wrong is not None:
            words[wrong] = None if wrong not in (3, 6) else -1
        self.say("encrypted", function(*words), self.handle.value == 0x1234)


@case
def encrypted_source():
    if not has("__nvrtcCPEx"):
        return []
    said = []
    for _ in range(2):
        program = Encrypted()
        if Encrypted.FAKE and program.said[-1][1] != 0:
            sys.exit("the fake refuses a call that is whole")
        said.append(program.compile("-arch=sm_90", "-lineinfo").all().destroy())
    program = Encrypted().express("k").compile("-arch=sm_90").lowered("k").all()
    program.compile("-arch=sm_1").all().compile("-arch=sm_90").all()
    return said + [program.destroy()]


@case
def encrypted_source_with_a_wrong_word():
    """Each word alone; nothing is created, and the handle is as it was."""
    if not has("__nvrtcCPEx"):
        return []
    wrong = range(9) if Encrypted.FAKE else (0, 1, 3, 4, 5, 6, 7, 8)  # NVRTC takes a program without a name
    return [[word, Encrypted(word).said] for word in wrong]


@case
def unknown_handles():
    """What no library made, what was destroyed, and NULL: NVRTC reads them and dies, the fake one does not."""
    handles = [None]
    if Encrypted.FAKE:
        # Nobody may read this page; and a program of which a copy of the handle is left.
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        handles.append(libc.mmap(None, ctypes.c_size_t(4096), 0, 0x22, -1, ctypes.c_long(0)))
        for program in (Program(KERNEL).compile("-arch=sm_90"), Encrypted(), Program(KERNEL)):
            handles.append(program.handle.value)
            program.destroy()
    said, size, text = [], ctypes.c_size_t(7), ctypes.c_char_p()
    for value in handles:
        room = ctypes.create_string_buffer(64)
        handle = ctypes.c_void_p(value)
        said.append([LIBRARY.nvrtcCompileProgram(handle, 0, None), LIBRARY.nvrtcAddNameExpression(handle, b"k"),
                     LIBRARY.nvrtcGetLoweredName(handle, b"k", ctypes.byref(text))])
        for what in ("ProgramLog", "PTX", "CUBIN"):
            said.append([getattr(LIBRARY, f"nvrtcGet{what}Size")(handle, ctypes.byref(size)), size.value,
                         getattr(LIBRARY, f"nvrtcGet{what}")(handle, room)])
        said.append([LIBRARY.nvrtcDestroyProgram(ctypes.byref(handle)), handle.value == value])
    return said


@case
def two_headers_of_one_name():
    headers = [("value.h", "#define VALUE 1"), ("value.h", "#define VALUE 2")]
    return Program(KERNEL, headers=headers).said


# NVRTC user guide, "Supported Compile Options": each that writes no file, but --version-ident, whose
# output depends on what the process compiled before.
OPTIONS = """--device-c -dc --device-w -dw --relocatable-device-code=true -rdc=true
--extensible-whole-program -ewp --device-debug -G --generate-line-info -lineinfo --dopt=on
-Xptxas=-O1 --maxrregcount=32 -maxrregcount=16 --ftz=true --prec-sqrt=false --prec-div=false
--fmad=false --use_fast_math --extra-device-vectorization --modify-stack-limit=false --dlink-time-opt
-dlto --gen-opt-lto --optix-ir --jump-table-density=50 --device-stack-protector=true --std=c++11
--std=c++14 --std=c++17 --std=c++20 --builtin-move-forward=false --builtin-initializer-list=false
--disable-warnings -w --restrict --device-as-default-execution-space -default-device --device-int128
--optimization-info=inline --display-error-number --no-display-error-number --diag-error=177
--diag-suppress=177 --diag-warn=177 --brief-diagnostics=true
--split-compile=2 --fdevice-syntax-only --minimal --frandom-seed=1 --no-cache""".split()


@case
def each_option():
    text = "__global__ void k(float *a, const float *b) { int unused; a[0] = a[1] / b[0] * b[1]; }"
    return [[option, compiled(text, option,
                              "-arch=compute_90" if "lto" in option or "optix" in option or
                              "link-time" in option else "-arch=sm_90", name="option.cu")]
            for option in OPTIONS]


@case
def after_restrict():
    """Last: NVRTC 13.0 compiles all that follows as with the option."""
    return [compiled(READS % 2, "-restrict", "-arch=sm_90"), one_that_reads()]


# In a process of their own.
ALONE = ("after_an_encrypted_restrict", "loaded_with_a_variable")


@case
def after_an_encrypted_restrict():
    return [Encrypted().compile("-restrict", "-arch=sm_90").all().destroy(), one_that_reads()]


@case
def loaded_with_a_variable():
    """The variable is there while an encrypted program loads NVRTC, and gone when a text is compiled."""
    os.environ["NV_NVVM_VERSION"] = "nvvm-latest"
    program = Encrypted()
    del os.environ["NV_NVVM_VERSION"]
    program.destroy()
    return one_that_reads()


for chosen in sys.argv[2:] or [name for name in CASES if name not in ALONE]:
    print(json.dumps([chosen, CASES[chosen]()]), flush=True)

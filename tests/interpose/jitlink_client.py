"""jitlink_client.py LIBRARY NVRTC [CASE ...]: nvJitLink's calls in the orders in which callers make
them, on the library that is named, and all that came back, one JSON line a case. It knows nothing
of kiln. NVRTC makes LTO-IR, where there is one."""
import ctypes
import hashlib
import json
import os
import re
import sys
import threading

LIBRARY = ctypes.CDLL(sys.argv[1])
RELEASES = ["", *os.environ["JITLINK_RELEASES"].split(",")]
CASES = {}
CUBIN, PTX, LTOIR, FATBIN, OBJECT, LIBRARY_INPUT, ANY = 1, 2, 3, 4, 5, 6, 10
KERNEL = """.version 7.0
.target sm_75
.address_size 64
.visible .entry NAME(.param .u64 a)
{
.reg .u64 %r<3>;
ld.param.u64 %r1, [a];
st.u64 [%r1], VALUE;
ret;
}
"""
CALLS = """.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 out) get ();
.visible .entry calls(.param .u64 a)
{
.reg .u64 %r<3>;
.reg .b32 %v<2>;
.param .b32 given;
ld.param.u64 %r1, [a];
call.uni (given), get, ();
ld.param.b32 %v1, [given];
st.u32 [%r1], %v1;
ret;
}
"""
GETS = """.version 7.0
.target sm_75
.address_size 64
.visible .func (.param .b32 out) get ()
{
st.param.b32 [out], 7;
ret;
}
"""


def case(function):
    CASES[function.__name__] = function
    return function


def kernel(name="k", value=1):
    return KERNEL.replace("NAME", name).replace("VALUE", str(value)).encode()


class Link:
    def __init__(self, *options, release=""):
        self.handle, self.said, self.release = ctypes.c_void_p(), [], release
        array = (ctypes.c_char_p * max(1, len(options)))(*[o.encode() for o in options])
        code = self.call("Create", ctypes.byref(self.handle), ctypes.c_uint32(len(options)), array)
        self.say("create", code, self.handle.value is not None)
        self.__class__ = Link if code == 0 else Nothing

    def call(self, what, *arguments):
        name = f"__nvJitLink{what}_{self.release}" if self.release else f"nvJitLink{what}"
        return getattr(LIBRARY, name)(*arguments)

    def say(self, what, *rest):
        self.said.append([what, *rest])

    def add(self, data, kind=PTX, name=b"input"):
        self.say("add", self.call("AddData", self.handle, kind, data, ctypes.c_size_t(len(data)), name))
        return self

    def add_file(self, path, kind=PTX):
        self.say("file", self.call("AddFile", self.handle, kind, path.encode()))
        return self

    def complete(self):
        self.say("complete", self.call("Complete", self.handle))
        return self

    def output(self, what):
        size = ctypes.c_size_t(4711)
        code = self.call(f"Get{what}Size", self.handle, ctypes.byref(size))
        self.say(what + " size", code, size.value if "Log" not in what else size.value > 0)
        if code != 0 or not 0 < size.value < 1 << 28:
            return b""
        room = ctypes.create_string_buffer(size.value)
        code = self.call(f"Get{what}", self.handle, room)
        text = re.sub(r"Compile time = [0-9.]+ ms", "Compile time", room.raw.decode(errors="replace"))
        self.say(what, code, text if "Log" in what else hashlib.sha256(room.raw).hexdigest())
        return room.raw

    def all(self):
        for what in ("LinkedCubin", "LinkedPtx", "ErrorLog", "InfoLog", "LinkedCubin"):
            self.output(what)
        return self

    def logs(self):
        self.output("ErrorLog")
        self.output("InfoLog")
        return self

    def destroy(self):
        self.say("destroy", self.call("Destroy", ctypes.byref(self.handle)), self.handle.value)
        return self.said


class Nothing(Link):
    """A link that was not made well: nvJitLink 13.0 crashes when it is used, if it is the first of its process."""

    def call(self, what, *arguments):
        return 4711

    def destroy(self):
        return self.said


def linked(*inputs, options=("-arch=sm_90",), release=""):
    link = Link(*options, release=release)
    for item in inputs:
        link.add(*item) if isinstance(item, tuple) else link.add(item)
    return link.complete().all().destroy()


def make_lto(text, *options):
    nvrtc = ctypes.CDLL(sys.argv[2])
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    array = (ctypes.c_char_p * (2 + len(options)))(b"-arch=compute_90", b"-dlto", *[o.encode() for o in options])
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"lto.cu", 0, None, None)
    if nvrtc.nvrtcCompileProgram(program, len(array), array) != 0:
        sys.exit("NVRTC does not make LTO-IR")
    nvrtc.nvrtcGetLTOIRSize(program, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetLTOIR(program, room)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return room.raw


@case
def version():
    major, minor = ctypes.c_uint(), ctypes.c_uint()
    return [[LIBRARY.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor)), major.value, minor.value]
            for _ in range(2)]


@case
def one_input():
    return [linked(kernel(), release=release) for release in RELEASES]


@case
def names():
    return [linked((kernel(), PTX, name)) for name in (b"a", b"other", b"", None)]


@case
def two_inputs():
    return [linked(kernel("a"), kernel("b")), linked(kernel("b"), kernel("a")),
            linked(CALLS.encode(), GETS.encode()), linked(CALLS.encode())]


@case
def each_option():
    return [[option, linked(kernel(), options=("-arch=sm_90", *option.split()))] for option in
            """-verbose -maxrregcount=16 -O0 -O3 -O7 -ftz=1 -prec-div=0 -prec-sqrt=0 -fma=0 -kernels-used=k
            -variables-used=v -optimize-unused-variables -lto -ptx -g -lineinfo -no-cache -Xptxas=-O1 -Xptxas=-v
            -Xptxas=-g -split-compile=2 -jump-table-density=50 -no-such-option""".split()]


@case
def architectures():
    return [linked(kernel(), options=options) for options in
            (("-arch=sm_75",), ("-arch=sm_90a",), ("-arch=compute_90",), ("-arch=nothing",),
             ("-arch",), ())]


@case
def kinds_of_input():
    link = Link("-arch=sm_90").add(kernel()).complete()
    cubin = link.output("LinkedCubin")
    link.destroy()
    return [linked((cubin, CUBIN)), linked((cubin, ANY)), linked((cubin, PTX)), linked((cubin, OBJECT)),
            linked((cubin, FATBIN)), linked((kernel(), CUBIN)), linked((kernel(), LTOIR)), linked((kernel(), 77)),
            linked((kernel(), ANY)), linked((cubin, CUBIN), kernel("second"))]


@case
def link_time_optimization():
    one = make_lto('extern "C" __device__ int get(); extern "C" __global__ void k(int *a) { *a = get(); }')
    two = make_lto('extern "C" __device__ int get() { return 7; }')
    lined = make_lto('extern "C" __device__ int get() { return 7; }', "-lineinfo")
    return [linked((one, LTOIR), (two, LTOIR), options=("-arch=sm_90", "-lto", *more)) for more in
            ((), ("-ptx",), ("-O0",), ("-ftz=1", "-verbose"), ("-kernels-used=k",))] + \
        [linked((one, LTOIR), (lined, LTOIR), options=("-arch=sm_90", "-lto")), linked((one, LTOIR)),
         linked((one, LTOIR), (GETS.encode(), PTX), options=("-arch=sm_90", "-lto"))]


@case
def what_fails():
    wrong = kernel().replace(b"st.u64", b"st.nothing")
    return [linked(b"nothing"), linked(wrong), linked(kernel(), wrong), linked(wrong, kernel()),
            linked(kernel(), kernel()), linked()]


@case
def orders_of_calls():
    said = [Link("-arch=sm_90").destroy(),
            Link("-arch=sm_90").all().destroy(),
            Link("-arch=sm_90").logs().add(kernel()).logs().complete().all().destroy(),
            Link("-arch=sm_90").add(kernel()).complete().all().add(kernel("more")).complete().all().destroy(),
            Link("-arch=sm_90").add(kernel()).complete().complete().all().all().destroy(),
            Link("-arch=sm_90").add(kernel()).destroy()]
    for first, second in (("", RELEASES[-1]), (RELEASES[-1], "")):
        link = Link("-arch=sm_90", release=first)
        link.release = second
        said.append(link.add(kernel()).complete().all().destroy())
    return said


@case
def files():
    return [Link("-arch=sm_90").add_file("kernel.ptx").complete().all().destroy(),
            Link("-arch=sm_90").add(kernel("first")).add_file("kernel.ptx").complete().all().destroy(),
            Link("-arch=sm_90").add_file("missing.ptx").complete().all().destroy()]


@case
def source_lines():
    text = kernel().replace(b".visible", b'.file 1 "source.py"\n.visible').replace(b"st.u64", b".loc 1 5 3\nst.u64")
    return linked(text)


@case
def odd_arguments():
    size, link = ctypes.c_size_t(7), Link("-arch=sm_90")
    said = [LIBRARY.nvJitLinkAddData(link.handle, PTX, b"", ctypes.c_size_t(0), b"x")]
    link.add(kernel()).complete()
    said.append(LIBRARY.nvJitLinkGetErrorLogSize(link.handle, ctypes.byref(size)))
    return said + link.all().destroy()


@case
def eight_threads():
    results = [None] * 8

    def work(i):
        results[i] = linked(kernel(f"t{i % 3}", i % 3), kernel("same"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def maps():
    """Not a case: what this process has mapped by now."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        return sorted({line.split()[-1] for line in file if "libnvJitLink" in line})


CASES["maps"] = maps
for chosen in sys.argv[3:] or CASES:
    print(json.dumps([chosen, CASES[chosen]()]), flush=True)

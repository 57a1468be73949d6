#!/usr/bin/env python3
"""record.py KILN FAKE_NVRTC FAKE_TOOLKIT FAKE_OPENCL OPENCL_EXAMPLE NVRTC_EXAMPLE: what every door leaves in a recording,
read as docs/reference/formats.md has it: the command, the drop-ins, and programs under kiln exec, which know nothing of kiln."""
import ctypes.util
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, FAKE_NVRTC, FAKE_TOOLKIT, FAKE_OPENCL, OPENCL_EXAMPLE, NVRTC_EXAMPLE = sys.argv[1:7]
LIBEXEC = Path(KILN).parent.parent / "libexec/kiln"
WALK, OPENCL, NVRTC = 1, 2, 3
LINKED, DROPIN, LAYER, COMPILED = 1, 2, 4, 8

OPENCL_CLIENT = r'''
import ctypes, os, sys
cl = ctypes.CDLL("libOpenCL.so.1")
for name in ("clCreateContext", "clCreateProgramWithSource", "clLinkProgram"):
    getattr(cl, name).restype = ctypes.c_void_p
pointer, text = ctypes.c_void_p, ctypes.c_char_p
platform, device, code = pointer(), pointer(), ctypes.c_int()
def good(code):
    assert code == 0, code
good(cl.clGetPlatformIDs(1, ctypes.byref(platform), None))
good(cl.clGetDeviceIDs(platform, ctypes.c_ulong(0xFFFFFFFF), 1, ctypes.byref(device), None))
context = pointer(cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(code)))
def program(source):
    return pointer(cl.clCreateProgramWithSource(context, 1, ctypes.byref(text(source)), None, ctypes.byref(code)))
built = program(b'#include "value.h"\n__kernel void k(__global int *a) { *a = VALUE; }')
good(cl.clBuildProgram(built, 1, ctypes.byref(device), b"-DX=1 -I inc", None, None))
unit, header = program(b'#include "memory.h"\n__kernel void l(__global int *a) { *a = M; }'), program(b"#define M 2\n")
good(cl.clCompileProgram(unit, 1, ctypes.byref(device), b"-DY", 1, ctypes.byref(header), ctypes.byref(text(b"memory.h")),
                         None, None))
linked = cl.clLinkProgram(context, 1, ctypes.byref(device), None, 1, ctypes.byref(unit), None, None, ctypes.byref(code))
good(code.value)
'''


NVRTC_CLIENT = r'''
import ctypes, sys
nvrtc, text = ctypes.CDLL(sys.argv[1]), ctypes.c_char_p
program = ctypes.c_void_p()
source = b'#include "value.h"\n#include "file.h"\n__global__ void k(int *a) { *a = VALUE + FILED; }'
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"k.cu", 1, ctypes.byref(text(b"#define VALUE 71")),
                                ctypes.byref(text(b"value.h"))) == 0
assert nvrtc.nvrtcCompileProgram(program, 2, (text * 2)(b"-arch=sm_90", b"-Iinc")) == 0
hidden = getattr(nvrtc, "__nvrtcCPEx")
hidden.argtypes = [ctypes.c_void_p, text, text, ctypes.c_int] + [ctypes.c_void_p] * 2 + [ctypes.c_int] + [ctypes.c_void_p] * 2
secret = bytes(byte + 1 for byte in b"__global__ void secret() {}")
key, name, words = text(b"#define KEY 7\n"), text(b"key.h"), (0x123456789abcdef0, 0xfedcba9876543210)
assert hidden(ctypes.byref(program), secret, b"encrypted.cu", 1, ctypes.byref(key), ctypes.byref(name), 2,
              (ctypes.c_int * 2)(1, 2), (ctypes.c_uint64 * 2)(*words)) == 0
assert nvrtc.nvrtcCompileProgram(program, 0, None) == 0
'''


PLAIN_CLIENT = r'''
import ctypes, sys
nvrtc, text = ctypes.CDLL(sys.argv[1]), ctypes.c_char_p
for source in sys.argv[2:]:
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
    assert nvrtc.nvrtcCompileProgram(program, 1, (text * 1)(b"-arch=sm_90")) == 0
'''


class Reader:
    """The fields of a file, one after another."""

    def __init__(self, path, kind):
        self.bytes, self.at = path.read_bytes(), 32
        magic, version, what = self.bytes[:8], *struct.unpack_from("<II", self.bytes, 24)
        assert magic == b"\x89KRC\r\n\x1a\n" and version == 1 and what == kind, path

    def number(self, form="I"):
        (value,) = struct.unpack_from("<" + form, self.bytes, self.at)
        self.at += struct.calcsize(form)
        return value

    def raw(self, size):
        self.at += size
        return self.bytes[self.at - size:self.at]

    def string(self):
        length = self.number()
        return None if length == 2**32 - 1 else self.raw(length + 1)[:-1].decode()

    def object(self):
        return self.raw(32).hex(), self.number("Q")

    def list(self, read):
        return [read() for _ in range(self.number())]


def read_program(path):
    r, p = Reader(path, 2), {}
    assert path.name == hashlib.sha256(r.bytes).hexdigest()
    p["door"], p["flags"], p["language"], p["name"], p["folder"] = r.number(), r.number(), r.string(), r.string(), r.string()
    p["texts"] = r.list(lambda: (r.object(), r.string(), r.list(lambda: (r.string(), r.object()))))
    p["defines"] = r.list(lambda: (r.string(), r.string()))
    p["options"], p["dirs"], p["entries"] = (r.list(r.string) for _ in range(3))
    p["link_options"] = r.string()
    p["files"] = r.list(lambda: (r.string(), r.object(), r.number()))
    assert r.at == len(r.bytes)
    return p


class Recording:
    def __init__(self, path):
        self.path = path
        assert (path / "kiln-recording").read_text() == "kiln-recording 1\n"
        for place, _, names in os.walk(path):
            assert os.stat(place).st_mode & 0o777 == 0o700, place
            assert all(os.stat(Path(place, n)).st_mode & 0o777 == 0o600 for n in names), names
        self.programs = []
        for use in path.glob("uses/*/*"):
            r = Reader(use, 3)
            program = r.raw(32).hex()
            p = read_program(path / "programs" / program[:2] / program)
            p["first"], p["ns"], p["target"] = r.number("q"), r.number("Q"), r.string()
            self.programs.append(p)
        for p in self.programs:
            for digest, _ in [t[0] for t in p["texts"]] + [h[1] for t in p["texts"] for h in t[2]] + [f[1] for f in p["files"]]:
                assert (path / "objects" / digest[:2] / digest).exists(), (p, digest)

    def only(self, **wanted):
        found = [p for p in self.programs if all(p[k] == v for k, v in wanted.items())]
        assert len(found) == 1, (wanted, self.programs)
        return found[0]


def named(text):
    data = text.encode()
    return hashlib.sha256(data).hexdigest(), len(data)


def run(root, *command, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update({"KILN_CACHE_DIR": str(root / "cache"), **variables})
    if env.get("KILN_NVRTC_LIBRARY") == FAKE_NVRTC:  # which opens its builtins by name
        env["LD_LIBRARY_PATH"] = os.path.dirname(FAKE_NVRTC)
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=250)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    return done


def check_command(root):
    """cpu, with a header next to the source; found again without another write."""
    (root / "value.h").write_text("#define VALUE 7.0f\n")
    source = ('#include <kiln_kernel.h>\n#include "value.h"\n'
              "KILN_KERNEL(fill, KILN_INOUT(float, y))\n{\n    KILN_ITEMS_X(i)\n    {\n        y[i] = VALUE;\n    }\n}\n")
    (root / "a.c").write_text(source)
    place = root / "walk"
    compile_it = (KILN, "compile", "-t", "cpu:x86-64-v2", "a.c", "-o", "a.o", "-DN=2")
    run(root, *compile_it, KILN_RECORD=str(place))
    p = Recording(place).only(door=WALK)
    assert p["target"] == "cpu:x86-64-v2" and p["language"] == "c" and p["ns"] > 0, p
    assert p["texts"][0][0] == named(source) and p["defines"] == [("N", "2")], p
    assert (str(p["files"][0][0]).endswith("value.h") and p["files"][0][1] == named("#define VALUE 7.0f\n")), p
    before = sorted((f, f.stat().st_mtime_ns) for f in place.rglob("*"))
    run(root, *compile_it, KILN_RECORD=str(place))
    assert before == sorted((f, f.stat().st_mtime_ns) for f in place.rglob("*"))
    run(root, *compile_it)
    run(root, KILN, "exec", "--record", "by-exec", "--", *compile_it)
    assert len(Recording(root / "by-exec").programs) == 1
    run(root, *compile_it, KILN_KEEP_SOURCES="1")
    assert len(Recording(root / "cache/recording").programs) == 1
    run(root, KILN, "verify")
    run(root, KILN, "clear")
    assert len(Recording(root / "cache/recording").programs) == 1
    print("ok: the command, kiln exec --record, KILN_KEEP_SOURCES")


def check_glsl(root):
    source = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"
    (root / "a.comp").write_text(source)
    done = subprocess.run([KILN, "compile", "-t", "vulkan:spirv", "a.comp", "-o", "a.spv"], cwd=root, capture_output=True,
                          env={**os.environ, "KILN_CACHE_DIR": str(root / "cache"), "KILN_RECORD": str(root / "glsl")})
    if done.returncode != 0 and b"shaderc" in done.stderr:
        print("skipped: vulkan: no shaderc")
        return
    p = Recording(root / "glsl").only(door=WALK, target="vulkan:spirv", language="glsl")
    assert p["texts"][0][0] == named(source), p
    print("ok: GLSL")


def check_opencl_replay(root, place):
    """Compiled again by kiln warm, also without its header, under the layer's own keys: the program finds all of it."""
    elsewhere = {"KILN_CACHE_DIR": str(root / "elsewhere"), "POCL_CACHE_DIR": str(root / "pocl")}
    (root / "pocl").mkdir()
    (root / "inc").rename(root / "away")
    told = json.loads(run(root, KILN, "warm", str(place), "--json", **elsewhere).stdout)
    assert (told["compiled"], told["failed"], told["skipped"]) == (3, 0, 0), told
    assert [k["key"] for k in told["kernels"]] == 3 * ["recorded"], told
    (root / "away").rename(root / "inc")
    again = json.loads(run(root, KILN, "warm", str(place), "--json", **elsewhere).stdout)
    assert (again["compiled"], again["there"]) == (0, 3), again
    shutil.rmtree(root / "pocl")
    (root / "pocl").mkdir()
    done = run(root, KILN, "exec", "--stats", "--", sys.executable, "-c", OPENCL_CLIENT, **elsewhere)
    assert "2 hits, 0 compiled, 0 bypassed" in done.stderr, done.stderr  # built; linked, whose unit is not counted
    print("ok: the OpenCL layer's programs, compiled again")


def check_opencl(root):
    if ctypes.util.find_library("OpenCL") is None or "opencl:0" not in run(root, KILN, "devices").stdout:
        print("skipped: opencl: no device")
        return
    (root / "inc").mkdir()
    (root / "inc/value.h").write_text("#define VALUE 3\n")
    place = root / "layer"
    for origin in ("compiled", "found"):
        run(root, KILN, "exec", "--record", str(place), "--", sys.executable, "-c", OPENCL_CLIENT)
        recording = Recording(place)
        built = recording.only(door=OPENCL, flags=LAYER)
        assert built["target"].startswith("opencl:opencl-") and built["texts"][0][1] == "-DX=1 -I inc", built
        assert named("#define VALUE 3\n") in [f[1] for f in built["files"]], built
        assert built["folder"] == os.path.realpath(root), built
        unit = recording.only(door=OPENCL, flags=LAYER | COMPILED | LINKED)
        assert unit["texts"][0][1:] == ("-DY", [("memory.h", named("#define M 2\n"))]), unit
        recording.only(door=OPENCL, flags=LAYER | LINKED)
        assert len(recording.programs) == 3, (origin, recording.programs)
    check_opencl_replay(root, place)
    run(root, OPENCL_EXAMPLE, KILN_RECORD=str(root / "dropin"))
    p = Recording(root / "dropin").only(door=OPENCL, flags=0)
    assert p["texts"][0][1] == "-DFACTOR=3", p
    print("ok: the OpenCL layer and drop-in")


def check_replay(root, place, front):
    """Compiled again by kiln warm, without its header and for one target more, it is what the program finds."""
    elsewhere = {"KILN_CACHE_DIR": str(root / "elsewhere"), "KILN_NVRTC_LIBRARY": FAKE_NVRTC}
    (root / "inc").rename(root / "away")
    told = json.loads(run(root, KILN, "warm", str(place), "--json", "-t", "cuda:sm_80,cuda:sm_90", **elsewhere).stdout)
    assert (told["compiled"], told["failed"], told["skipped"]) == (2, 0, 0), told
    assert [k["key"] for k in told["kernels"] if k["target"] == "cuda:sm_90"] == ["recorded"], told
    (root / "away").rename(root / "inc")
    done = run(root, KILN, "exec", "--stats", "--", sys.executable, "-c", NVRTC_CLIENT, str(front), **elsewhere)
    assert "1 hit, 0 compiled, 1 bypassed" in done.stderr, done.stderr
    print("ok: NVRTC's calls, compiled again")


def check_workers(root):
    """Two versions of NVRTC in one recording: each program gets its own. One that kills its compiler costs itself alone."""
    place, lib = root / "versions", root / "lib"
    lib.mkdir()
    for major, toolkit in (13, FAKE_TOOLKIT), (12, f"{FAKE_TOOLKIT}_next"):
        shutil.copy(f"{toolkit}/lib64/libnvrtc.so.13", lib / f"libnvrtc.so.{major}")
    for builtins in Path(FAKE_TOOLKIT).glob("lib64/libnvrtc-builtins*"):
        shutil.copy(builtins, lib)
    sources = [f"__global__ void k{i}() {{}}" for i in range(3)]
    for major in 12, 13:
        run(root, KILN, "exec", "--record", str(place), "--", sys.executable, "-c", PLAIN_CLIENT, f"libnvrtc.so.{major}",
            *sources, LD_LIBRARY_PATH=str(lib))
    assert len(Recording(place).programs) == 6
    env = {**os.environ, "KILN_CACHE_DIR": str(root / "elsewhere"), "LD_LIBRARY_PATH": str(lib), "TMPDIR": str(root / "tmp"),
           "FAKENVRTC_LOG": str(root / "log")}
    (root / "tmp").mkdir()
    done = subprocess.run([KILN, "warm", str(place), "--json", "-j2"], cwd=root, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**env, "FAKENVRTC_CRASHES": "k1()"})
    told = json.loads(done.stdout)
    assert done.returncode != 0 and (told["compiled"], told["failed"]) == (4, 2), (told, done.stderr)
    assert all("ended without an answer" in k["reason"] for k in told["kernels"] if k["result"] == "failed"), told
    assert [k["key"] for k in told["kernels"] if k["result"] == "compiled"] == 4 * ["recorded"], told
    told = json.loads(subprocess.run([KILN, "warm", str(place), "--json"], cwd=root, stdout=subprocess.PIPE, check=True,
                                     env=env).stdout)
    assert (told["compiled"], told["there"]) == (2, 4) and {k["key"] for k in told["kernels"]} == {"recorded"}, told
    assert len((root / "log").read_text().splitlines()) == 8 and not list((root / "tmp").iterdir())
    for major in 12, 13:
        done = run(root, KILN, "exec", "--stats", "--", sys.executable, "-c", PLAIN_CLIENT, f"libnvrtc.so.{major}", *sources,
                   LD_LIBRARY_PATH=str(lib), KILN_CACHE_DIR=str(root / "elsewhere"))
        assert "3 hits, 0 compiled" in done.stderr, done.stderr
    print("ok: two versions of NVRTC, and a crash, in workers")


def check_driver_workers(root):
    """A driver that crashes with one program costs that program alone: the command goes on, and names it."""
    place, log, good = root / "drivers", root / "started", str(Path(FAKE_OPENCL).parent)
    libexec = root / "libexec"
    libexec.mkdir()
    for file in LIBEXEC.iterdir():
        if file.name != "kiln-replay":
            (libexec / file.name).symlink_to(file)
    worker = libexec / "kiln-replay"
    worker.write_text(f'#!/bin/sh\necho started >>{log}\nexec {LIBEXEC}/kiln-replay "$@"\n')
    worker.chmod(0o755)
    for i in range(4):
        (root / f"k{i}.cl").write_text(f"__kernel void k{i}() {{}}\n")
        for how in (), ("--drop-in",):
            run(root, KILN, "compile", "-t", "opencl:0", f"k{i}.cl", "-o", "k.bin", *how, KILN_RECORD=str(place),
                LD_LIBRARY_PATH=good)
    assert len(Recording(place).programs) == 8
    elsewhere = {"KILN_CACHE_DIR": str(root / "elsewhere"), "LD_LIBRARY_PATH": good, "KILN_LIBEXEC": str(libexec)}
    done = subprocess.run([KILN, "warm", str(place), "--json", "-j1"], cwd=root, text=True, capture_output=True,
                          env={**os.environ, **elsewhere, "FAKECL_DIES_ON": "k1()"})
    told = json.loads(done.stdout)
    assert done.returncode != 0 and (told["compiled"], told["failed"]) == (6, 2), (told, done.stderr)
    failed = [k for k in told["kernels"] if k["result"] == "failed"]
    assert all("ended without an answer" in k["reason"] for k in failed), failed
    assert {k["kernel"] for k in failed} == {"./k1.cl", "(no name)"}, failed
    assert "./k1.cl" in done.stderr and all(k["key"] == "recorded" for k in told["kernels"] if k not in failed), (told, done.stderr)
    assert len(log.read_text().splitlines()) == 3, log.read_text()  # one for the driver, and one more after each crash
    told = json.loads(run(root, KILN, "warm", str(place), "--json", **elsewhere).stdout)
    assert (told["compiled"], told["there"]) == (2, 6), told
    print("ok: a crash of an OpenCL driver, in workers")


def check_nvrtc(root):
    front = LIBEXEC / "nvrtc/13/libnvrtc.so.13"
    place = root / "nvrtc"
    (root / "inc").mkdir()
    (root / "inc/file.h").write_text("#define FILED 1\n")
    for _ in range(2):
        run(root, KILN, "exec", "--record", str(place), "--", sys.executable, "-c", NVRTC_CLIENT, str(front),
            KILN_NVRTC_LIBRARY=FAKE_NVRTC)
        recording = Recording(place)
        assert len(recording.programs) == 1, recording.programs
        p = recording.only(door=NVRTC, target="cuda:sm_90", name="k.cu", flags=0)
        assert p["options"] == ["-arch=sm_90", "-Iinc"] and p["folder"] == os.path.realpath(root), p
        assert p["texts"][0][2] == [("value.h", named("#define VALUE 71"))], p
        assert [f[:2] for f in p["files"]] == [("inc/file.h", named("#define FILED 1\n"))], p
        assert len(list(place.glob("objects/*/*"))) == 3
    check_replay(root, place, front)
    run(root, NVRTC_EXAMPLE, KILN_RECORD=str(root / "nvrtc-dropin"), CUDA_PATH=FAKE_TOOLKIT)
    p = Recording(root / "nvrtc-dropin").only(door=WALK, flags=DROPIN, target="cuda:sm_90")
    assert p["options"] == ["-DUNUSED=1"] and p["texts"][0][2][0][0] == "factor.h", p
    print("ok: kiln's NVRTC and the CUDA drop-in")


def check_real_nvrtc(root):
    """A toolkit's own headers, and one in a file."""
    toolkit = next((p for p in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")
                    if p and list(Path(p).glob("lib64/libnvrtc.so.13"))), None)
    if toolkit is None:
        print("skipped: cuda: no libnvrtc.so.13 (install a CUDA toolkit, or set CUDA_PATH)")
        return
    text = '#include <cuda_fp16.h>\n#include "mine.h"\n__global__ void k(__half *a) { *a = MINE; }\n'
    (root / "mine.h").write_text("#define MINE __half(1.0f)\n")
    (root / "k.cu").write_text(text)
    run(root, KILN, "compile", "-t", "cuda:sm_90", "./k.cu", "-o", "k.cubin", KILN_RECORD=str(root / "real"), CUDA_PATH=toolkit)
    p = Recording(root / "real").only(door=WALK, target="cuda:sm_90")
    assert p["texts"][0][0] == named(text) and len(p["files"]) > 5, p
    assert {named("#define MINE __half(1.0f)\n")} <= {f[1] for f in p["files"]}, p
    assert any(f[2] for f in p["files"]) and any(not f[2] for f in p["files"]), p
    print(f"ok: NVRTC with {len(p['files'])} headers")


def check_hip(root):
    """CUDA C++ recorded for one GPU of AMD's, compiled for another one elsewhere."""
    if ctypes.util.find_library("amdhip64") is None:
        print("skipped: hip: no libamdhip64 (install libamdhip64-5)")
        return
    there, place = root / "there", root / "hip"
    there.mkdir()
    (there / "mine.h").write_text("#define MINE 2.0f\n")
    (there / "k.cu").write_text('#include "mine.h"\nextern "C" __global__ void k(float *a) { a[threadIdx.x] *= MINE; }\n')
    compiled = ("compile", "--json", "-I", ".", "k.cu", "-t")
    run(there, KILN, *compiled, "hip:gfx90a", KILN_RECORD=str(place))
    Recording(place).only(door=WALK, target="hip:gfx90a")
    told = json.loads(run(root, KILN, "warm", str(place), "--json", "-t", "hip:gfx1030", "--pack", "k.kpack",
                          KILN_CACHE_DIR=str(root / "another")).stdout)
    assert (told["compiled"], told["failed"], told["skipped"]) == (1, 0, 0), told
    told = json.loads(run(there, KILN, *compiled, "hip:gfx1030", KILN_PACKS=str(root / "k.kpack"),
                          KILN_CACHE_DIR=str(root / "empty")).stdout)
    assert (told["hits"], told["compiled"]) == (1, 0), told
    print("ok: CUDA C++ for two of AMD's GPUs")


def main():
    for check in (check_command, check_glsl, check_opencl, check_nvrtc, check_workers, check_driver_workers, check_real_nvrtc,
                  check_hip):
        with tempfile.TemporaryDirectory() as root:
            check(Path(root))


main()

"""The compilers, each behind the ways by which kiln serves it, and by itself. A compiler draws options and variables,
and answers for a world: once through the cache that all cases share, once without a cache."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NVRTC_", "NV_", "LD_PRELOAD"))}
CLEAN.update(LC_ALL="C.UTF-8", KILN_NO_INSTALL="1", KILN_KEEP_SOURCES="1")

RECORDER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void note(const char *name)
{
    extern char **environ;
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (strncmp(*at, "GETENV_LOG=", 11) == 0) {
            int file = open(*at + 11, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
            if (file >= 0 && write(file, name, strlen(name)) > 0 && write(file, "\n", 1) > 0) { }
            if (file >= 0) close(file);
        }
    }
}
char *getenv(const char *name)
{
    char *(*real)(const char *) = (char *(*)(const char *))dlsym(RTLD_NEXT, "getenv");
    note(name);
    return real(name);
}
char *secure_getenv(const char *name)
{
    char *(*real)(const char *) = (char *(*)(const char *))dlsym(RTLD_NEXT, "secure_getenv");
    note(name);
    return real(name);
}
"""
#: Variables of the C library, the shell and this test, which change no compile or would end the test.
NOT_VARIED = ("LD_", "GETENV_LOG", "KILN_", "HOME", "PATH", "TMP", "TEMP", "LOCPATH", "MALLOC_", "GCONV_", "PYTHON", "POSIXLY", "DEBUGINFOD", "OPENSSL", "__PYVENV")


class Absent(Exception):
    """The compiler is not here."""


def find_library(stem, *majors):
    for base in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        for below in ("lib64", "lib", "targets/x86_64-linux/lib"):
            for major in majors:
                path = f"{base}/{below}/{stem}.so.{major}"
                if base and os.path.exists(path):
                    return os.path.realpath(path)
    raise Absent(f"no {stem}")


def read_variables(command, folder, env):
    """The variables for which a compile asks the C library, by a preloaded recorder."""
    source, library, log = folder / "getenv.c", folder / "getenv.so", folder / "getenv.log"
    source.write_text(RECORDER)
    made = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], capture_output=True, check=False)
    if made.returncode != 0:
        return []
    subprocess.run(command, env={**env, "LD_PRELOAD": str(library), "GETENV_LOG": str(log)}, capture_output=True, check=False,
                   timeout=120, cwd=folder)
    names = log.read_text().split() if log.exists() else []
    return sorted({name for name in names if re.fullmatch(r"\w+", name) and not name.startswith(NOT_VARIED)})


class Compiler:
    """What all have in common. `language` and `suffix` are of its sources."""
    language, suffix, known_variables, known_options = "c", ".c", (), ()
    logs = True  # whether logs are compared

    def __init__(self, kiln, libexec, folder):
        self.kiln, self.libexec, self.folder = kiln, os.path.abspath(libexec), Path(folder)
        self.cache = self.folder / "cache"
        self.options, self.read_variables = [], []
        self.hits = self.stored = self.bypassed = 0

    def close(self):
        pass

    def value(self, world, name):
        draw = world.draw
        return draw.choice(("1", "", "0", str(world.root / "two"), str(world.root / "one/a.h"), "two", f"{world.root}/one:{world.root}/two",
                            f"-DFROM_VARIABLE={draw.randint(5, 9)}", f"-I{world.root}/two", "all", "/dev/null"))

    def change_variable(self, world):
        if world.variables and world.draw.random() < 0.75:
            name = world.draw.choice(sorted(world.variables))
            del world.variables[name]
            return f"unset {name}"
        pool = list(self.known_variables) * 3 + self.read_variables
        name = world.draw.choice(pool or ["UNUSED"])
        world.variables[name] = self.value(world, name)
        return f"{name}={world.variables[name]}"

    def change_options(self, world):
        self.draw_options(world)
        return f"options {self.options}"

    def fill(self, world, text):
        draw = world.draw
        place = draw.choice(("one", "two", "two/sub", "link", "one/../two", "missing"))
        directory = draw.choice((f"{world.root}/{place}",) * 3 + (place, f"./{place}"))
        return text.format(dir=directory, file=f"{world.root}/{draw.choice(('one', 'two'))}/{draw.choice(('a.h', 'b.h', 'c.h'))}", n=draw.randint(1, 4),
                           response=f"{world.root}/response.txt", name=draw.choice(("a.h", "val.h", "b.h")))

    def draw_options(self, world):
        """Two directories as a rule, in a usual spelling or another, and some others."""
        draw, self.options = world.draw, []
        for _ in range(draw.choice((1, 2, 2, 3))):
            usual = draw.random() < 0.93
            self.options += [self.fill(world, part) for part in draw.choice(self.usual_directories if usual else self.directories)]
        for _ in range(draw.choice((0, 1, 1, 2))):
            usual = draw.random() < 0.8
            self.options += [self.fill(world, part) for part in draw.choice(self.usual_options if usual else self.known_options)]

    def changes(self, world):
        return [lambda: self.change_options(world)] * 2 + [lambda: self.change_variable(world)] * 2

    def count(self, origins):
        for origin in origins:
            self.hits += origin in ("disk", "memory", "remote", "pack", "shared")
            self.stored += origin == "compiled"
            self.bypassed += origin == "bypassed"

    def environment(self, world):
        return {**CLEAN, **world.variables}


# --- NVRTC and hipRTC in the process of a program -------------------------------------------------


class Worker:
    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else [{"died": "the worker"}]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Program(Compiler):
    """A program that calls the library, under `kiln exec`."""
    prefix, arch, whole_name = "nvrtc", (), ""

    def start(self, path, front=None, **variables):
        """`front` is kiln's library, where `kiln exec` serves programs that are linked with it alone."""
        self.path, self.front = path, front or os.path.basename(path)
        self.report = self.folder / "report"
        env = {**CLEAN, **variables}
        self.plain = Worker([sys.executable, HERE / "worker.py"], env)
        self.served = Worker([self.kiln, "exec", "--no-python", "--", sys.executable, HERE / "worker.py"],
                             {**env, "KILN_CACHE_DIR": str(self.cache), "KILN_LIBEXEC": self.libexec, "KILN_EXEC_REPORT": str(self.report)})
        request = self.folder / "request.json"
        request.write_text(json.dumps({"library": path, "prefix": self.prefix, "steps": [
            self.first_step()]}))
        self.read_variables = read_variables(["sh", "-c", f"{sys.executable} {HERE}/worker.py < {request}"], self.folder, env)

    def first_step(self):
        return {"text": "__global__ void k() { }", "name": "k.cu", "options": list(self.arch[0]), "env": {}, "cwd": str(self.folder)}

    def close(self):
        self.plain.close()
        self.served.close()

    def draw_options(self, world):
        super().draw_options(world)
        self.options += world.draw.choice(self.arch)
        if world.draw.random() < 0.2:
            world.draw.shuffle(self.options)

    def step(self, world):
        headers = {}
        if "V_c" in world.source and len(world.source) % 3 == 0:
            headers = {"c.h": "#define V_c 4\n"}
        name = None if len(world.source) % 11 == 0 else world.name
        return {"text": world.source, "name": name, "headers": headers, "options": self.options, "env": dict(world.variables),
                "cwd": str(world.root / world.cwd), "rounding": world.rounding, "expressions": ["k"] if len(world.source) % 5 == 0 else []}

    def ask(self, worker, steps, library):
        said = worker.ask({"library": library, "prefix": self.prefix, "steps": steps})
        if not self.logs:
            for one in said:
                one.pop("log", None)
        return said

    def alone(self, steps):
        return self.ask(self.plain, steps, self.path)

    def through(self, steps):
        self.report.write_text("")
        said = self.ask(self.served, steps, self.front)
        self.count(line.split("\t")[1] for line in self.report.read_text().splitlines())
        return said


class Nvrtc(Program):
    language, suffix, prefix = "cuda", ".cu", "nvrtc"
    arch = (["--gpu-architecture=compute_90"],) * 3 + (["-arch=sm_90"], ["-arch", "sm_80"], [], ["-arch=compute_100", "-dlto"])
    known_variables = ("NVRTC_PREPEND_FLAGS", "NVRTC_APPEND_FLAGS", "NV_NVVM_VERSION", "CUDA_PATH", "CUDA_HOME", "CPATH",
                       "SOURCE_DATE_EPOCH", "EDG_BASE")
    usual_directories = (["-I{dir}"], ["-I", "{dir}"], ["--include-path={dir}"], ["--include-path", "{dir}"])
    directories = (["-I {dir}"], ["-I{dir} "], ["-I", " {dir}"], ["-I", "{dir} "], ["-I={dir}"], ["-I\t{dir}"], ["--include-path={dir} "],
                   ["-include-path={dir}"], [" -I{dir}"], ["-I\"{dir}\""], ["-isystem", "{dir}"], ["-I{dir}/"], ["-I", ""], ["-I"],
                   ["--include-path={dir},{dir}"], ["-I{dir},{dir}"])
    usual_options = (["-DFROM_OPTION={n}"], ["-DGIVEN=\"{name}\""], ["-DGIVEN=<{name}>"], ["-w"], ["-lineinfo"], ["--std=c++17"], ["-DV_a={n}"])
    known_options = (["-DFROM_OPTION={n}"], ["-D", "FROM_OPTION={n}"], ["--define-macro=FROM_OPTION={n}"], ["-DGIVEN=\"{name}\""],
                     ["-DGIVEN=<{name}>"], ["-UFROM_OPTION"], ["-include", "{file}"], ["-include={file}"], ["--pre-include={file}"],
                     ["-preinclude={file}"], ["--use_fast_math"], ["-fmad=false"], ["-lineinfo"], ["-G"], ["-restrict"], ["-w"],
                     ["--std=c++17"], ["-no-source-include"], ["-optf", "{response}"], ["--options-file={response}"], ["@{response}"],
                     ["-D FROM_OPTION={n}"], ["-DFROM_OPTION={n} "], ["-DJ=x"], ["-DV_a={n}"], ["-D__FILE__=x"], ["-DFROM_OPTION=__LINE__"],
                     ["-DFROM_OPTION=__has_include"], ["--minimal"], ["-default-device"], ["-Xptxas", "-O{n}"], ["-DS_(x)=#x"], ["-Dinclude=include"])

    def start(self):
        super().start(find_library("libnvrtc", 13, 12))


class Hiprtc(Program):
    language, suffix, prefix, logs = "hip", ".hip", "hiprtc", False
    arch = (["--offload-arch=gfx90a"],) * 4 + (["--offload-arch=gfx1030"], ["--gpu-architecture=gfx90a"])
    known_variables = ("ROCM_PATH", "HIP_PATH", "HIPRTC_COMPILE_OPTIONS_APPEND", "HIP_DEVICE_LIB_PATH", "CPATH", "C_INCLUDE_PATH",
                       "AMD_COMGR_SAVE_TEMPS", "LLVM_PATH")
    usual_directories = (["-I{dir}"], ["-I", "{dir}"])
    directories = (["-I {dir}"], ["-I{dir} "], ["-I", " {dir}"], ["-isystem", "{dir}"], ["-iquote", "{dir}"], ["-I={dir}"], ["-idirafter{dir}"])
    usual_options = (["-DFROM_OPTION={n}"], ["-DGIVEN=\"{name}\""], ["-DGIVEN=<{name}>"], ["-O1"], ["-g"], ["-DV_a={n}"])
    known_options = (["-D", "FROM_OPTION={n}"], ["-include", "{file}"],
                     ["-include{file}"], ["-imacros", "{file}"], ["-O1"], ["-ffast-math"], ["-g"], ["-std=c++17"], ["@{response}"], ["-w"],
                     ["-Wp,-include,{file}"], ["-DV_a={n}"])

    def start(self):
        path = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"
        if not os.path.exists(path):
            raise Absent("no hipRTC in libamdhip64.so.5")
        super().start(path, f"{self.libexec}/hip/5/libkiln-hiprtc.so.5", KILN_HIP_LIBRARY=path)


# --- kiln compile and kiln run --------------------------------------------------------------------


class Command(Compiler):
    """`kiln compile`, with the cache of all cases or with a new one."""
    target, more, variables = "cpu:x86-64-v2", (), {}

    def start(self):
        text = {"c": "#include <kiln_kernel.h>\nKILN_KERNEL(k, KILN_INOUT(int, x))\n{\n KILN_ITEMS_X(i)\n {\n  x[i] = 1;\n }\n}\n",
                "opencl-c": "__kernel void k(__global int *x) { x[0] = 1; }\n"}
        (self.folder / f"k{self.suffix}").write_text(text.get(self.language, ""))
        command = [self.kiln, "compile", "--no-cache", "-t", self.target, f"k{self.suffix}", "-o", "out"]
        self.read_variables = read_variables(command, self.folder, {**CLEAN, **self.variables})
        self.known_variables = [v for v in self.known_variables if v not in self.variables]

    def path_of(self, world):
        """Where the source is, spelt like the world's name."""
        name = os.path.splitext(world.name)[0] + self.suffix
        (world.root / world.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        return name

    def step(self, world):
        name = self.path_of(world)
        at = world.root / world.cwd
        return {"name": name, "at": str(at), "text": world.source, "options": self.options,
                "env": {**self.environment(world), **self.variables}}

    def command(self, step, cache):
        words = [self.kiln, "compile", "--json", "--cache-dir", str(cache), "-t", self.target, step["name"], "-o", str(self.folder / "out")]
        return words + step["options"] + list(self.more)

    def run(self, step, cache):
        path = Path(step["at"]) / step["name"]
        if not path.exists() or path.read_text() != step["text"]:
            path.write_text(step["text"])
        out = self.folder / "out"
        out.unlink(missing_ok=True)
        done = subprocess.run(self.command(step, cache), env=step["env"], cwd=step["at"], capture_output=True, text=True, check=False,
                              timeout=300, stdin=subprocess.DEVNULL)
        return done, out.read_bytes() if out.exists() else b""

    def result(self, done, made):
        """What is compared."""
        return ["good" if done.returncode == 0 else "failed", made.hex() if len(made) < 200 else hash_of(made)]

    def alone(self, steps):
        with tempfile.TemporaryDirectory(dir=self.folder) as cache:
            return [self.result(*self.run(step, cache)) for step in steps]

    def through(self, steps):
        said = []
        for step in steps:
            done, made = self.run(step, self.cache)
            past = " bypasses the cache: " in done.stderr
            self.count(["bypassed"] if past else re.findall(r'"origin": "(\w+)"', done.stdout))
            said.append(self.result(done, made))
        return said


def hash_of(data):
    import hashlib
    return hashlib.sha256(data).hexdigest()


C_DIRECTORIES = (["-X", "-iquote", "-X", "{dir}"], ["-X", "-isystem", "-X", "{dir}"], ["-X", "-I{dir}"], ["-X", "-idirafter", "-X", "{dir}"], ["-I", "{dir}/"],
                 ["-I", "{dir} "], ["-I", ""], ["-X", "-isystem{dir}"])
C_OPTIONS = (["-DFROM_OPTION={n}"], ["-DGIVEN=\"{name}\""], ["-DGIVEN=<{name}>"], ["-X", "-include", "-X", "{file}"], ["-X", "-include{file}"],
             ["-X", "-imacros", "-X", "{file}"], ["-X", "-Wp,-include,{file}"], ["-X", "@{response}"], ["-X", "-O1"], ["-X", "-g"],
             ["-X", "-ffast-math"], ["-X", "-frounding-math"], ["-X", "-std=gnu11"], ["-X", "-std=c11"], ["-X", "-trigraphs"], ["-DV_a={n}"],
             ["-X", "-DFROM_OPTION={n}"], ["-X", "-UFROM_OPTION"], ["-X", "-D", "-X", "FROM_OPTION={n}"], ["-X", "-nostdinc"], ["-X", "-undef"],
             ["-X", "-fdirectives-only"], ["-X", "-traditional-cpp"], ["-X", "-fmacro-prefix-map={dir}=x"], ["-X", "-B{dir}"])


class C(Command):
    usual_directories = (["-I", "{dir}"],)
    usual_options = (["-DFROM_OPTION={n}"], ["-DGIVEN=\"{name}\""], ["-DGIVEN=<{name}>"], ["-X", "-O1"], ["-X", "-g"], ["-DV_a={n}"])
    directories, known_options = C_DIRECTORIES, C_OPTIONS
    known_variables = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH",
                       "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "LD_RUN_PATH", "CCC_OVERRIDE_OPTIONS", "GCC_COMPARE_DEBUG", "TMPDIR",
                       "COLLECT_NO_DEMANGLE", "LANG", "PWD")

    def start(self):
        if shutil.which(self.command_name) is None:
            raise Absent(f"no {self.command_name}")
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.variables = {"KILN_CC": self.command_name}
        super().start()

    def environment(self, world):
        return {**super().environment(world), "PATH": f"{world.root}/bin:{CLEAN['PATH']}"}

    def change_wrapper(self, world):
        """What stands before the compiler, or next to it."""
        folder, draw = world.root / "bin", world.draw
        folder.mkdir(exist_ok=True)
        name = draw.choice((self.command_name, self.command_name, "as", "ld"))
        path, real = folder / name, shutil.which(name)
        way = draw.choice(("none", "link", "script", "script", "script of a script", "script with a file"))
        path.unlink(missing_ok=True)
        flags = f" -DFROM_OPTION={draw.randint(5, 9)}" if name == self.command_name else ""
        if way == "link":
            path.symlink_to(real)
        elif way != "none":
            inner = folder / f"{name}-inner"
            inner.write_text(f"#!/bin/sh\nexec {real} \"$@\"{flags}\n")
            inner.chmod(0o755)
            (folder / "flags").write_text(flags)
            text = {"script": f"exec {real} \"$@\"{flags}", "script of a script": f"exec {inner} \"$@\"",
                    "script with a file": f"exec {real} \"$@\" $(cat {folder}/flags)"}[way]
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        return f"{path}: {way}{flags}"

    def changes(self, world):
        return super().changes(world) + [lambda: self.change_wrapper(world)]


class Gcc(C):
    command_name = "gcc"


class Clang(C):
    command_name = "clang"


class NvrtcCommand(Command):
    """NVRTC through kiln's runtime."""
    language, suffix, target = "cuda", ".cu", "cuda:compute_90"
    known_variables = Nvrtc.known_variables
    usual_directories = (["-I", "{dir}"],)
    directories = tuple([part for word in spelling for part in ("-X", word)] for spelling in Nvrtc.directories) + (["-I", "{dir} "],)
    usual_options = (["-DFROM_OPTION={n}"], ["-DGIVEN=\"{name}\""], ["-DGIVEN=<{name}>"], ["-X", "-w"], ["-X", "-lineinfo"], ["-DV_a={n}"])
    known_options = tuple([part for word in option for part in ("-X", word)] for option in Nvrtc.known_options)

    def start(self):
        find_library("libnvrtc", 13, 12)
        super().start()


class NvrtcDropin(NvrtcCommand):
    """NVRTC through the function that programs call in its place."""
    more = ("--drop-in",)


class Shaderc(Command):
    language, suffix, target = "glsl", ".comp", "vulkan:spirv"
    usual_directories = directories = (["-I", "{dir}"], ["-I", "{dir}/"])
    usual_options = known_options = (["-DFROM_OPTION={n}"], ["-O0"], ["-Os"], ["-g"], ["-w"], ["--target-env=vulkan1.2"], ["-DV_a={n}"])
    known_variables = ("CPATH",)

    def result(self, done, made):
        if done.returncode == 3:
            raise Absent("no shaderc")
        return super().result(done, made)


class Jitlink(Program):
    """nvJitLink: kernels in PTX whose constant changes, and options in which the order may count."""
    language, suffix, prefix = "cuda", ".ptx", "nvJitLink"
    known_variables = ("NV_NVVM_VERSION", "DUMP_KNOBS_TO_FILE", "CAN_FINALIZE_DEBUG", "LIBNVVM_DISABLE_CONCURRENT_API", "AS_SECURE_LOG_FILE")
    arguments = ("-O1", "-O3", "-lineinfo", "-g", "-maxrregcount=32", "-ftz=1", "-fma=0", "-verbose", "-Xptxas=-v", "-Xptxas=-O1", "-no-cache",
                 "-kernels-used=k0", "-Xptxas=--options-file", "-time", "-split-compile=2", " -O1", "-O1 ", "-optimize-unused-variables")

    def start(self):
        path = find_library("libnvJitLink", 13, 12)
        major = re.search(r"\.so\.(\d+)", path).group(1)
        super().start(path, f"{self.libexec}/nvjitlink/{major}/libnvJitLink.so.{major}", KILN_NVJITLINK_LIBRARY=path)

    def first_step(self):
        return {"options": ["-arch=sm_90"], "inputs": [[2, self.text(0, 1), "a"]], "env": {}, "cwd": str(self.folder)}

    def text(self, number, value):
        return (f".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k{number}(.param .u64 a)\n{{\n.reg .u64 %r<3>;\n"
                f"ld.param.u64 %r1, [a];\nst.u64 [%r1], {value};\nret;\n}}\n")

    def draw_options(self, world):
        draw = world.draw
        self.options = [draw.choice(("-arch=sm_90", "-arch=sm_80"))] + draw.sample(self.arguments, draw.choice((0, 1, 1, 2)))
        draw.shuffle(self.options)

    def step(self, world):
        inputs = [[2, self.text(number, len(world.source) + number), world.name] for number in range(1 + len(world.source) % 3)]
        return {"options": self.options, "inputs": inputs, "env": dict(world.variables), "cwd": str(world.root / world.cwd),
                "rounding": world.rounding}

    def ask(self, worker, steps, library):
        said = super().ask(worker, steps, library)
        for one in said:
            if "-time" in self.options or any("-v" in option for option in self.options):
                one.pop("InfoLog", None)  # it has times
        return said


class Pocl(Command):
    """PoCL's binaries hold names of temporary files: what a launch computes is compared."""
    language, suffix, target = "opencl-c", ".cl", "opencl:0"
    usual_directories = (["-I", "{dir}"],)
    directories = (["-I", "{dir}/"], ["-X", "-I{dir}"], ["-X", "-I {dir}"], ["-I", "{dir} "])
    usual_options = (["-DFROM_OPTION={n}"], ["-DGIVEN=\"{name}\""], ["-DGIVEN=<{name}>"], ["-DV_a={n}"], ["-X", "-cl-fast-relaxed-math"])
    known_options = (["-X", "-include {file}"], ["-X", "-cl-opt-disable"], ["-X", "-DFROM_OPTION={n}"], ["-X", "-cl-std=CL1.2"])
    known_variables = ("POCL_EXTRA_BUILD_FLAGS", "POCL_WORK_GROUP_METHOD", "CPATH", "C_INCLUDE_PATH", "POCL_VECTORIZER_PREFER_VECTOR_WIDTH")

    def start(self):
        devices = subprocess.run([self.kiln, "devices", "-b", "opencl"], env=CLEAN, capture_output=True, text=True, check=False)
        if "opencl:0" not in devices.stdout:
            raise Absent("no PoCL")
        self.variables = {"POCL_KERNEL_CACHE": "0"}
        self.known_variables = list(self.known_variables)

    def command(self, step, cache):
        return [self.kiln, "run", step["name"], "--json", "-b", "opencl", "--strict", "--cache-dir", str(cache), "--entry", "k", "-g", "1", "-n", "1",
                "--arg", "out:i32:8", "--save", f"0={self.folder}/out"] + step["options"]


class Ptxas(Command):
    """ptxas behind kiln's, with its output, its messages and its status."""
    language, suffix = "cuda", ".ptx"
    known_variables = ("DUMP_KNOBS_TO_FILE", "CAN_FINALIZE_DEBUG", "CUDA_PATH", "TMPDIR")
    arguments = ("-arch=sm_90", "--gpu-name=sm_80", "-v", "-O1", "-O3", "-lineinfo", "-g", "--warn-on-spills", "-maxrregcount=32", "-w",
                 "--opt-level=2", "-optf {response}", "--fmad false", "-c", "-dlcm=cg", "-warn-double-usage", "--split-compile=2")

    def start(self):
        self.real = next((f"{base}/bin/ptxas" for base in (os.environ.get("CUDA_PATH"), "/usr/local/cuda") if base and os.path.exists(f"{base}/bin/ptxas")), None)
        if self.real is None:
            raise Absent("no ptxas")
        self.report, self.served = self.folder / "report", f"{self.libexec}/ptxas/ptxas"
        (self.folder / "k.ptx").write_text(self.text(1, "k.cu"))
        self.read_variables = read_variables([self.real, "k.ptx", "-o", "out"], self.folder, CLEAN)

    def text(self, value, name):
        return (f".version 8.0\n.target sm_75\n.address_size 64\n.file 1 \"{name}\"\n.visible .entry k(.param .u64 a)\n{{\n.reg .u64 %r<4>;\n"
                f".reg .f64 %d<3>;\n.loc 1 1 1\nld.param.u64 %r1, [a];\nld.f64 %d1, [%r1];\nadd.f64 %d1, %d1, 0d{value:016X};\nst.f64 [%r1], %d1;\nret;\n}}\n")

    def draw_options(self, world):
        draw = world.draw
        chosen = [draw.choice(self.arguments).format(response=world.root / "response.txt") for _ in range(draw.randint(0, 3))]
        self.options = [word for argument in chosen for word in argument.split()]

    def step(self, world):
        # Its time is in the table of lines: a header of the tree stands for the source.
        names = [path for path in world.headers() if path.exists()]
        named = str(names[len(world.source) % len(names)]) if names else "none.h"
        (world.root / "response.txt").write_text(f"-maxrregcount={world.number % 64 + 32}\n")
        return {"name": "k.ptx", "at": str(world.root / world.cwd), "text": self.text(len(world.source), named), "options": self.options,
                "env": {**CLEAN, **world.variables, "KILN_PTXAS": self.real, "KILN_EXEC_REPORT": str(self.report)}}

    def play(self, program, step, cache):
        step = {**step, "env": {**step["env"], "KILN_CACHE_DIR": str(cache), "KILN_LIBEXEC": self.libexec}}
        self.command = lambda step, cache: [program, step["name"], "-o", str(self.folder / "out")] + step["options"]
        done, made = self.run(step, cache)
        times = re.sub(r"Compile time = [0-9.]+ ms", "", done.stdout + done.stderr)
        return ["good" if done.returncode == 0 else f"failed {done.returncode}", hash_of(made), times]

    def alone(self, steps):
        return [self.play(self.real, step, self.cache) for step in steps]

    def through(self, steps):
        self.report.write_text("")
        said = [self.play(self.served, step, self.cache) for step in steps]
        self.count(line.split("\t")[1] for line in self.report.read_text().splitlines())
        return said


COMPILERS = {"nvrtc": Nvrtc, "nvrtc-runtime": NvrtcCommand, "nvrtc-dropin": NvrtcDropin, "gcc": Gcc, "clang": Clang, "hiprtc": Hiprtc,
             "shaderc": Shaderc,
             "pocl": Pocl, "ptxas": Ptxas, "nvjitlink": Jitlink}

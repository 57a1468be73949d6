#!/usr/bin/env python3
"""installed_exec.py KILN PARTS [CASE...]: an installed kiln, by its command KILN, under programs that know nothing of it, one
for each compiler that `kiln exec` stands under. Each runs until it should hit, and the report says whether it
did. Then the same beside a second installation, and with one that is broken. PARTS has the programs.

installed_exec.py --collect BUILD PARTS: gathers those programs from a build with tests."""
import ctypes.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NVRTC = """
import ctypes, hashlib, sys
nvrtc = ctypes.CDLL("libnvrtc.so." + (sys.argv[1:] or ["13"])[0])
for n in range(3):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = b"__global__ void k(int *a) { *a = %d; }" % n
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_90")
    codes = [nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None),
             nvrtc.nvrtcCompileProgram(program, 1, options),
             nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))]
    ptx = ctypes.create_string_buffer(size.value)
    codes += [nvrtc.nvrtcGetPTX(program, ptx), nvrtc.nvrtcDestroyProgram(ctypes.byref(program))]
    print(codes, hashlib.sha256(ptx.raw).hexdigest())
"""
PTX = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
PTXAS = "ptxas k.ptx -arch=sm_90 -o {0} && cat {0}"
TRITON = '"${{TRITON_PTXAS_PATH:-ptxas}}" k.ptx -arch=sm_90 -o {0} && cat {0}'
SHADER = """#version 450
layout(constant_id = 0) const uint offset = 1;
layout(binding = 0) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x] += offset; }
"""

def collect(build, parts):
    """What the target kiln_installed_parts made in the build, and a shader, which needs a kiln with shaderc."""
    for name in ("nvrtc", "bin"):
        (parts / name).mkdir(parents=True, exist_ok=True)
    toolkit = build / "tests/support/fakecuda/toolkit_inert/lib64"
    for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0"):
        shutil.copy(toolkit / name, parts / "nvrtc")
    shutil.copy(build / "tests/interpose/kiln_fake_ptxas", parts / "bin/ptxas")
    for found in (*build.glob("tests/layers/*_client"), *build.glob("tests/support/fakeicd/libkiln_fakeicd.so")):
        shutil.copy(found, parts)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "code.comp").write_text(SHADER)
        subprocess.run([build / "programs/kiln/kiln", "compile", "-t", "vulkan:spirv", "code.comp", "-o",
                        parts / "code.spv"], cwd=folder, env={**os.environ, "KILN_CACHE_DIR": f"{folder}/cache"},
                       stdout=subprocess.DEVNULL, check=False)


class World:
    def __init__(self, kiln, parts, root):
        self.kiln, self.parts, self.root = str(kiln), parts, Path(root)
        self.runs = 0
        (self.root / "k.ptx").write_text(PTX)
        (self.root / "include").mkdir()
        (self.root / "include/offset.h").write_text("#define OFFSET 5\n")

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("KILN_", "OPENCL_", "POCL_", "VK_", "FAKE", "TRITON_", "CUDA", "NVRTC_"))}
        env.update(KILN_CACHE_DIR=str(self.root / "cache"), LD_LIBRARY_PATH=self.library_path(),
                   PATH=f"{self.parts}/bin:{env['PATH']}", HOME=str(self.root),
                   FAKEPTXAS_LOG=str(self.root / "log"), FAKENVRTC_LOG=str(self.root / "log"))
        return {**env, **{k: str(v) for k, v in more.items()}}

    def library_path(self, *first):
        mine = [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
        return ":".join([*map(str, first), str(self.parts / "nvrtc"), *mine])

    def run(self, *command, **more):
        (self.root / "log").write_text("")
        done = subprocess.run([str(word) for word in command], cwd=self.root, env=self.environment(**more),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300,
                              check=False)
        assert done.returncode == 0, (command, more, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done

    def asked(self):
        """Compiles that the fake compilers were asked for in the last run."""
        return len((self.root / "log").read_text().splitlines())

    def exec(self, *command, **more):
        """What the program printed, and the report of kiln exec."""
        self.runs += 1
        report = self.root / f"report{self.runs}.json"
        done = self.run(self.kiln, "exec", "--report", report, "--", *command, **more)
        assert "kiln" not in done.stderr, done.stderr
        return done.stdout, json.loads(report.read_text())

    def libexec(self):
        text = self.run(self.kiln, "exec", "--print").stdout
        paths = [Path(line.split("'")[1]) for line in text.splitlines() if "TRITON_PTXAS_PATH=" in line]
        assert len(paths) == 1, text
        return paths[0].parent.parent

    def copy_libexec(self, name):
        """A second installation, of files where the first one has links: as wheels are unpacked."""
        return Path(shutil.copytree(self.libexec(), self.root / name, dirs_exist_ok=True))


def counts(report):
    return report["hits"], report["compiled"], report["bypassed"], report["failed"]


def under(world, name, command, expected, **more):
    """As without kiln, cold and warm; the second run asks no compiler."""
    plain = world.run(*command, **more).stdout
    asked = world.asked()
    for start in range(2):
        text, report = world.exec(*command, **more)
        assert text == plain, (name, start, plain, text)
        found = counts(report)
        assert found == ((expected, 0, 0, 0) if start else (0, expected, 0, 0)), (name, start, report)
        assert world.asked() == (0 if start else asked), (name, start, world.asked(), asked)
    assert asked == expected, (name, asked)


def an_nvrtc_client_hits(world):
    under(world, "nvrtc", (sys.executable, "-c", NVRTC), 3)


def a_ptxas_hits(world):
    world.exec("ptxas", "--version")
    plain = world.run("ptxas", "--version").stdout
    assert world.exec("ptxas", "--version")[0] == plain == "ptxas: fake, release 1.0\n"
    under(world, "ptxas", ("sh", "-c", PTXAS.format("out")), 1)


def the_ptxas_that_was_chosen_for_triton_hits(world):
    """By a variable, in a directory that is not in PATH."""
    chosen = world.root / "chosen/ptxas"
    chosen.parent.mkdir()
    shutil.copy(world.parts / "bin/ptxas", chosen)
    chosen.open("ab").write(b"another build")
    under(world, "triton", ("sh", "-c", TRITON.format("out")), 1, TRITON_PTXAS_PATH=chosen,
          PATH=os.environ["PATH"], KILN_CACHE_DIR=world.root / "cache-triton")


def a_real_toolkit_hits(world):
    """CUDA's own NVRTC and ptxas, where they are installed."""
    for base in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        found = [path for folder in ("lib64", "lib", "targets/x86_64-linux/lib") for major in (13, 12)
                 for path in Path(base or "/none").glob(f"{folder}/libnvrtc.so.{major}")]
        if found:
            break
    else:
        return "no CUDA toolkit"
    major = found[0].name.rsplit(".", 1)[1]
    more = {"LD_LIBRARY_PATH": found[0].parent, "PATH": f"{base}/bin:{os.environ['PATH']}",
            "KILN_CACHE_DIR": world.root / "cache-real", "CUDA_CACHE_PATH": world.root / "nv"}
    rows = [((sys.executable, "-c", NVRTC, major), 3)]
    if Path(base, "bin/ptxas").exists():
        rows.append((("sh", "-c", PTXAS.format("out") + " >/dev/null"), 1))
    for command, expected in rows:
        plain = world.run(*command, **more).stdout
        for start in range(2):
            text, report = world.exec(*command, **more)
            assert text == plain, (command, plain, text)
            assert counts(report) == ((expected, 0, 0, 0) if start else (0, expected, 0, 0)), report
    return None


def an_opencl_client_hits(world):
    """PoCL is read for the start that asks for it."""
    if ctypes.util.find_library("OpenCL") is None or not (world.parts / "opencl_client").exists():
        return "no OpenCL loader"
    command = (world.parts / "opencl_client", "build")
    plain = subprocess.run([str(word) for word in command], cwd=world.root, capture_output=True, text=True,
                           errors="replace", check=False, env=world.environment(POCL_CACHE_DIR=world.root))
    if plain.returncode == 77:
        return "no OpenCL device"
    assert plain.returncode == 0, (plain.returncode, plain.stderr)
    for start in range(3):
        driver = world.root / f"pocl{start}"
        driver.mkdir()
        _, report = world.exec(*command, POCL_CACHE_DIR=driver, **({"KILN_CAPTURE": "1"} if start == 1 else {}))
        if report["hits"] > 0:
            assert start == 2, report
            said = world.run(world.kiln, "exec", "--", *command, POCL_CACHE_DIR=driver, KILN_LOG="debug").stderr
            assert "kiln: debug: opencl: " in said, said
            return None
        assert report["compiled"] > 0, report
    raise AssertionError(report)


def a_vulkan_client_hits(world):
    """lavapipe, behind a driver whose pipeline caches hold something."""
    drivers = [path for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
               for path in Path(folder).glob("libvulkan_lvp.so")]
    if not drivers or not (world.parts / "vulkan_client").exists() or not (world.parts / "code.spv").exists():
        return "no lavapipe"
    (world.root / "icd.json").write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {
        "library_path": str(world.parts / "libkiln_fakeicd.so"), "api_version": "1.3.0"}}))
    command = (world.parts / "vulkan_client", world.parts / "code.spv", "1", "5")
    more = {"VK_ICD_FILENAMES": world.root / "icd.json", "FAKE_REAL_LIBRARY": drivers[0],
            "XDG_RUNTIME_DIR": world.root}
    plain = world.run(*command, **more).stdout
    for start in range(2):
        text, report = world.exec(*command, **more)
        assert text == plain, (plain, text)
        assert counts(report) == ((5, 0, 0, 0) if start else (0, 5, 0, 0)), report
    return None


def doctor_credits_what_was_answered(world):
    command = (sys.executable, "-c", NVRTC)
    found = json.loads(world.run(world.kiln, "doctor", "--json", "--", *command).stdout)
    assert found["hits"] == 3 and not found["troubles"], found
    assert "kiln" in [row["answers"] for row in found["compilers"] if row["compiler"] == "NVRTC"], found
    found = json.loads(world.run(world.kiln, "doctor", "--json", "--", "true").stdout)
    assert found["compilers"] == [], found


def a_second_kiln_is_not_the_compiler(world):
    """What the first one found is found again: the key has the real compiler and no other kiln."""
    other = world.copy_libexec("other")
    command = (sys.executable, "-c", NVRTC)
    _, report = world.exec(*command, LD_LIBRARY_PATH=world.library_path(other / "nvrtc/13"))
    assert counts(report) == (3, 0, 0, 0), report
    path = f"{other}/ptxas:{world.parts}/bin:{os.environ['PATH']}"
    _, report = world.exec("sh", "-c", PTXAS.format("out"), PATH=path)
    assert counts(report) == (1, 0, 0, 0), report
    for inner in (world.libexec(), other):
        for name, run in (("nvrtc", command), ("ptxas", ("sh", "-c", PTXAS.format("out")))):
            nested = ("env", f"KILN_LIBEXEC={inner}", world.kiln, "exec", "--", *run)
            _, report = world.exec(*nested)
            assert report["hits"] == (3 if name == "nvrtc" else 1) and not report["compiled"], (inner, name, report)
    chosen = world.root / "chosen/ptxas"
    nested = ("env", f"KILN_LIBEXEC={other}", world.kiln, "exec", "--", "sh", "-c", TRITON.format("out"))
    _, report = world.exec(*nested, TRITON_PTXAS_PATH=chosen, PATH=os.environ["PATH"],
                           KILN_CACHE_DIR=world.root / "cache-triton")
    assert counts(report) == (1, 0, 0, 0), report


def another_build_of_a_compiler_compiles(world):
    """Beside a second kiln, too: its build id would stay the same."""
    other = world.copy_libexec("other")
    chosen = world.root / "next/ptxas"
    chosen.parent.mkdir()
    shutil.copy(world.parts / "bin/ptxas", chosen)
    path = f"{other}/ptxas:{chosen.parent}:{os.environ['PATH']}"
    more = {"PATH": path, "KILN_CACHE_DIR": world.root / "cache-next"}
    for expected in ((0, 1, 0, 0), (1, 0, 0, 0)):
        _, report = world.exec("sh", "-c", PTXAS.format("out"), **more)
        assert counts(report) == expected, report
    # A byte of its text that nothing reads, and of its build id if it has one.
    code = chosen.read_bytes()
    changed = code.replace(b"release 1.0", b"release 1.1")
    note = code.find(b"\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00")
    if note >= 0:
        changed = changed[:note + 16] + bytes(20 * [7]) + changed[note + 36:]
    chosen.write_bytes(changed)
    _, report = world.exec("sh", "-c", PTXAS.format("out"), **more)
    assert counts(report) == (0, 1, 0, 0), report


def a_broken_core_is_out_of_the_way(world):
    """What it needs is gone: programs run as without kiln, and the report says so."""
    broken = world.copy_libexec("broken")
    (broken / "libkiln-nettle.so").unlink()
    more = {"KILN_LIBEXEC": broken}
    for command in ((sys.executable, "-c", NVRTC), ("sh", "-c", PTXAS.format("out")), ("ptxas", "--version")):
        plain = world.run(*command)
        text, report = world.exec(*command, **more)
        assert text == plain.stdout, (command, text)
        assert counts(report) == (0, 0, 0, 0), report
        (trouble,) = report["troubles"]
        assert "libkiln-nettle.so" in trouble["reason"] and trouble["what"] == "core", report
    done = world.run(world.kiln, "exec", "--stats", "--", "ptxas", "--version", **more)
    assert "kiln: it can do nothing: " in done.stderr and "libkiln-nettle.so" in done.stderr, done.stderr
    done = world.run(world.kiln, "doctor", "--json", "--", sys.executable, "-c", NVRTC, **more)
    found = json.loads(done.stdout)
    assert {row["answers"] for row in found["compilers"]} == {"not kiln"}, found
    assert found["troubles"][0]["what"] == "core", found
    said = subprocess.run([world.kiln, "doctor", "-b", "cpu"], env=world.environment(), capture_output=True,
                          text=True, check=False).stdout
    assert "Backends" in said and "Programs under kiln exec" not in said, said


def what_is_off_is_said(world):
    """In the report, by --stats and by doctor; and nothing where a cache that is only read has everything."""
    command = (sys.executable, "-c", NVRTC)
    plain = world.run(*command).stdout
    empty = world.root / "empty"
    empty.mkdir()
    for more, what, text, answers in (
            ({"KILN_DISABLE": "1"}, "disabled", "it can do nothing: KILN_DISABLE is set", {"not kiln"}),
            ({"KILN_NO_CACHE": "1"}, "cache", "nothing is kept: the cache is turned off", None),
            ({"KILN_CACHE_DIR": "/proc/nowhere"}, "cache", "nothing is kept: cannot create", None),
            ({"KILN_CACHE_DIR": empty, "KILN_READONLY": "1"}, "cache", "nothing new is stored: ", None)):
        for run in (command, ("true",)):
            report = json.loads(json.dumps(world.exec(*run, **more)[1]))
            assert [row["what"] for row in report["troubles"]] == [what], (more, run, report)
            said = world.run(world.kiln, "exec", "--stats", "--", *run, **more)
            assert said.stdout == ("" if run == ("true",) else plain), said.stdout
            assert said.stderr.count(text) == 1, (more, run, said.stderr)
        found = json.loads(world.run(world.kiln, "doctor", "--json", "--", *command, **more).stdout)
        assert [row["what"] for row in found["troubles"]] == [what], found
        if answers:
            assert {row["answers"] for row in found["compilers"]} == answers, found
    _, report = world.exec(*command, KILN_READONLY="1")
    assert counts(report) == (3, 0, 0, 0) and report["troubles"] == [], report


def the_log_has_a_line_a_compile(world):
    command = (sys.executable, "-c", NVRTC)
    said = world.run(world.kiln, "exec", "--", *command, KILN_LOG="debug").stderr
    assert said.count("kiln: debug: nvrtc: k.cu: disk (") == 3, said
    assert world.run(world.kiln, "exec", "--", *command, KILN_LOG="warn").stderr == ""


CASES = [an_nvrtc_client_hits, a_ptxas_hits, the_ptxas_that_was_chosen_for_triton_hits, a_real_toolkit_hits,
         an_opencl_client_hits, a_vulkan_client_hits, doctor_credits_what_was_answered,
         a_second_kiln_is_not_the_compiler, another_build_of_a_compiler_compiles, a_broken_core_is_out_of_the_way,
         what_is_off_is_said, the_log_has_a_line_a_compile]


def main():
    if sys.argv[1] == "--collect":
        collect(Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve())
        return
    with tempfile.TemporaryDirectory(prefix="kiln-installed-") as root:
        world = World(sys.argv[1], Path(sys.argv[2]).resolve(), root)
        chosen = sys.argv[3:] or [case.__name__ for case in CASES]
        for case in [case for case in CASES if case.__name__ in chosen]:
            left_out = case(world)
            print(f"{'SKIP' if left_out else 'ok'} {case.__name__}{': ' + left_out if left_out else ''}", flush=True)


if __name__ == "__main__":
    main()

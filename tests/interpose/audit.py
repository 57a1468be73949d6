#!/usr/bin/env python3
"""audit.py KILN REAL: `kiln doctor -- PROGRAM` and `kiln exec --audit`, with the fake NVRTC REAL
opened by name and by its absolute path. $FAKENVRTC_LOG has a line a compile of the fake one."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, REAL = sys.argv[1:3]
NAME = os.path.basename(REAL)
CLIENT = """
import ctypes, hashlib, sys
nvrtc = ctypes.CDLL(sys.argv[1])
program, size = ctypes.c_void_p(), ctypes.c_size_t()
text = b"__global__ void k(int *a) { *a = 1; }"
options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
print(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None))
print(nvrtc.nvrtcCompileProgram(program, 1, options))
print(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), size.value)
code = ctypes.create_string_buffer(size.value)
print(nvrtc.nvrtcGetCUBIN(program, code), hashlib.sha256(code.raw).hexdigest())
"""

LINKER = """
import ctypes, hashlib, sys
linker = ctypes.CDLL(sys.argv[1])
link, size = ctypes.c_void_p(), ctypes.c_size_t()
options = (ctypes.c_char_p * 1)(b"-arch=sm_90")
text = b".version 7.0\\n.visible .entry k()"
print(linker.nvJitLinkCreate(ctypes.byref(link), 1, options))
print(linker.nvJitLinkAddData(link, 2, text, ctypes.c_size_t(len(text)), b"k.ptx"))
print(linker.nvJitLinkComplete(link))
print(linker.nvJitLinkGetLinkedCubinSize(link, ctypes.byref(size)), size.value)
code = ctypes.create_string_buffer(size.value)
print(linker.nvJitLinkGetLinkedCubin(link, code), hashlib.sha256(code.raw).hexdigest())
"""


class World:
    def __init__(self, root):
        self.root = Path(root)
        self.log = self.root / "compiles"
        self.libraries = self.root / "lib"
        self.libraries.mkdir()
        for file in Path(REAL).parent.iterdir():
            shutil.copy(file, self.libraries)
        self.path = str(self.libraries / NAME)

    def run(self, *arguments, **variables):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("KILN_", "NVRTC_", "CUDA", "LD_"))}
        env.update(KILN_CACHE_DIR=str(self.root / "cache"), FAKENVRTC_LOG=str(self.log),
                   FAKENVJITLINK_LOG=str(self.log),
                   LD_LIBRARY_PATH=str(self.libraries))
        env.update(variables)
        self.log.write_text("")
        return subprocess.run([KILN, *arguments], env=env, capture_output=True, text=True,
                              timeout=100)

    def client(self, library):
        return [sys.executable, "-c", CLIENT, library]

    def without_core(self):
        """kiln's libraries with a core that cannot be loaded."""
        printed = self.run("exec", "--print").stdout
        own = Path(next(line for line in printed.splitlines() if "TRITON_PTXAS_PATH=" in line).split("'")[1])
        copy = Path(shutil.copytree(own.parent.parent, self.root / "broken"))
        (copy / "libkiln-interpose.so").write_bytes(b"\x7fELF, and nothing more")
        return copy

    def compiles(self):
        return len(self.log.read_text().splitlines())

    def examine(self, *program, **variables):
        done = self.run("doctor", "--json", "--", *program, **variables)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        rows = [row for row in found["compilers"] if row["compiler"] == "NVRTC"]
        return found, {row["answers"]: row for row in rows}


def by_name_is_served(world):
    found, rows = world.examine(*world.client(NAME))
    assert set(rows) == {"kiln", "behind kiln"}, found
    assert found["compiled"] >= 1 and found["exit_code"] == 0, found
    assert world.compiles() >= 1
    found, rows = world.examine(*world.client(NAME))
    assert found["hits"] >= 1 and found["compiled"] == 0 and world.compiles() == 0, found


def by_path_is_named_with_what_to_do(world):
    found, rows = world.examine(*world.client(world.path))
    assert rows["not kiln"]["path"] == world.path, found
    assert "absolute path" in rows["not kiln"]["why"]
    assert "--audit" in rows["not kiln"]["fix"]
    assert found["hits"] == found["compiled"] == 0 and world.compiles() >= 1, found
    text = world.run("doctor", "--", *world.client(world.path)).stdout
    assert f"{world.path}: it is opened by its absolute path" in text, text


def by_path_is_served_with_the_auditor(world):
    alone = world.run("exec", "--", *world.client(world.path))
    kept = world.compiles()
    warm = world.run("exec", "--audit", "--", *world.client(world.path))
    assert world.compiles() == 0 < kept, warm.stderr
    assert warm.stdout == alone.stdout and warm.stderr == alone.stderr == ""
    again = world.run("exec", "--audit", "--", *world.client(world.path), KILN_DISABLE="1")
    assert again.stdout == alone.stdout and world.compiles() == kept


def a_linker_by_path_is_served_with_the_auditor(world):
    path = str(world.libraries / "libnvJitLink.so.13")
    alone = world.run("exec", "--", sys.executable, "-c", LINKER, path)
    assert alone.returncode == 0 and world.compiles() == 3, alone.stderr  # create, add, complete
    for kept in (3, 0):
        served = world.run("exec", "--audit", "--", sys.executable, "-c", LINKER, path)
        assert served.stdout == alone.stdout and served.stderr == "" and world.compiles() == kept, served
    again = world.run("exec", "--audit", "--", sys.executable, "-c", LINKER, path, KILN_DISABLE="1")
    assert again.stdout == alone.stdout and world.compiles() == 3
    found = json.loads(world.run("doctor", "--json", "--", sys.executable, "-c", LINKER, path).stdout)
    (row,) = [row for row in found["compilers"] if row["path"] == path]
    assert row["compiler"] == "nvJitLink" and row["answers"] == "not kiln" and "--audit" in row["fix"], row


def what_was_not_answered_is_not_credited(world):
    for more in ({"KILN_DISABLE": "1"}, {"KILN_LIBEXEC": str(world.without_core())}):
        found, rows = world.examine(*world.client(NAME), **more)
        assert set(rows) == {"not kiln"} and rows["not kiln"]["fix"], found
        assert found["hits"] == found["compiled"] == 0 and len(found["troubles"]) == 1, found


def another_nvrtc_of_that_version_is_left_alone(world):
    other = world.root / "other"
    shutil.copytree(world.libraries, other)
    alone = world.run("exec", "--", *world.client(str(other / NAME)))
    kept = world.compiles()
    done = world.run("exec", "--audit", "--", *world.client(str(other / NAME)))
    assert done.stdout == alone.stdout and world.compiles() == kept > 0


def a_path_that_is_not_there_stays_not_there(world):
    gone = world.run("exec", "--audit", "--", *world.client("/no/such/" + NAME))
    alone = world.run("exec", "--", *world.client("/no/such/" + NAME))
    assert gone.returncode == alone.returncode != 0 and gone.stderr == alone.stderr


def a_program_that_loads_nothing_is_said_to(world):
    found, rows = world.examine("true")
    assert rows == {} and found["processes"] == 1, found  # preloaded, and not called
    assert found["hits"] == found["compiled"] == found["bypassed"] == 0, found
    none = world.run("doctor", "--", "true", LD_LIBRARY_PATH="")
    assert "none was used" in none.stdout, none.stdout
    done = world.run("doctor", "--", "sh", "-c", "exit 7")
    assert done.returncode == 0 and "exit code 7" in done.stdout, done.stdout
    done = world.run("doctor", "--", "no-such-program")
    assert "no-such-program: No such file" in done.stderr, done.stderr


def a_static_program_is_not_seen(world):
    program = world.root / "static"
    built = subprocess.run(["cc", "-static", "-x", "c", "-o", str(program), "-"], text=True,
                           input="int main(void) { return 0; }", capture_output=True, check=False)
    if built.returncode == 0:  # else there is no static C library here
        found = json.loads(world.run("doctor", "--json", "--", str(program)).stdout)
        assert found["processes"] == 0 and found["compilers"] == [], found
        assert "static" in world.run("doctor", "--", str(program)).stdout


def the_users_auditor_stays(world):
    done = world.run("exec", "--audit", "--", "sh", "-c", "echo $LD_AUDIT", LD_AUDIT="/no/such.so")
    assert done.stdout.strip().endswith("libkiln-audit.so:/no/such.so"), done.stdout


CASES = [by_name_is_served, by_path_is_named_with_what_to_do, by_path_is_served_with_the_auditor,
         a_linker_by_path_is_served_with_the_auditor, what_was_not_answered_is_not_credited, another_nvrtc_of_that_version_is_left_alone, a_path_that_is_not_there_stays_not_there,
         a_program_that_loads_nothing_is_said_to, a_static_program_is_not_seen,
         the_users_auditor_stays]


def main():
    for case in CASES:
        with tempfile.TemporaryDirectory() as root:
            world = World(root)
            if case is by_path_is_served_with_the_auditor:
                world.run("exec", "--", *world.client(NAME))  # filled by name
            case(world)
            print(f"ok {case.__name__}")


if __name__ == "__main__":
    main()

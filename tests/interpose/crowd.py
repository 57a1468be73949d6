#!/usr/bin/env python3
"""crowd.py KILN LIBEXEC REAL NEXT: several processes under kiln's libnvrtc at once, holders that are
killed, an NVRTC that is replaced, a cache that vanishes. REAL and NEXT are two builds of the fake
one, whose $FAKENVRTC_LOG has a line a compile."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILN, LIBEXEC, REAL, NEXT = sys.argv[1:5]
CROWD = 8
CLIENT = """
import ctypes, hashlib, os, shutil, sys
nvrtc = ctypes.CDLL("libnvrtc.so.13")
def compiled(text, name):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None) == 0
    code = nvrtc.nvrtcCompileProgram(program, 1, options)
    if code != 0:
        return code
    assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetCUBIN(program, code) == 0
    assert nvrtc.nvrtcDestroyProgram(ctypes.byref(program)) == 0
    return hashlib.sha256(code.raw).hexdigest()
def kernel(n):
    return f"__global__ void k(int *a) {{ *a = {n}; }}"
"""
ONE = CLIENT + "print(compiled(kernel(int(sys.argv[1])), f'/tmp/{os.getpid()}/k.cu'))"
FORKED = CLIENT + """
first = compiled(kernel(1), "k.cu")
for n in (1, 2, 3):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print(n, compiled(kernel(n), "k.cu"))
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(1, compiled(kernel(1), "k.cu"))
"""
WAITING = CLIENT + """
print(compiled(kernel(1), "k.cu"), flush=True)
input()
print(compiled(kernel(2), "k.cu"))
"""
VANISHED = CLIENT + """
said = [compiled(kernel(n), "k.cu") for n in (1, 2)]
shutil.rmtree(os.environ["KILN_CACHE_DIR"])
said += [compiled(kernel(n), "k.cu") for n in (1, 3)]
os.makedirs(os.environ["KILN_CACHE_DIR"], exist_ok=True)
print(*said, compiled(kernel(4), "k.cu"))
"""


class World:
    def __init__(self, root):
        self.root = Path(root)
        self.log = self.root / "compiles"
        self.toolkit = self.root / "toolkit"
        self.toolkit.mkdir()
        self.install(REAL)
        self.forget()

    def install(self, library):
        """Puts an NVRTC in its place as packagers do: by a rename."""
        for file in Path(library).parent.iterdir():
            copy = self.toolkit / (file.name + ".new")
            shutil.copy(file, copy)
            copy.rename(self.toolkit / file.name)

    def forget(self):
        self.log.write_text("")

    def start(self, program, *arguments, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NVRTC_", "LD_"))}
        env.update(KILN_CACHE_DIR=str(self.root / "cache"), FAKENVRTC_LOG=str(self.log), KILN_LIBEXEC=LIBEXEC,
                   KILN_NVRTC_LIBRARY=str(self.toolkit / "libnvrtc.so.13"),
                   LD_LIBRARY_PATH=str(self.toolkit),  # for NVRTC's builtins
                   PYTHONWARNINGS="ignore::DeprecationWarning")  # of Python 3.12 and later, at fork()
        env.update(variables)
        return subprocess.Popen([KILN, "exec", "--", sys.executable, "-c", program, *arguments], env=env,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, errors = process.communicate(timeout=100)
        assert process.returncode == 0 and errors == "", (process.returncode, errors[-2000:])
        return out.strip()

    def run(self, program, *arguments, **variables):
        return self.finish(self.start(program, *arguments, **variables))

    def compiles(self):
        return len(self.log.read_text().splitlines())

    def wait_for_compiles(self, count):
        end = time.monotonic() + 60
        while self.compiles() < count:
            assert time.monotonic() < end, "nobody compiles"
            time.sleep(0.002)

    def alone(self, number):
        """What NVRTC itself gives."""
        said = self.run(ONE, str(number), KILN_DISABLE="1")
        self.forget()
        return said


def one_of_eight_compiles(world):
    wanted = world.alone(1)
    crowd = [world.start(ONE, "1") for _ in range(CROWD)]
    assert {world.finish(process) for process in crowd} == {wanted}
    assert world.compiles() == 1, world.compiles()
    mixed = [world.start(ONE, str(2 + i % 3)) for i in range(CROWD)]
    said = [world.finish(process) for process in mixed]
    assert len(set(said)) == 3 and world.compiles() == 4, (said, world.compiles())


def a_killed_holder_holds_nobody_up(world):
    wanted = world.alone(1)
    holder = world.start(ONE, "1")
    world.wait_for_compiles(1)
    holder.send_signal(signal.SIGSTOP)  # however long the others take to start
    waiting = [world.start(ONE, "1") for _ in range(CROWD - 1)]
    time.sleep(0.3)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    said = {world.finish(process) for process in waiting}
    assert said == {wanted}, said
    # That of the killed one, and one more; unless it was stopped too late, with its entry stored.
    assert 1 <= world.compiles() <= 2, world.compiles()


def killed_at_any_time_nothing_wrong_is_left(world):
    wanted = world.alone(1)
    for i in range(12):
        process = world.start(ONE, "1", KILN_RECACHE="1" if i % 2 else "0")
        time.sleep(0.05 + 0.04 * i)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert world.run(ONE, "1") == wanted
    world.forget()
    assert world.run(ONE, "1") == wanted and world.compiles() == 0


def another_nvrtc_is_another_key(world):
    first = world.run(ONE, "1")
    assert world.compiles() == 1
    world.install(NEXT)
    second = world.run(ONE, "1")
    assert world.compiles() == 2, "a hit of another NVRTC's"
    world.install(REAL)
    assert world.run(ONE, "1") == first and world.run(ONE, "1", KILN_NVRTC_LIBRARY=NEXT) == second
    assert world.compiles() == 2, world.compiles()


def an_nvrtc_replaced_under_a_process_stores_nothing_wrong(world):
    """Its hits opened no NVRTC: what it opens for its first miss is not what it keyed."""
    world.run(ONE, "1")
    process = world.start(WAITING)
    assert process.stdout.readline().strip() != ""
    world.install(NEXT)
    process.stdin.write("\n")
    other = world.finish(process)
    world.install(REAL)
    world.forget()
    assert world.run(ONE, "2") == other and world.compiles() == 1, "made by one NVRTC, keyed by another"


def children_of_a_process_that_compiled(world):
    wanted = {str(n): world.alone(n) for n in (1, 2, 3)}
    said = [line.split() for line in world.run(FORKED).splitlines()]
    assert len(said) == 4 and all(wanted[n] == digest for n, digest in said), said
    assert world.compiles() == 3, world.compiles()


def a_cache_that_vanishes(world):
    wanted = [world.alone(n) for n in (1, 2, 1, 3, 4)]
    assert world.run(VANISHED).split() == wanted
    assert world.run(ONE, "4") == wanted[4]


CASES = [one_of_eight_compiles, a_killed_holder_holds_nobody_up, killed_at_any_time_nothing_wrong_is_left,
         another_nvrtc_is_another_key, an_nvrtc_replaced_under_a_process_stores_nothing_wrong,
         children_of_a_process_that_compiled, a_cache_that_vanishes]


def main():
    for case in CASES:
        with tempfile.TemporaryDirectory() as root:
            case(World(root))
            print(f"ok {case.__name__}", flush=True)


main()

#!/usr/bin/env python3
"""process.py BUILD [--rounds N] [--count] [--states warm,cold] [--crowd N] [--old BUILD] [BACKEND...]: from exec to the
first result.

A 64 x 64 matrix product by a program of some twenty lines on libkiln, by `kiln run`, and by the vendor's
own calls without kiln (a binary in a file where it is warm, the vendor's compiler where it is cold). Each
sample is a process, the ways take turns, medians with smallest and largest. `result`: until the number is
on standard output; `process`: until the process has gone; `processor`: of the process and its children, `to the
result` without what comes after it (closing, and binaries that are read late; `kiln run` does not say).
Warm: kiln's cache, and the driver's own, as earlier starts of that way left them. Cold: all empty.
Each program launches once, and destroys what it made before it ends.
`--count` counts millions of instructions of user space instead, by valgrind's cachegrind; cold those of children, too.
`--crowd N`: N processes on libkiln at once, cold, with one cache, and one alone, taking turns.
BUILD is a build directory, or a tree of scripts/gpu_tree.sh; with `--old` libkiln and `kiln` of another one take turns, too."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNEL = {"cpu": "matmul.c", "opencl": "matmul.cl", "vulkan": "matmul.comp", "opengl": "matmul.comp", "cuda": "matmul.cu"}
TARGET = {"opencl": "opencl:0", "vulkan": "vulkan:0", "cuda": "cuda:sm_90"}
CACHES = {"KILN_CACHE_DIR": "kiln", "POCL_CACHE_DIR": "pocl", "MESA_SHADER_CACHE_DIR": "mesa",
          "__GL_SHADER_DISK_CACHE_PATH": "nvidia", "CUDA_CACHE_PATH": "cuda", "XDG_CACHE_HOME": "xdg"}
FILLS = 3  # starts until a driver's late binary is stored, and found again


def environment(folder):
    env = dict(os.environ)
    for variable, name in CACHES.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        env[variable] = str(place)
    return env


def read_to_end(end):
    """(when the first line had come, all)"""
    first, pieces = None, []
    while piece := os.read(end, 65536):
        first = first or (time.perf_counter() if b"\n" in piece else None)
        pieces.append(piece)
    os.close(end)
    return first, b"".join(pieces).decode(errors="replace")


def start(command, env):
    """(ms until the first line, ms until the end, ms of processor time, and until the result, 0: unknown); ends this
    program when it fails."""
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
    before = time.perf_counter()
    child = os.posix_spawn(command[0], command, env, file_actions=actions)
    os.close(write)
    first, text = read_to_end(read)
    _, status, usage = os.wait4(child, 0)
    after = time.perf_counter()
    if status != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {os.waitstatus_to_exitcode(status)}: {text[-300:]}")
    told = re.search(r"^processor ([0-9.]+)$", text, re.MULTILINE)
    return ((first or after) - before) * 1e3, (after - before) * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3, \
        float(told.group(1)) if told else 0.0


def count(command, env, children):
    """Millions of instructions of the process, and of all that it starts."""
    with tempfile.TemporaryDirectory() as logs:
        done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
                               f"--trace-children={'yes' if children else 'no'}", f"--log-file={logs}/%p", *command],
                              env=env, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-300:]}")
        counted = [int(match.group(1).replace(",", "")) / 1e6 for log in Path(logs).iterdir()
                   if (match := re.search(r"I +refs: +([\d,]+)", log.read_text(errors="replace")))]
        return sum(counted)


def program_on_libkiln(build):
    tree = (build / "bin" / "by_kiln").exists()
    return str(build / ("bin" if tree else "bench") / "by_kiln")


def the_command(build):
    tree = (build / "bin" / "by_kiln").exists()
    return str(build / ("bin" if tree else "programs/kiln") / "kiln")


def with_its_libraries(build, program):
    """The command; a tree's programs find the libraries of the other tree by the environment."""
    return ["/usr/bin/env", f"LD_LIBRARY_PATH={build}/lib", f"KILN_LIBEXEC={build}/libexec/kiln", program] \
        if (build / "bin" / "by_kiln").exists() else [program]


class Bench:
    def __init__(self, build, work, old=None):
        self.work = work
        tree = (build / "bin" / "by_kiln").exists()
        self.old = with_its_libraries(old, program_on_libkiln(old)) if old else None
        self.old_kiln = with_its_libraries(old, the_command(old)) if old else None
        self.kiln = the_command(build)
        self.by_kiln = program_on_libkiln(build)
        self.by_hand = str(build / ("bin" if tree else "bench") / "by_hand")
        libexec = build / ("" if tree else "programs") / "libexec" / "kiln"
        self.libraries = {"vulkan": str(libexec / "libkiln-shaderc.so"), "cuda": os.environ.get("NVRTC", "")}

    def ways(self, backend, state):
        kernel = str(HERE / "process" / KERNEL[backend])
        entry = "main" if backend in ("vulkan", "opengl") else "matmul"
        binary = str(self.work / f"{backend}.bin")
        run = [self.kiln, "run", kernel, "-b", backend, "--strict", "--entry", entry, "--global", "64x64",
               "--local", "8x8", "-n", "0", "--no-check"]
        for arg in ("in:f32:4096=fill:1", "in:f32:4096=fill:1", "out:f32:4096", "value:i32=64"):
            run += ["--arg", arg]
        hand = [self.by_hand, backend, state, kernel if state == "cold" and backend == "cuda" else binary]
        if self.libraries.get(backend):
            hand.append(self.libraries[backend])
        ways = {"by hand": hand, "libkiln": [self.by_kiln, backend, kernel, entry], "kiln run": run}
        if state == "cold" and backend != "cpu":
            ways["libkiln, KILN_SKIP_PROBE"] = ["/usr/bin/env", f"KILN_SKIP_PROBE={backend}", self.by_kiln, backend, kernel, entry]
        if self.old:
            ways["libkiln, old"] = [*self.old, backend, kernel, entry]
            ways["kiln run, old"] = [*self.old_kiln, *run[1:]]
        return ways

    def prepare(self, backend):
        """kiln's caches filled, and the binary that is loaded by hand."""
        binary = self.work / f"{backend}.bin"
        fills = environment(self.work / f"{backend}-libkiln")
        for _ in range(FILLS):
            start(self.ways(backend, "warm")["libkiln"], fills)
        if backend in ("cpu", "opengl"):
            subprocess.run([self.by_hand, backend, "save", str(binary)], check=True, env=fills)
        else:
            kernel = str(HERE / "process" / KERNEL[backend])
            subprocess.run([self.kiln, "compile", kernel, "--target", TARGET[backend], "-o", str(binary)],
                           check=True, env=fills, stdout=subprocess.DEVNULL)
        if backend == "vulkan":
            subprocess.run([self.kiln, "compile", str(HERE / "process" / KERNEL[backend]), "--target", "vulkan:spirv",
                            "-o", f"{binary}.spv"], check=True, env=fills, stdout=subprocess.DEVNULL)
        for way, command in self.ways(backend, "warm").items():
            for _ in range(FILLS):
                start(command, environment(self.work / f"{backend}-{way.replace(' ', '-')}"))

    def once(self, backend, state, way, measure):
        folder = self.work / (f"{backend}-{way.replace(' ', '-')}" if state == "warm" else "fresh")
        if state == "cold":
            shutil.rmtree(folder, ignore_errors=True)
        return measure(self.ways(backend, state)[way], environment(folder))


def middle(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def times(bench, backend, state, rounds):
    samples = {}
    for _ in range(rounds):
        for way in bench.ways(backend, state):
            samples.setdefault(way, []).append(bench.once(backend, state, way, start))
    base = [statistics.median(column) for column in zip(*samples["by hand"])]
    for way, rows in samples.items():
        columns = list(zip(*rows))
        ratios = [f"{statistics.median(column) / base[i]:.2f}" for i, column in enumerate(columns)]
        print(f"| {backend} | {state} | {way} | {middle(columns[0])} | {ratios[0]} | {middle(columns[1])} | {ratios[1]} | "
              f"{middle(columns[2])} | {ratios[2]} | " +
              (f"{middle(columns[3])} | {ratios[3]} |" if columns[3][0] else "- | - |"), flush=True)


def counts(bench, backend, state):
    base = None
    for way in bench.ways(backend, state):
        if state == "warm":  # what is remembered of drivers is not believed where the preloaded libraries are others
            bench.once(backend, state, way, lambda command, env: count(command, env, False))
        millions = bench.once(backend, state, way, lambda command, env: count(command, env, state == "cold"))
        base = base or millions
        print(f"| {backend} | {state} | {way} | {millions:.2f} | {millions / base:.3f} |", flush=True)


def crowds(bench, backend, rounds, size):
    """One alone and `size` at once, cold: until the last has its result, and the processor time of all."""
    ways = {way: command for way, command in bench.ways(backend, "cold").items() if way.startswith("libkiln")}
    alone, samples = {way: [] for way in ways}, {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            alone[way].append(bench.once(backend, "cold", way, start))
            with ThreadPoolExecutor(size) as pool:
                many = bench.once(backend, "cold", way, lambda command, env: list(
                    pool.map(lambda _: start(command, env), range(size))))
            cost = sorted(sample[2] for sample in many)
            samples[way].append((max(sample[0] for sample in many), sum(cost), statistics.median(cost)))
    for way, rows in samples.items():
        slowest, total, each = zip(*rows)
        one = [sample[0] for sample in alone[way]]
        print(f"| {backend} | {way} | {middle(one)} | {middle(slowest)} | {statistics.median(slowest) / statistics.median(one):.2f} | "
              f"{middle([sample[2] for sample in alone[way]])} | {middle(total)} | {middle(each)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("backends", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--states", default="warm,cold")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--old", type=Path)
    parser.add_argument("--crowd", type=int, default=0)
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.build.resolve(), Path(work), options.old.resolve() if options.old else None)
        print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, "
              f"{options.rounds} rounds, ms, medians (smallest to largest)\n")
        print(f"| backend | way | one alone, to its result | the last of {options.crowd} | of one alone | processor, one | of all | "
              "the middle one |\n| --- | --- | --- | --- | ---: | --- | --- | --- |" if options.crowd else
              "| backend | state | way | instructions, millions | of by hand |\n| --- | --- | --- | ---: | ---: |"
              if options.count else
              "| backend | state | way | result | of by hand | process | of by hand | processor | of by hand | "
              "to the result | of by hand |\n| --- | --- | --- | --- | ---: | --- | ---: | --- | ---: | --- | ---: |")
        for backend in options.backends or ["cpu", "opencl", "vulkan", "opengl"]:
            try:
                if options.crowd:
                    crowds(bench, backend, options.rounds, options.crowd)
                    continue
                bench.prepare(backend)
                for state in options.states.split(","):
                    if options.count:
                        counts(bench, backend, state)
                    else:
                        times(bench, backend, state, options.rounds)
            except (RuntimeError, subprocess.CalledProcessError) as failed:
                print(f"left out: {backend}: {str(failed)[:500]}", file=sys.stderr)


main()

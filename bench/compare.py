#!/usr/bin/env python3
"""compare.py BUILD [--rounds N] [--crowd N] [GROUP...]: kiln side by side with what people use today,
in one run: opencl, vulkan, opengl, and cuda where there is a GPU.

The kernel is a 64 x 64 matrix product. A sample is a fresh process; the arms take turns. Cold: with
empty caches. Warm: in the next process, with what the first one left. Each arm has its own caches and
no other's: a driver's cache is an empty directory for each process unless the arm is about that cache.
`first result` counts from a ready device to the result on the host; `processor` is all processor time
of the process, driver's threads included. The crowd: as many processes at once, until the last ends.
What cannot run here is left out, with the reason below the table."""
import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASELINE = "the driver's own calls"
# The arms that keep nothing are measured cold alone, those that start from a file warm alone.
COLD, WARM, BOTH = ("cold",), ("warm",), ("cold", "warm")


class Arm:
    """One way to the first result. `keeps`: the variables whose directories live on to the next process."""

    def __init__(self, name, command, keeps=(), states=BOTH, column=1, compiles=None):
        self.name, self.command, self.keeps, self.states = name, command, keeps, states
        self.column, self.compiles = column, compiles


# Every cache that could help, each with the variable that says where it is.
CACHES = {"KILN_CACHE_DIR": "kiln", "POCL_CACHE_DIR": "pocl", "MESA_SHADER_CACHE_DIR": "mesa",
          "__GL_SHADER_DISK_CACHE_PATH": "nvidia", "CUDA_CACHE_PATH": "cuda",
          "XDG_CACHE_HOME": "xdg", "OCCA_CACHE_DIR": "occa"}


def environment(arm, kept, fresh):
    """Kept caches in `kept`, the others in `fresh`, an empty directory."""
    env = dict(os.environ)
    for variable, folder in CACHES.items():
        place = (kept if variable in arm.keeps else fresh) / folder
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        env[variable] = str(place)
    # Off altogether where that is possible: llvmpipe gives no program binaries then.
    if "MESA_SHADER_CACHE_DIR" not in arm.keeps and "opengl" not in arm.command:
        env["MESA_SHADER_CACHE_DISABLE"] = "true"
    if "__GL_SHADER_DISK_CACHE_PATH" not in arm.keeps:
        env["__GL_SHADER_DISK_CACHE"] = "0"
    return env


class Bench:
    def __init__(self, build, work, rounds, crowd):
        self.build, self.work, self.rounds, self.crowd = build, work, rounds, crowd
        self.child = str(build / "bench" / "bench_warm")
        self.reasons = []

    def fresh(self, slot):
        """An empty directory, at the same path each time: a variable that changes is not what is measured."""
        place = self.work / f"fresh-{slot}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        return place

    def start(self, arm, kept, slot=0):
        return subprocess.Popen(arm.command, env=environment(arm, kept, self.fresh(slot)), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def end(self, arm, process):
        """Its numbers and its processor time, in ms; None and the reason when it failed."""
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        process.stderr.close()
        numbers = out.split()
        if process.returncode != 0 or len(numbers) <= arm.column:
            return None, (err or out).strip().splitlines()[-1:] or [f"exit {process.returncode}"]
        return [float(number) for number in numbers], (usage.ru_utime + usage.ru_stime) * 1000

    def once(self, arm, kept):
        return self.end(arm, self.start(arm, kept))

    def alone(self, arms):
        """{(arm, state): [(first result, processor)]}, all in ms; arms that fail are taken out."""
        samples = {}
        for _ in range(self.rounds):
            for arm in list(arms):
                kept = self.work / "kept"
                for state in arm.states:
                    numbers, cpu = self.once(arm, kept)
                    if numbers is None:
                        self.reasons.append(f"{arm.name}: {cpu[0][:200]}")
                        arms.remove(arm)
                        samples = {key: value for key, value in samples.items() if key[0] is not arm}
                        break
                    samples.setdefault((arm, state), []).append((numbers[arm.column] / 1000, cpu))
                shutil.rmtree(kept, ignore_errors=True)
        return samples

    def together(self, arms, rounds):
        """{(arm, state): [(until the last ends, processor of all, compiles)]}"""
        samples = {}
        for _ in range(rounds):
            for arm in arms:
                kept = self.work / "kept"
                for state in arm.states:
                    start = time.perf_counter()
                    processes = [self.start(arm, kept, slot) for slot in range(self.crowd)]
                    results = [self.end(arm, process) for process in processes]
                    took = (time.perf_counter() - start) * 1000
                    if any(numbers is None for numbers, _ in results):
                        self.reasons.append(f"{arm.name}, {self.crowd} at once: one failed")
                        break
                    compiles = (sum(numbers[arm.compiles] for numbers, _ in results)
                                if arm.compiles is not None else None)
                    samples.setdefault((arm, state), []).append(
                        (took, sum(cpu for _, cpu in results), compiles))
                shutil.rmtree(kept, ignore_errors=True)
        return samples


def spread(values):
    if not values:
        return "-"
    values = sorted(values)
    quarter = len(values) // 4
    return f"{statistics.median(values):.1f} ({values[quarter]:.1f}..{values[-1 - quarter]:.1f})"


def column(samples, arm, state, index):
    return [sample[index] for sample in samples.get((arm, state), [])]


def ratio(values, base):
    return f"{statistics.median(values) / statistics.median(base):.2f}" if values and base else "-"


def table_alone(group, device, arms, samples, rounds):
    base = next((arm for arm in arms if arm.name == BASELINE), None)
    wall = column(samples, base, "cold", 0)
    cpu = column(samples, base, "cold", 1)
    print(f"\n### {group}: {device}; one process, {rounds} rounds, ms\n")
    print("| way | first result, cold | warm | warm / driver's calls | processor, cold | warm | "
          "warm / driver's calls |\n| --- | --- | --- | --- | --- | --- | --- |")
    for arm in arms:
        warm, warm_cpu = column(samples, arm, "warm", 0), column(samples, arm, "warm", 1)
        if arm.states == COLD:  # it keeps nothing: the next process does the same again
            warm, warm_cpu = wall, cpu
        print(f"| {arm.name} | {spread(column(samples, arm, 'cold', 0))} | "
              f"{'the same' if arm.states == COLD else spread(warm)} | {ratio(warm, wall)} | "
              f"{spread(column(samples, arm, 'cold', 1))} | "
              f"{'the same' if arm.states == COLD else spread(warm_cpu)} | {ratio(warm_cpu, cpu)} |")


def table_together(group, count, arms, samples):
    print(f"\n### {group}: {count} processes at once, until the last has exited, ms\n")
    print("| way | cold | compiles | warm | compiles | processor of all, cold | warm |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for arm in arms:
        cells = []
        for state in BOTH:
            compiles = column(samples, arm, state, 2)
            known = [str(int(max(compiles)))] if compiles and compiles[0] is not None else ["-"]
            cells += [spread(column(samples, arm, state, 0))] + known
        print(f"| {arm.name} | {' | '.join(cells)} | {spread(column(samples, arm, 'cold', 1))} | "
              f"{spread(column(samples, arm, 'warm', 1))} |")


# --- the groups ---------------------------------------------------------------------------------


def debian_python():
    """A Python that has pyopencl, Debian's own first."""
    for python in ("/usr/bin/python3", sys.executable):
        if os.access(python, os.X_OK) and subprocess.run(
                [python, "-c", "import pyopencl"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def occa_arm(bench, source):
    """OCCA is not packaged: KILN_BENCH_OCCA names an installation of it."""
    prefix = os.environ.get("KILN_BENCH_OCCA")
    if not prefix:
        bench.reasons.append("OCCA: KILN_BENCH_OCCA names no installation of it")
        return []
    program = bench.work / "occa"
    built = subprocess.run(["c++", "-std=c++17", "-O2", f"-I{prefix}/include", str(HERE / "first_result_occa.cpp"),
                            f"-L{prefix}/lib", "-locca", f"-Wl,-rpath,{prefix}/lib", "-o", str(program)],
                           capture_output=True, text=True, check=False)
    if built.returncode != 0:
        bench.reasons.append(f"OCCA: {built.stderr.strip().splitlines()[0][:200]}")
        return []
    command = [str(program), str(source)]
    return [Arm("OCCA, its own cache", command, ("OCCA_CACHE_DIR",)),
            Arm("OCCA, and PoCL's", command, ("OCCA_CACHE_DIR", "POCL_CACHE_DIR"))]


def opencl_arms(bench):
    source = bench.work / "matmul.cl"
    source.write_text(subprocess.run([bench.child, "text", "opencl"], capture_output=True, text=True,
                                     check=True).stdout)
    arms = driver_arms(bench, "opencl")
    arms.insert(2, Arm("PoCL's own cache", [bench.child, "plain", "opencl"], ("POCL_CACHE_DIR",)))
    python = debian_python()
    if python:
        command = [python, str(HERE / "first_result_pyopencl.py"), str(source)]
        arms.append(Arm("pyopencl, its own cache", command, ("XDG_CACHE_HOME",)))
        arms.append(Arm("pyopencl, and PoCL's", command, ("XDG_CACHE_HOME", "POCL_CACHE_DIR")))
    else:
        bench.reasons.append("pyopencl: not installed (Debian: python3-pyopencl)")
    arms += occa_arm(bench, source)
    arms.insert(0, Arm("kiln, in place of clBuildProgram", [bench.child, "dropin", "opencl"], ("KILN_CACHE_DIR",)))
    return arms


def mesa_arms(bench, group):
    arms = driver_arms(bench, group)
    arms.append(Arm("Mesa's shader cache", plain(bench, group), ("MESA_SHADER_CACHE_DIR",)))
    arms.insert(1, Arm("kiln, and Mesa's shader cache", arms[0].command,
                       ("KILN_CACHE_DIR", "MESA_SHADER_CACHE_DIR"), column=2, compiles=3))
    shaderc = bench.build / "programs" / "libexec" / "kiln" / "libkiln-shaderc.so"
    if group == "vulkan" and shaderc.exists():
        arms.insert(2, Arm("shaderc and the driver's own calls", [bench.child, "shaderc", group, str(shaderc)],
                           states=COLD))
    return arms


def exported(bench, group):
    return str(bench.work / f"{group}.bin")


def plain(bench, group):
    return [bench.child, "plain", group, exported(bench, group)]


def driver_arms(bench, group):
    return [Arm("kiln", [bench.child, "kiln", group], ("KILN_CACHE_DIR",), column=2, compiles=3),
            Arm(BASELINE, plain(bench, group), states=COLD),
            Arm("its binary in a file, by hand", [bench.child, "hand", group, exported(bench, group)],
                states=WARM)]


def run_group(bench, group):
    """The binary that is loaded by hand comes from a cache that kiln filled."""
    kiln = Arm("kiln", [bench.child, "kiln", group], ("KILN_CACHE_DIR",), column=2)
    kept = bench.work / f"export-{group}"
    numbers, why = bench.once(kiln, kept)
    if numbers is None:
        bench.reasons.append(f"{group}: {why[0][:200]}")
        return
    maker = Arm("export", [bench.child, "export", group, exported(bench, group)], ("KILN_CACHE_DIR",))
    bench.once(maker, kept)
    arms = opencl_arms(bench) if group == "opencl" else mesa_arms(bench, group)
    samples = bench.alone(arms)
    device = device_name(bench, group)
    table_alone(group, device, arms, samples, bench.rounds)
    table_together(group, bench.crowd, arms, bench.together(arms, max(2, bench.rounds // 3)))
    sys.stdout.flush()


def device_name(bench, group):
    out = subprocess.run([str(bench.build / "programs" / "kiln" / "kiln"), "devices"], text=True,
                         capture_output=True, check=False,
                         env=dict(os.environ, KILN_CACHE_DIR=str(bench.fresh(0)))).stdout
    lines = [line for line in out.splitlines() if line.startswith(f"{group}:0 ")]
    return lines[0][len(group) + 2:].strip().split("  ")[0] if lines else "?"


def run_cuda(bench):
    """bench/cuda has these comparisons: CuPy, cuda.core, Triton, plain NVRTC, a bare CUBIN."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        bench.reasons.append("CuPy, cuda.core, Triton, plain NVRTC: no libcuda.so.1, so no NVIDIA GPU here")
        return
    tree = bench.work / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "first_result").symlink_to(bench.build / "bench" / "bench_cuda_first_result")
    (tree / "bin" / "kiln").symlink_to(bench.build / "programs" / "kiln" / "kiln")
    subprocess.run([sys.executable, str(HERE / "cuda" / "compare.py"), str(tree), "off", "on", "herd"],
                   env=dict(os.environ, ROUNDS=str(bench.rounds)), check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("groups", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--crowd", type=int, default=8, help="processes that start at once")
    options = parser.parse_intermixed_args()
    groups = options.groups or ["opencl", "vulkan", "opengl", "cuda"]
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.build.resolve(), Path(work), options.rounds, options.crowd)
        print(f"{time.strftime('%Y-%m-%d')}, {os.uname().sysname} {os.uname().release}, {os.cpu_count()} processors, "
              f"load {os.getloadavg()[0]:.1f}; medians with quartiles")
        for group in groups:
            if group == "cuda":
                run_cuda(bench)
            else:
                run_group(bench, group)
        for reason in bench.reasons:
            print(f"\nleft out: {reason}")


main()

#!/usr/bin/env python3
"""compare.py TREE off|on|warm|cold|ten|herd|thousand ...: the comparisons of bench/cuda on a machine with a GPU.

off, on  time from a ready context to the first result, cold and warm, driver's cache off or on, each
         sample a fresh process, the ways taking turns; medians of 10
warm     kiln's warm start against the bare CUBIN alone, 31 fresh processes each, taking turns, and where kiln's
         time goes; with OLD=program, the first_result of another state takes turns as well
cold     kiln's cold start against plain NVRTC, loaded before the clock starts and after, on (a) and (b), 15
         fresh processes each, taking turns
ten      ten different kernels with the same heavy headers, compiled cold: kiln against plain NVRTC
herd     8 processes start cold at once on one heavy kernel: NVRTC runs once; one alone takes turns with them,
         HERDS (5) times; with OLD=program, one of another state takes turns as well
thousand KERNELS (1000) kernels loaded from disk and from a pack beside CUBINs by hand, RUNS (7) times; with
         OLD=program, the bench_thousand of another state takes turns as well
A table goes to standard output; all samples to $OUT/cuda-bench.json if OUT is set."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = Path(sys.argv[1]).resolve()
PROGRAM = TREE / "bin" / "first_result"
KILN = TREE / "bin" / "kiln"
KERNELS = {"trivial": "a trivial", "mma": "b fp16+mma+cg", "sort": "c cub sort"}
WAYS = ("bare", "kiln", "nvrtc", "cupy", "cuda.core", "triton")
PYTHON_WAYS = ("cupy", "cuda.core", "triton")
ROUNDS = int(os.environ.get("ROUNDS", "10"))
DEADLINE = time.monotonic() + float(os.environ.get("SECONDS_MAX", "500"))
details = {}
gone = {}


def environment(folder, driver_cache):
    env = dict(os.environ)
    env.update(KILN_CACHE_DIR=f"{folder}/kiln", CUPY_CACHE_DIR=f"{folder}/cupy",
               CORE_CACHE_DIR=f"{folder}/core", TRITON_CACHE_DIR=f"{folder}/triton", CUDA_CACHE_PATH=f"{folder}/driver",
               CUDA_CACHE_DISABLE="0" if driver_cache else "1")
    return env


def sample(way, kernel, folder, driver_cache, program=PROGRAM, parts=None):
    """Milliseconds; `parts` gets kiln's key, lookup, load and total, each in a list."""
    path = HERE / "kernels" / f"{kernel}.cu"
    if way in PYTHON_WAYS:
        command = [sys.executable, HERE / "first_result.py", way, path]
    else:
        command = [program, way, path, f"{folder}/../{kernel}.cubin"]
    env = environment(folder, driver_cache)
    if parts is not None:
        env["DETAILS"] = "1"
    done = subprocess.run([str(part) for part in command], env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        gone[way] = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["failed"]
        return None
    words = done.stderr.split()
    for name in ("key", "lookup", "load", "total") if parts is not None and "key" in words else ():
        parts.setdefault(name, []).append(float(words[words.index(name) + 1]))
    return float(done.stdout.split()[-1])


def includes(kernel):
    return "#include" in (HERE / "kernels" / f"{kernel}.cu").read_text()


def first_results(work, driver_cache):
    key = "on" if driver_cache else "off"
    samples = {}
    for kernel in KERNELS:
        subprocess.run([str(PROGRAM), "save", str(HERE / "kernels" / f"{kernel}.cu"),
                        f"{work}/{kernel}.cubin"], check=True, env=dict(os.environ))
    ways = [way for way in WAYS]
    rounds = 0
    for number in range(ROUNDS):
        if time.monotonic() > DEADLINE:
            break
        for kernel in KERNELS:
            for way in list(ways):
                folder = Path(work) / f"{key}-{number}-{kernel}-{way}"
                for name in ("kiln", "cupy", "core", "driver"):
                    (folder / name).mkdir(parents=True, mode=0o700)
                states = ("warm",) if way == "bare" else ("cold",) if way == "nvrtc" else (
                    "cold", "warm")
                for state in states:
                    took = sample(way, kernel, folder, driver_cache)
                    if took is None:
                        if way != "triton" or kernel == "trivial":
                            ways.remove(way)
                        break
                    samples.setdefault((kernel, way, state), []).append(took)
                shutil.rmtree(folder, ignore_errors=True)
        rounds += 1
    details[f"first result, driver cache {key}"] = {" ".join(k): v for k, v in samples.items()}
    print(f"\ntime from a ready context to the first result, ms, medians of {rounds} "
          f"(min-max), driver's cache {key}")
    print(f"{'kernel':16}{'way':11}{'cold':>9}{'(range)':>19}{'warm':>9}{'(range)':>19}  vs bare")
    for kernel, text in KERNELS.items():
        bare = statistics.median(samples.get((kernel, "bare", "warm"), [float("nan")]))
        for way in WAYS:
            noted = "*" if way == "cuda.core" and includes(kernel) else ""
            row = f"{text:16}{way + noted:11}"
            for state in ("cold", "warm"):
                values = samples.get((kernel, way, state))
                row += (f"{statistics.median(values):9.2f}{f'({min(values):.2f}-{max(values):.2f})':>19}"
                        if values else f"{'-':>9}{'':>19}")
            values = samples.get((kernel, way, "warm"))
            row += f"  {statistics.median(values) / bare:7.2f}" if values and bare == bare else ""
            print(row)
        warm = {way: statistics.median(samples[kernel, way, "warm"]) for way in WAYS
                if (kernel, way, "warm") in samples}
        nvrtc = samples.get((kernel, "nvrtc", "cold"))
        others = [value for way, value in warm.items() if way in PYTHON_WAYS]
        others += [statistics.median(nvrtc)] if nvrtc else []
        if "kiln" in warm and others:
            print(f"{'':16}best of the others, warm / kiln warm: {min(others) / warm['kiln']:.1f} "
                  f"(goal 5); kiln / bare: {warm['kiln'] / bare:.2f} (goal 1.2)")
    if any(way == "cuda.core" for _, way, _ in samples):
        print("* its key holds the toolkit's version in place of a digest of the headers, which its caller has to "
              "bring: it sees no change of a header, kiln does")


def warm_starts(work):
    """The ratio that the goal of 1.2 is about: one cache for each state, filled before."""
    old = os.environ.get("OLD")
    states = {"bare": ("bare", PROGRAM, make(work, "bare")), "kiln": ("kiln", PROGRAM, make(work, "warm")),
              **({"old kiln": ("kiln", Path(old), make(work, "warm-old"))} if old else {})}
    print("\nwarm start against the bare CUBIN, ms, medians of 31 fresh processes (quartiles), driver's cache off")
    for kernel, text in KERNELS.items():
        cubin = f"{work}/{kernel}.cubin"
        subprocess.run([str(PROGRAM), "save", str(HERE / "kernels" / f"{kernel}.cu"), cubin], check=True)
        for _ in range(2):
            for way, program, folder in states.values():
                sample(way, kernel, folder, False, program)
        took = {name: [] for name in states}
        parts = {name: {} for name in states}
        for number in range(31):
            for name in list(states)[::1 if number % 2 == 0 else -1]:
                way, program, folder = states[name]
                took[name].append(sample(way, kernel, folder, False, program, parts[name]))
        details[f"warm {kernel}"] = took
        row = f"{text:16}"
        for way, values in took.items():
            low, middle, high = statistics.quantiles(values, n=4)
            row += f"{way} {middle:7.3f} ({low:.3f}-{high:.3f})  "
        print(f"{row}kiln / bare {statistics.median(took['kiln']) / statistics.median(took['bare']):.2f}  (goal 1.2)")
        for name, values in parts.items():
            medians = ", ".join(f"{part} {statistics.median(numbers):.3f}" for part, numbers in values.items())
            if medians:
                print(f"{'':16}{name} in kiln_program_build, medians: {medians}")


def ten_kernels(work):
    rows = {}
    for heavy, name in (("mma", "run("), ("sort", "run(")):
        text = (HERE / "kernels" / f"{heavy}.cu").read_text()
        files = []
        for number in range(10):
            path = Path(work) / f"{heavy}{number}.cu"
            path.write_text(text.replace(name, f"run{number}("))
            files.append(str(path))
        for number in range(max(3, ROUNDS // 2)):
            if time.monotonic() > DEADLINE and number >= 1:
                break
            for way, jobs in (("plain NVRTC", 0), ("kiln", None), ("kiln -j1", 1)):
                env = environment(f"{work}/ten-{heavy}-{number}-{jobs}", False)
                start = time.perf_counter()
                if way == "plain NVRTC":
                    command = [str(PROGRAM), "many", *files]
                else:
                    command = [str(KILN), "compile", "--target", "cuda:sm_90", *files]
                    command[2:2] = [] if jobs is None else [f"-j{jobs}"]
                done = subprocess.run(command, env=env, capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(f"ten kernels, {way}: {done.stderr}")
                rows.setdefault((heavy, way), []).append((time.perf_counter() - start) * 1000)
    details["ten kernels"] = {" ".join(key): value for key, value in rows.items()}
    print("\nten kernels with the same heavy headers, cold, compiled only, whole processes, ms")
    for heavy in ("mma", "sort"):
        plain = statistics.median(rows[heavy, "plain NVRTC"])
        for way in ("plain NVRTC", "kiln", "kiln -j1"):
            median = statistics.median(rows[heavy, way])
            print(f"{KERNELS[heavy]:16}{way:14}{median:10.0f}{median / plain:8.2f} of plain"
                  f"{'  (goal 0.25)' if way == 'kiln' else ''}")


def start_cold(program, kernel, folder):
    return subprocess.Popen([str(program), "kiln", str(HERE / "kernels" / f"{kernel}.cu")],
                            env=dict(environment(folder, False), DETAILS="1"), text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end_cold(child):
    """(ms from a ready context to the result, ms of processor time, where it went)"""
    out, err = child.stdout.read(), child.stderr.read()
    _, _, usage = os.wait4(child.pid, 0)
    return float(out.split()[-1]), (usage.ru_utime + usage.ru_stime) * 1000, err.strip()


def cold_starts(work):
    print("\ncold start, ms, medians of 15 fresh processes (quartiles; smallest), driver's cache off")
    for kernel in ("trivial", "mma"):
        took = {"nvrtc": [], "late": [], "kiln": []}
        for number in range(15):
            if time.monotonic() > DEADLINE:
                break
            for way, values in took.items():
                folder = make(work, f"cold-{kernel}-{way}-{number}")
                values.append(sample(way, kernel, folder, False))
        details[f"cold {kernel}"] = took
        row = f"{KERNELS[kernel]:16}"
        for way, values in took.items():
            low, middle, high = statistics.quantiles(values, n=4)
            row += f"{way} {middle:7.2f} ({low:.2f}-{high:.2f}; {min(values):.2f})  "
        for way in ("nvrtc", "late"):
            row += (f"kiln / {way} {statistics.median(took['kiln']) / statistics.median(took[way]):.3f}, "
                    f"smallest {min(took['kiln']) / min(took[way]):.3f}  ")
        print(f"{row}(goal 1.03)")


def herd(work):
    print("\n8 processes cold at once; one alone and eight take turns")
    programs = {"now": PROGRAM, **({"old": Path(os.environ["OLD"])} if os.environ.get("OLD") else {})}
    for kernel in ("mma", "sort"):
        alone, slowest, rest, compiles = [], {}, {}, {}
        for number in range(int(os.environ.get("HERDS", "5"))):
            if time.monotonic() > DEADLINE:
                break
            alone.append(end_cold(start_cold(PROGRAM, kernel, make(work, f"one-{kernel}-{number}")))[0])
            for name, program in programs.items():
                folder = make(work, f"herd-{kernel}-{name}-{number}")
                ends = sorted(end_cold(child) for child in [start_cold(program, kernel, folder) for _ in range(8)])
                slowest.setdefault(name, []).append(ends[-1][0])
                rest.setdefault(name, []).append(sum(sorted(end[1] for end in ends)[:-1]) / 7)
                stats = subprocess.run([str(KILN), "stats", "--json"], env=environment(folder, False), text=True,
                                       capture_output=True).stdout
                compiles.setdefault(name, []).append(find(json.loads(stats), "compiles"))
                details[f"herd {kernel} {name} {number}"] = ends
        one = statistics.median(alone)
        for name, values in slowest.items():
            print(f"{KERNELS[kernel]:16}{name}: compiles {compiles[name]} (must be 1); one alone {one:.0f} ms "
                  f"({min(alone):.0f}-{max(alone):.0f}), slowest of 8 {statistics.median(values):.0f} "
                  f"({min(values):.0f}-{max(values):.0f}), {statistics.median(values) / one:.2f} (goal 1.1), smallest "
                  f"{min(values) / min(alone):.2f}; a process that waits: {statistics.median(rest[name]):.0f} ms of processor")


def thousand():
    program = TREE / "bin" / "bench_thousand"
    env = dict(os.environ, KILN_BENCH_KERNELS=str(HERE.parent.parent / "kernels"))
    done = subprocess.run([str(program), "cuda", os.environ.get("KERNELS", "1000"), os.environ.get("RUNS", "7")],
                          env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500)
    print(f"\n{done.stdout}{done.stderr}")
    details["thousand"] = done.stdout


def find(value, name):
    """The first number of that name anywhere in a JSON value, totals first."""
    if isinstance(value, dict):
        for part in ("total", "all"):
            if part in value and find(value[part], name) is not None:
                return find(value[part], name)
        if name in value and not isinstance(value[name], (dict, list)):
            return value[name]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            if find(part, name) is not None:
                return find(part, name)
    return None


def make(work, name):
    folder = Path(work) / name
    for part in ("kiln", "cupy", "core", "driver"):
        (folder / part).mkdir(parents=True, mode=0o700)
    return folder


def main():
    with tempfile.TemporaryDirectory() as work:
        for what in sys.argv[2:]:
            if what in ("off", "on"):
                first_results(work, what == "on")
            elif what == "warm":
                warm_starts(work)
            elif what == "ten":
                ten_kernels(work)
            elif what == "cold":
                cold_starts(work)
            elif what == "herd":
                herd(work)
            elif what == "thousand":
                thousand()
            else:
                sys.exit(f"{what}: give off, on, warm, cold, ten, herd or thousand")
            sys.stdout.flush()
    for way, why in gone.items():
        print(f"{way} left out: {why[0][:300]}")
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "cuda-bench.json").write_text(json.dumps(details, indent=1))


main()

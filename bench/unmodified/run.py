#!/usr/bin/env python3
"""Programs that nobody changed, with and without kiln: run.py [--kiln KILN] [--runs N] [--cold-runs N]
[--audit] [PROGRAM ...]

Each runs in a process of its own, from an empty home, N times in turns (the columns "cold" and "kiln"
--cold-runs times), with --audit under `kiln exec --audit`:
  cold     no cache at all              own warm   the program's own cache as its first run left it
  kiln     first run under kiln exec    warm       kiln's cache warm, the program's own cache empty
  pack     the same from a pack, kiln's cache empty
  redis    the same from a Redis server that another home's run filled (where redis-server is found)
Printed are medians in ms of the first results (imports left out), and whether results are equal and
a hit left the real NVRTC unmapped. Python's bytecode is kept for all of them."""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ["cupy_operations", "torch_jiterator", "torch_kernel", "cuda_core", "numba_kernels",
            "cuda_core_linker", "cudnn_engines", "torch_fft", "triton_matmul", "torch_compile",
            "jax_layers"]


def environment(home, kiln_home):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_") or k == "KILN_LIBEXEC"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    for name, where in {"HOME": "", "CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "cuda",
                        "PYTORCH_KERNEL_CACHE_PATH": "torch", "TRITON_CACHE_DIR": "triton",
                        "TORCHINDUCTOR_CACHE_DIR": "inductor", "XDG_CACHE_HOME": "xdg",
                        "JAX_COMPILATION_CACHE_DIR": "jax", "NUMBA_CACHE_DIR": "numba"}.items():
        env[name] = str(home / where) if where else str(home)
    (home / "torch").mkdir(parents=True, exist_ok=True)
    env["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    env["KILN_CACHE_DIR"] = str(kiln_home)
    return env


class Redis:
    """A server of this run alone; `url` is None where there is none."""

    def __init__(self, root):
        program = shutil.which("redis-server")
        self.url = self.process = None
        if program is None:
            return
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(root)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    self.url = f"redis://127.0.0.1:{port}"
                    return
            time.sleep(0.05)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Bench:
    def __init__(self, arguments, root, redis):
        self.kiln, self.root, self.redis, self.count = arguments.kiln, root, redis, 0
        self.options = ["--audit"] if arguments.audit else []
        self.cold_runs = arguments.cold_runs if arguments.cold_runs is not None else arguments.runs

    def fresh(self):
        self.count += 1
        home = self.root / f"home{self.count}"
        home.mkdir()
        return home

    def run(self, name, home, kiln_home=None, more=None):
        """Every home has one name while it is used: Inductor's sources lie in it, and their paths in PTX."""
        place = self.root / "home"
        home.rename(place)
        try:
            return self.run_in(name, place, kiln_home, more)
        finally:
            place.rename(home)

    def run_in(self, name, home, kiln_home, more):
        env = environment(home, kiln_home or self.root / "unused")
        env["PYTHONPYCACHEPREFIX"] = str(self.root / "bytecode")
        env.update(more or {})
        command = [sys.executable, str(HERE / f"{name}.py")]
        report = self.root / "report.json"
        if kiln_home is not None:
            command = [self.kiln, "exec", *self.options, "--report", str(report), "--"] + command
        done = subprocess.run(command, env=env, cwd=HERE, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1:])
        row = json.loads(done.stdout.strip().splitlines()[-1])
        row["kiln"] = json.loads(report.read_text()) if kiln_home is not None else None
        return row

    def program(self, name, runs):
        columns = {c: [] for c in ("cold", "own warm", "kiln", "warm", "pack", "redis")}
        remote = {"KILN_REMOTE": self.redis}
        own, store = self.fresh(), self.fresh()
        self.run(name, self.fresh())  # bytecode, the files of the page cache
        self.run(name, own)
        self.run(name, self.fresh(), store)
        pack = self.root / f"{name}.kpack"
        subprocess.run([self.kiln, "pack", "create", str(pack)], check=False, capture_output=True,
                       env={**os.environ, "KILN_CACHE_DIR": str(store)})
        if self.redis is not None:
            self.run(name, self.fresh(), self.fresh(), remote)
        for i in range(runs):
            if i < self.cold_runs:
                columns["cold"].append(self.run(name, self.fresh()))
                columns["kiln"].append(self.run(name, self.fresh(), self.fresh()))
            columns["own warm"].append(self.run(name, own))
            columns["warm"].append(self.run(name, self.fresh(), store))
            if pack.exists():
                columns["pack"].append(self.run(name, self.fresh(), self.fresh(),
                                                {"KILN_PACKS": str(pack)}))
            if self.redis is not None:
                columns["redis"].append(self.run(name, self.fresh(), self.fresh(), remote))
        return columns


def show(name, columns):
    cells = []
    for rows in columns.values():
        times = [row["ms"] for row in rows]
        cells.append(f"{statistics.median(times):8.0f}" if times else "       -")
    same = len({row["digest"] for rows in columns.values() for row in rows}) == 1
    warm = columns["warm"][0]
    counts = warm["kiln"]
    mapped = "mapped" if warm["nvrtc"] else "not mapped"
    print(f"{name:18s}" + "".join(cells) + f"  {'equal' if same else 'DIFFER':7s}"
          f" hits {counts['hits']}, compiled {counts['compiled']}, bypassed {counts['bypassed']};"
          f" NVRTC {mapped}", flush=True)
    for row in counts["bypasses"]:
        print(f"{'':18s}  bypassed: {row['reason']} ({row['count']})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", default="kiln")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cold-runs", type=int)
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    arguments = parser.parse_args()
    everything = {}
    root = Path(tempfile.mkdtemp(prefix="kiln-unmodified-"))
    redis = Redis(root)
    try:
        print(f"{'':18s}    cold own warm    kiln    warm    pack   redis")
        bench = Bench(arguments, root, redis.url)
        for name in arguments.programs or PROGRAMS:
            try:
                everything[name] = bench.program(name, arguments.runs)
                show(name, everything[name])
            except RuntimeError as error:
                print(f"{name:18s}  not run: {error}", flush=True)
        if arguments.json:
            Path(arguments.json).write_text(json.dumps(everything), encoding="utf-8")
    finally:
        redis.stop()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()

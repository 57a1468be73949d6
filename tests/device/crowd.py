"""crowd.py [PROCESSES]: how often Triton compiles when processes start together on an empty cache, on a machine with a GPU.

Runs one process, and then PROCESSES at once (default 8), each without kiln and under `kiln exec`: 16 kernels each, an empty home
each time. Prints Triton's own compiles (its listener's misses) of each, and the ratios. KILN names the command (default: the one
next to this Python). Fails if the crowd under kiln compiles more than 1.2 times what one process does, or kernels give wrong
results. Exit code 77: no Triton.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time

KERNELS = 16

#: One process. Its kernels differ in a constant, so that each is compiled; the line of its end counts.
PROGRAM = f"""
import importlib.util, os, sys, time
import torch, triton

place = os.path.join(os.environ["CROWD_HOME"], "crowd_kernels.py")
spec = importlib.util.spec_from_file_location("crowd_kernels", place)
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)

compiled = 0

def listen(src, metadata, metadata_group, times, cache_hit):
    global compiled
    compiled += not cache_hit

triton.knobs.compilation.listener = listen
x = torch.arange(4096, device="cuda", dtype=torch.float32)
y = torch.empty_like(x)
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.readline()
start = time.perf_counter()
for number in range({KERNELS}):
    kernels.scale[(4,)](x, y, number, 1024)
    torch.cuda.synchronize()
    assert torch.equal(y, x * (number + 2)), number
waited = 0
try:
    import kiln
    waited = kiln.default_cache().stats()["wait_timeouts"] if "KILN_PYTHON" in os.environ else 0
except ImportError:
    pass
print(compiled, round((time.perf_counter() - start) * 1000), waited, flush=True)
"""

#: Triton reads a kernel's source from its file.
SOURCE = """
import triton
import triton.language as tl


@triton.jit
def scale(x, y, number: tl.constexpr, n: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y + i, tl.load(x + i) * (number + 2))
"""


def run(processes: int, command: list[str]) -> tuple[int, int]:
    """Compiles of all, and the milliseconds of the slowest."""
    home = tempfile.mkdtemp(prefix="crowd-")
    try:
        with open(os.path.join(home, "crowd_kernels.py"), "w") as file:
            file.write(SOURCE)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
        environment.update(HOME=home, XDG_CACHE_HOME=home, KILN_CACHE_DIR=os.path.join(home, "kiln"), CROWD_HOME=home)
        crowd = [
            subprocess.Popen(
                [*command, sys.executable, "-c", PROGRAM],
                env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for _ in range(processes)
        ]  # fmt: skip
        for process in crowd:
            assert process.stdout is not None and process.stdout.readline().strip() == "ready"
        for process in crowd:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [process.communicate(timeout=500)[0].split() for process in crowd]
        assert all(process.returncode == 0 for process in crowd), [process.returncode for process in crowd]
        timeouts = sum(int(words[2]) for words in said)
        if timeouts:
            print(f"FAILED  {timeouts} waits took too long")
        return sum(int(words[0]) for words in said), max(int(words[1]) for words in said)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def main() -> int:
    try:
        import torch
        import triton
    except ImportError as error:
        print(f"SKIP: {error}")
        return 77
    if not torch.cuda.is_available():
        print("SKIP: no GPU")
        return 77
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    beside = os.path.join(os.path.dirname(sys.executable), "kiln")
    kiln = os.environ.get("KILN") or (beside if os.path.exists(beside) else "kiln")
    print(f"triton {triton.__version__}, {KERNELS} kernels, {time.strftime('%Y-%m-%d')}")
    alone, ratio = 0, 0.0
    commands: dict[str, list[str]] = {"alone": [], "kiln": [kiln, "exec", "--"]}
    for name, command in commands.items():
        for count in (1, processes):
            compiles, slowest = run(count, command)
            alone = alone or compiles
            ratio = compiles / alone
            print(f"{name:6} {count} process(es): {compiles} compiles, ratio {ratio:.2f}, the slowest {slowest} ms", flush=True)
    good = ratio <= 1.2
    print("ok" if good else "FAILED  more than 1.2 times the compiles of one process")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

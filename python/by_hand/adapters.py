#!/usr/bin/env python3
"""adapters.py: kiln's adapters against the real Triton, PyTorch, JAX and cuda.core, each where it is installed and there is a GPU.

Not part of the suite, which has stand-ins of their interfaces (python/tests). Each check runs in processes of its own, from an
empty home; what it prints last is what became of it."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"

TRITON = """
import torch, triton, triton.language as tl
import kiln, kiln.triton
from triton.runtime.cache import CacheManager
assert issubclass(kiln.triton.CacheManager, CacheManager)

@triton.jit
def twice(x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(x + i, tl.load(x + i) * 2)

x = torch.ones(64, device="cuda")
twice[(1,)](x, 64)
assert x.sum().item() == 128
stats = kiln.default_cache().stats()
print("put", stats["puts"], "found", stats["hits_disk"], "missed", stats["misses"])
"""

INDUCTOR = """
import kiln.inductor
kiln.inductor.install()
import torch._inductor.remote_cache as remote
for name in kiln.inductor.CACHES:
    cache = getattr(remote, name, None)
    if cache is None:
        print(name, "is not in this PyTorch", end="; ")
        continue
    one = cache("by-hand")
    assert isinstance(one.backend, remote.RemoteCacheBackend)
    had = one.get("key")
    one.put("key", {"data": name})
    assert one.get("key") == {"data": name}
    print(name, "found" if had else "new", end="; ")
print()
"""

JAX = """
import kiln, kiln.jax, time
kiln.jax.install(min_compile_seconds=0)
import jax, jax.numpy as jnp
from jax._src.compilation_cache_interface import CacheInterface
print(jax.__version__, end=" ")
assert float(jax.jit(lambda x: jnp.sin(x @ x).sum())(jnp.ones((64, 64)))) != 0
stats = kiln.default_cache().stats()
print("put", stats["puts"], "found", stats["hits_disk"], "missed", stats["misses"])
"""

CUDA_CORE = """
import os
from cuda.core import Device, ObjectCode, Program, ProgramOptions
from cuda.core.utils import ProgramCacheResource
import kiln, kiln.cuda_core
device = Device(0)
device.set_current()
arch = "sm_" + "".join(str(i) for i in device.compute_capability)
assert issubclass(kiln.cuda_core.ProgramCache, ProgramCacheResource)
with kiln.cuda_core.ProgramCache() as cache:
    options = ProgramOptions(std="c++17", arch=arch)
    code = Program('extern "C" __global__ void one(int *x) { x[0] = 1; }', "c++", options).compile("cubin", cache=cache)
    assert code.get_kernel("one") and len(cache) == 1, len(cache)
os.makedirs("include", exist_ok=True)
compiles = []
for value in (1, 1, 2):
    open("include/by.h", "w").write(f"#define BY {value}\\n")
    options = ProgramOptions(std="c++17", arch=arch, include_path=os.path.abspath("include"), name="by_hand.cu")
    text = '#include <by.h>\\ntemplate <typename T> __global__ void scale(T *x) { x[0] *= BY; }'
    before = kiln.default_cache().stats()["compiles"]
    code = kiln.cuda_core.compile(text, "c++", "cubin", options, ["scale<float>"])
    assert isinstance(code, ObjectCode) and code.get_kernel("scale<float>")
    compiles.append(kiln.default_cache().stats()["compiles"] - before)
print("compiled", compiles, "cuda.core's own misses and hits:", {k: v for k, v in kiln.default_cache().stats().items() if v and k in ("puts", "hits_disk", "hits_memory")})
"""

RACE = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_triton import race
print("mixed and failed, by process:", race(Path(sys.argv[2]), sys.argv[3]))
"""
STOCK = "__import__('triton.runtime.cache', fromlist=['x']).FileCacheManager"
KILN = "__import__('kiln.triton').triton.CacheManager"


def run(title, program, home, *arguments, **variables):
    place = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "KILN_CACHE_DIR": f"{home}/kiln"}
    environment = {**os.environ, **place, **variables}
    ran = subprocess.run([sys.executable, "-c", program, *arguments], env=environment, cwd=home, capture_output=True, text=True)
    said = (ran.stdout if ran.returncode == 0 else ran.stderr).strip().splitlines() or [""]
    print(f"{title:34} {'ok    ' if ran.returncode == 0 else 'FAILED'} {said[-1] if ran.returncode == 0 else said[-4:]}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as root:
        for title, program, variables in (
            ("Triton", TRITON, {"TRITON_CACHE_MANAGER": "kiln.triton:CacheManager"}),
            ("Triton, RemoteCacheManager", TRITON, {"TRITON_CACHE_MANAGER": "triton.runtime.cache:RemoteCacheManager",
                                                    "TRITON_REMOTE_CACHE_BACKEND": "kiln.triton:Remote"}),
            ("Inductor", INDUCTOR, {}),
            ("JAX", JAX, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
            ("cuda.core", CUDA_CORE, {}),
        ):
            home = Path(tempfile.mkdtemp(dir=root))
            # Triton's kernels are named by their files.
            (home / "program.py").write_text(program)
            start = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
            for turn in ("first", "second"):
                run(f"{title}, {turn} process", start, home, str(home / "program.py"), **variables)
        for title, manager in (("Triton's own manager", STOCK), ("kiln's", KILN)):
            home = Path(tempfile.mkdtemp(dir=root))
            run(f"race: {title}", RACE, home, str(TESTS), str(home), manager)


if __name__ == "__main__":
    main()

"""A kernel of Triton's under `kiln exec`: kiln's manager is in place, and a child without kiln has Triton's own."""

import sys

sys.path.append(sys.path.pop(0))  # this directory has a triton.py
import leak  # noqa: E402

leak.skip_without("torch")
leak.skip_without("triton")
import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime.cache import CacheManager, get_cache_manager  # noqa: E402

import kiln  # noqa: E402
import kiln.triton  # noqa: E402


@triton.jit
def twice(x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(x + i, tl.load(x + i) * 2)


manager = get_cache_manager("ab" * 32)
assert isinstance(manager, kiln.triton.CacheManager) and isinstance(manager, CacheManager)
x = torch.ones(64, device="cuda")
twice[(1,)](x, 64)
assert x.sum().item() == 128
stats = kiln.default_cache().stats()
assert stats["puts"] > 0, stats
child = leak.check(
    "from triton.runtime.cache import get_cache_manager\nprint(type(get_cache_manager('ab' * 32)).__name__)"
)
assert child == "FileCacheManager", child
loader = type(sys.modules["triton.runtime.cache"].__loader__).__name__
assert loader == "SourceFileLoader", loader
print(f"triton {triton.__version__}: {stats['puts']} put; a child without kiln uses {child}")

"""kiln: GPU kernels compiled once, and found ever after.

>>> import kiln, tempfile
>>> directory = tempfile.TemporaryDirectory()
>>> cache = kiln.Cache(directory.name)
>>> recipe = kiln.Recipe("my-engine.spirv", 1, source="void main() {}", compiler="1.0")
>>> bytes(cache.get_or_compile(recipe, lambda: b"what the compiler made"))
b'what the compiler made'
>>> cache.close()

Adapters of other projects are modules of their own, imported by those who use them: `kiln.triton`, `kiln.cuda_core`,
`kiln.inductor`, `kiln.jax`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kiln._library import VERSION as __version__
from kiln.blob import Blob
from kiln.cache import Cache, default_cache
from kiln.errors import (
    BusyError,
    CancelledError,
    CompileError,
    CorruptError,
    DeviceLostError,
    Error,
    InternalError,
    InvalidError,
    OutOfMemoryError,
    RejectedError,
    StorageError,
    TimeLimitError,
    UnavailableError,
    UnsupportedError,
)
from kiln.recipe import Key, Recipe

__all__ = [
    "Blob",
    "BusyError",
    "Cache",
    "CancelledError",
    "CompileError",
    "CorruptError",
    "DeviceLostError",
    "Difference",
    "Error",
    "Explanation",
    "InternalError",
    "InvalidError",
    "Key",
    "OutOfMemoryError",
    "Recipe",
    "RejectedError",
    "StorageError",
    "TimeLimitError",
    "UnavailableError",
    "UnsupportedError",
    "__version__",
    "default_cache",
]

_LAZY = {
    "Buffer": "kiln.runtime",
    "Device": "kiln.runtime",
    "Difference": "kiln.explain",
    "Explanation": "kiln.explain",
    "Program": "kiln.runtime",
    "Queue": "kiln.runtime",
    "Runtime": "kiln.runtime",
    "Source": "kiln.source",
    "nvrtc": "kiln.nvrtc",
    "opencl": "kiln.opencl",
}

if TYPE_CHECKING:
    from kiln import nvrtc as nvrtc
    from kiln import opencl as opencl
    from kiln.explain import Difference as Difference
    from kiln.explain import Explanation as Explanation
    from kiln.runtime import Buffer as Buffer
    from kiln.runtime import Device as Device
    from kiln.runtime import Program as Program
    from kiln.runtime import Queue as Queue
    from kiln.runtime import Runtime as Runtime
    from kiln.source import Source as Source


def __getattr__(name: str) -> Any:
    # Level 1 is what adapters import at every start: the rest is imported when it is used.
    if name not in _LAZY:
        raise AttributeError(f"module 'kiln' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    return module if name in ("nvrtc", "opencl") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})

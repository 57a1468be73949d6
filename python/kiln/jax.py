"""JAX's compilation cache in kiln's tiers.

One line, before the first ``jit`` compiles (`kiln exec` needs none)::

    import kiln.jax
    kiln.jax.install()

A directory that the program names itself (``JAX_COMPILATION_CACHE_DIR``) goes on being used, behind kiln. An entry is an
executable, which XLA loads into this process: it is not taken from a remote that nobody signed (docs/security.md).
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, Optional

from kiln._entries import Entries

_ENTRIES = Entries("cpu.jax", "jax")


class CompilationCache:
    """JAX's ``CacheInterface`` on kiln, in front of the cache that the program would have.

    Parameters
    ----------
    own : CacheInterface, optional
        The program's own.
    path : str, optional
        The directory of that one, as JAX names it in messages.
    """

    def __init__(self, own: Any = None, path: str = "") -> None:
        self._own = own
        self._path = Path(path)

    def get(self, key: str) -> Optional[bytes]:
        """An executable as JAX packed it, or None on a miss."""
        if not key:
            raise ValueError("key cannot be empty")
        blob = _ENTRIES.get(key=key)
        if blob is not None:
            return bytes(blob)
        found: Optional[bytes] = self._own.get(key) if self._own is not None else None
        if found is not None:
            _ENTRIES.put(found, key=key)
        return found

    def put(self, key: str, value: bytes) -> None:
        """Stores one, in both."""
        if not key:
            raise ValueError("key cannot be empty")
        _ENTRIES.put(value, key=key)
        if self._own is not None:
            self._own.put(key, value)

    def clear(self) -> None:
        """Clears the program's own; kiln's is cleared by ``kiln clear``."""
        if hasattr(self._own, "clear"):
            self._own.clear()


def _directory() -> str:
    """Where XLA keeps what it writes by itself, next to a cache in a directory."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "kiln-jax")


def install(module: Any = None, config: Any = None, *, min_compile_seconds: Optional[float] = None) -> None:
    """Puts kiln where JAX opens its compilation cache, and switches that on.

    Parameters
    ----------
    module : module, optional
        ``jax._src.compilation_cache``. Default: imported.
    config : object, optional
        ``jax.config``. Default: imported.
    min_compile_seconds : float, optional
        What takes less to compile is not stored, in seconds. Default: as JAX is configured (1 s).
    """
    module = module or importlib.import_module("jax._src.compilation_cache")
    config = config or importlib.import_module("jax._src.config").config
    named: Optional[str] = getattr(config, "jax_compilation_cache_dir", None)
    make = module.get_file_cache
    if not getattr(make, "_kiln", False):

        def get_file_cache(path: str) -> Any:
            # A directory that the program did not name is not made.
            own = make(path) if named or path != _directory() else None
            return CompilationCache(own[0] if own is not None else None, path), path

        get_file_cache._kiln = True  # type: ignore[attr-defined]
        module.get_file_cache = get_file_cache
    if not named:
        config.update("jax_compilation_cache_dir", _directory())
    if min_compile_seconds is not None:
        config.update("jax_persistent_cache_min_compile_time_secs", min_compile_seconds)

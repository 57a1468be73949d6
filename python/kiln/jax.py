"""JAX's compilation cache in kiln's tiers.

One line, before the first ``jit`` compiles (`kiln exec` needs none)::

    import kiln.jax
    kiln.jax.install()

A directory that the program names itself (``JAX_COMPILATION_CACHE_DIR``) goes on being used, behind kiln. An entry is an
executable, which XLA loads into this process: it is not taken from a remote that nobody signed (docs/operate/security.md).
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, Optional

from kiln import _claims
from kiln._entries import Entries, say_once, version_of
from kiln.blob import Blob

_ENTRIES = Entries("cpu.jax", "jax")


class CompilationCache:
    """A cache as JAX's ``CacheInterface`` wants it, in front of the cache that the program would have.

    `install` puts one there that is of JAX's class as well.

    Parameters
    ----------
    own : CacheInterface, optional
        The program's own.
    path : str, optional
        The directory of that one, as JAX names it in messages.
    config : object, optional
        ``jax.config``, which may say that contents are checked: the program's own is asked alone then.
    """

    def __init__(self, own: Any = None, path: str = "", config: Any = None) -> None:
        self._own = own
        self._path = Path(path)
        self._config = config

    def get(self, key: str) -> Optional[bytes]:
        """An executable as JAX packed it, or None on a miss."""
        if not key:
            raise ValueError("key cannot be empty")
        ours = not _checks_contents(self._config)
        blob = _find(key, self._config) if ours else None
        if blob is not None:
            return bytes(blob)
        found: Optional[bytes] = self._own.get(key) if self._own is not None else None
        if found is not None and ours:
            _ENTRIES.put(found, key=key)
        return found

    def put(self, key: str, value: bytes) -> None:
        """Stores one, in both."""
        if not key:
            raise ValueError("key cannot be empty")
        if not _checks_contents(self._config):
            _ENTRIES.put(value, key=key)
        if self._own is not None:
            self._own.put(key, value)

    def clear(self) -> None:
        """Clears the program's own; kiln's is cleared by ``kiln clear``."""
        if hasattr(self._own, "clear"):
            self._own.clear()


def _class_of(module: Any) -> Any:
    """`CompilationCache` as a subclass of the ``CacheInterface`` that a module of JAX's has, if it has one; None if that wants
    more than kiln knows."""
    interface = getattr(module, "CacheInterface", None)
    if not isinstance(interface, type):
        return CompilationCache
    members = {"__module__": __name__, "__doc__": CompilationCache.__doc__}
    made = type(interface)("CompilationCache", (CompilationCache, interface), members)
    missing = ", ".join(sorted(getattr(made, "__abstractmethods__", ())))
    if missing:
        say_once("adapting JAX", LookupError(f"the caches of {version_of('jax')} have {missing}, which kiln's do not"))
        return None
    return made


def _directory() -> str:
    """What JAX is told to be the directory where the program names none. Nothing is written there."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "kiln-jax")


def install(module: Any = None, config: Any = None, *, min_compile_seconds: Optional[float] = None) -> None:
    """Puts kiln where JAX opens its compilation cache, and switches that on.

    With ``jax_compilation_cache_check_contents`` JAX compares what is compiled with what its cache has: kiln is out of the
    way then.

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
    if hasattr(sys.modules.get("jax._src.compiler"), "compile_or_get_cached"):
        share(sys.modules["jax._src.compiler"])
    make = module.get_file_cache
    if not getattr(make, "_kiln", False):
        made = _class_of(module)
        if made is None:
            return

        def get_file_cache(path: str) -> Any:
            # A directory that the program did not name is not made.
            ours = not named and path == _directory()
            if _checks_contents(config):
                return None if ours else make(path)
            own = None if ours else make(path)
            return made(own[0] if own is not None else None, path, config), path

        get_file_cache._kiln = True  # type: ignore[attr-defined]
        module.get_file_cache = get_file_cache
    if not named and not _checks_contents(config):
        # XLA would keep files of its own below the directory, and fail where it cannot make it.
        if hasattr(config, "jax_persistent_cache_enable_xla_caches"):
            config.update("jax_persistent_cache_enable_xla_caches", "")
        config.update("jax_compilation_cache_dir", _directory())
    if min_compile_seconds is not None:
        config.update("jax_persistent_cache_min_compile_time_secs", min_compile_seconds)


def share(module: Any) -> None:
    """Has processes that start together compile each program once: those of one job aside (``jax.distributed``), and where
    everything that is compiled is stored (``jax_persistent_cache_min_compile_time_secs`` is 0). With a threshold a process
    would wait for what is then not stored.

    Parameters
    ----------
    module : module
        ``jax._src.compiler``, whose ``compile_or_get_cached`` asks for a program, and puts it unless it raises.
    """
    if not _claims.span_in(module, "compile_or_get_cached"):
        why = f"{version_of('jax')} has no function compile_or_get_cached that kiln knows"
        say_once("sharing JAX's compiles", LookupError(why))


def _find(key: str, config: Any) -> Optional[Blob]:
    return _ENTRIES.get_or_claim(key=key) if _stores_everything(config) else _ENTRIES.get(key=key)


def _stores_everything(config: Any) -> bool:
    job: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    seconds = getattr(config, "jax_persistent_cache_min_compile_time_secs", 1.0)
    size = getattr(config, "jax_persistent_cache_min_entry_size_bytes", 0)
    return seconds <= 0 and size <= 0 and getattr(job, "client", None) is None


def _checks_contents(config: Any) -> bool:
    return bool(getattr(config, "jax_compilation_cache_check_contents", False))

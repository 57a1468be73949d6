"""What a Python does at its start under `kiln exec`: adapters go in when what they adapt to is imported.

`kiln.pth` imports this module where ``KILN_PYTHON`` is set, and only there. Nothing is imported early: a finder waits for three
modules, and leaves `sys.meta_path` as it was for all others.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any, Callable, Optional, Sequence


def _inductor(module: ModuleType) -> None:
    importlib.import_module("kiln.inductor").install(module)


def _triton(module: ModuleType) -> None:
    # Triton imports what the variable names, and fails where it cannot: it is set when that is there.
    importlib.import_module("kiln.triton")
    os.environ.setdefault("TRITON_CACHE_MANAGER", "kiln.triton:CacheManager")
    importlib.import_module("kiln._triton_key").install(module)


def _jax(module: ModuleType) -> None:
    importlib.import_module("kiln.jax").install(module)


_HOOKS: dict[str, Callable[[ModuleType], None]] = {
    "torch._inductor.remote_cache": _inductor,
    "jax._src.compilation_cache": _jax,
    "triton.runtime.cache": _triton,
}


class _Loader(importlib.abc.Loader):
    """The module's own loader, and then the adapter."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader, self._name = loader, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        created: Optional[ModuleType] = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        try:
            _HOOKS[self._name](module)
        except Exception as error:  # the program goes on as if kiln were not there
            import logging

            logging.getLogger("kiln").warning("kiln: cannot adapt %s: %s", self._name, error)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in _HOOKS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, name)
        return spec


def start() -> None:
    """Sets the variables that adapters are switched on by, and waits for the modules."""
    if os.environ.get("KILN_DISABLE", "") not in ("", "0"):
        return
    for name in (
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE",
        "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE",
        "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE",
    ):
        os.environ.setdefault(name, "1")
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


start()

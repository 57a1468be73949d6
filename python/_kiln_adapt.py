"""Puts an adapter into a module when that has been imported (`_kiln_start`)."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional, Sequence


class _Loader:
    """The module's own loader, and then the adapter. Nothing is put into the environment, which children inherit that may
    not have kiln."""

    def __init__(self, loader: Any, adapter: str) -> None:
        self._loader, self._adapter = loader, adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        created: Optional[ModuleType] = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        # Resources, pkgutil and reload ask the loader that made it.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            place, _, function = self._adapter.partition(":")
            getattr(importlib.import_module(place), function)(module)
        except Exception as error:  # the program goes on as if kiln were not there
            import logging

            logging.getLogger("kiln").warning("kiln: cannot adapt %s: %s", module.__name__, error)


def find_spec(
    asked: object, adapter: str, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType]
) -> Optional[ModuleSpec]:
    """What the finders besides the one that was asked find, with a loader that adapts it."""
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec: Optional[ModuleSpec] = find(name, path, target) if find is not None and finder is not asked else None
        if spec is not None:
            if hasattr(spec.loader, "exec_module"):
                loader: Any = _Loader(spec.loader, adapter)
                spec.loader = loader
            return spec
    return None

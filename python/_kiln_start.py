"""What a Python does at its start under `kiln exec`: adapters go in when what they adapt to is imported.

`kiln.pth` imports this module where ``KILN_PYTHON`` is set, and only there. Every Python under `kiln exec` pays for what is
imported here, so that is nothing that Python has not imported itself: a finder waits for three modules. Nothing is put into
the environment, which children inherit that may not have kiln.
"""

import os
import sys

MYPY = False  # what type checkers take for true
if MYPY:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional, Sequence

#: The adapters by the module that each waits for.
_HOOKS = {
    "torch._inductor.remote_cache": "kiln.inductor",
    "jax._src.compilation_cache": "kiln.jax",
    "triton.runtime.cache": "kiln.triton",
}


class _Loader:
    """The module's own loader, and then the adapter."""

    def __init__(self, loader: "Any", adapter: str) -> None:
        self._loader, self._adapter = loader, adapter

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def create_module(self, spec: "ModuleSpec") -> "Optional[ModuleType]":
        created: "Optional[ModuleType]" = self._loader.create_module(spec)
        return created

    def exec_module(self, module: "ModuleType") -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            __import__(self._adapter)
            sys.modules[self._adapter].install(module)
        except Exception as error:  # the program goes on as if kiln were not there
            import logging

            logging.getLogger("kiln").warning("kiln: cannot adapt %s: %s", module.__name__, error)


class _Finder:
    """Leaves what is found to the finders after it, and what is not waited for alone."""

    def find_spec(
        self, name: str, path: "Optional[Sequence[str]]" = None, target: "Optional[ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        adapter = _HOOKS.get(name)
        if adapter is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: "Optional[ModuleSpec]" = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    loader: "Any" = _Loader(spec.loader, adapter)
                    spec.loader = loader
                return spec
        return None


def start() -> None:
    """Waits for the modules."""
    if os.environ.get("KILN_DISABLE", "") not in ("", "0"):
        return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        waiting: "Any" = _Finder()
        sys.meta_path.insert(0, waiting)


start()

"""What a Python does at its start under `kiln exec`: adapters go in when what they adapt to is imported.

`kiln.pth` imports this module where ``KILN_PYTHON`` is set, and only there. Every Python under `kiln exec` pays for it, and
where no bytecode can be written for compiling it, too: so it is short, and imports nothing that Python has not imported.
"""

import os
import sys

MYPY = False  # what type checkers take for true
if MYPY:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional, Sequence

#: The adapters by the module that each waits for, with the function that takes it.
ADAPTERS = {
    "jax._src.compilation_cache": "kiln.jax:install",
    "jax._src.compiler": "kiln.jax:share",
    "torch._inductor.compile_fx": "kiln.inductor:share",
    "torch._inductor.remote_cache": "kiln.inductor:install",
    "triton.compiler.compiler": "kiln.triton:share",
    "triton.runtime.cache": "kiln.triton:install",
}


class Finder:
    """Passes over what is not waited for."""

    def find_spec(
        self, name: str, path: "Optional[Sequence[str]]" = None, target: "Optional[ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        if name not in ADAPTERS:
            return None
        import _kiln_adapt

        return _kiln_adapt.find_spec(self, ADAPTERS[name], name, path, target)


def start() -> None:
    """Waits for the modules."""
    if os.environ.get("KILN_DISABLE", "") in ("", "0"):
        finder: "Any" = Finder()
        sys.meta_path.insert(0, finder)


start()

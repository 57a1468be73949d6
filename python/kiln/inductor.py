"""torch.compile's remote caches in kiln's tiers: FX graphs, AOTAutograd, autotuning.

Inductor looks into its remote caches after its directory, and fills both. `install` puts kiln where it has Redis::

    import kiln.inductor
    kiln.inductor.install()        # before torch.compile; `kiln exec` does it by itself

Profiles of Dynamo have no place here: their key is the name of a job, and an entry of kiln's never changes.

An entry holds pickles and source code, which run on the host: it is not taken from a remote that nobody signed
(docs/operate/security.md).
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Optional

from kiln import _claims
from kiln._entries import Entries, say_once, version_of

#: The classes of Inductor's that have a backend of their own, and what switches each on: a module, and its attribute.
CACHES = {
    "RemoteFxGraphCache": ("torch._inductor.config", "fx_graph_remote_cache"),
    "RemoteAOTAutogradCache": ("torch._functorch.config", "enable_remote_autograd_cache"),
    "RemoteAutotuneCache": ("torch._inductor.config", "autotune_remote_cache"),
    "RemoteBundledAutotuneCache": ("torch._inductor.config", "bundled_autotune_remote_cache"),
}

_ENTRIES = Entries("cpu.inductor", "inductor")


def _shares() -> bool:
    """Ranks of one job may wait for each other in a compile; they must not wait for a claim besides."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        return distributed is None or not (distributed.is_available() and distributed.is_initialized())
    except AttributeError:
        return False


class Backend:
    """A ``RemoteCacheBackend`` of Inductor's: bytes by Inductor's keys. A failure of the cache is a miss."""

    #: Whether what is not found is compiled and put within `share`'s function.
    claims = False

    def _get(self, key: str) -> Optional[bytes]:
        blob = _ENTRIES.get_or_claim(key=key) if self.claims and _shares() else _ENTRIES.get(key=key)
        return None if blob is None else bytes(blob)

    def _put(self, key: str, data: bytes) -> None:
        _ENTRIES.put(data, key=key)


def backend(claims: bool = False) -> Any:
    """A backend that is also of Inductor's own class, which counts its hits."""
    module: Any = importlib.import_module("torch._inductor.remote_cache")
    return type("KilnBackend", (Backend, module.RemoteCacheBackend), {"claims": claims})()


def share(module: Any) -> None:
    """Has processes that start together compile each graph once, unless they are ranks of one job (``torch.distributed``).

    Parameters
    ----------
    module : module
        ``torch._inductor.compile_fx``, whose ``_compile_fx_inner`` asks for a graph, and puts it if it can be stored.
    """
    if not _claims.span_in(module, "_compile_fx_inner"):
        why = f"{version_of('torch')} has no function _compile_fx_inner that kiln knows"
        say_once("sharing Inductor's compiles", LookupError(why))


def install(module: Any = None) -> None:
    """Puts kiln behind Inductor's remote caches, and switches on those that the user has not switched off.

    Parameters
    ----------
    module : module, optional
        ``torch._inductor.remote_cache``. Default: imported.

    Notes
    -----
    Where a backend of the user's is set (``backend_override_cls``), it stays, and its cache is not switched on. Only this
    process is switched: a child process may have no kiln, and would look for a server of Redis.
    """
    module = module or importlib.import_module("torch._inductor.remote_cache")
    if hasattr(sys.modules.get("torch._inductor.compile_fx"), "_compile_fx_inner"):
        share(sys.modules["torch._inductor.compile_fx"])
    for name, switch in CACHES.items():
        cache: Any = getattr(module, name, None)
        if not hasattr(cache, "backend_override_cls"):
            why = f"{version_of('torch')} has no {name} with a backend that can be replaced"
            say_once(f"adapting Inductor's {name}", LookupError(why))
        elif cache.backend_override_cls is None:
            # The other caches have results that are made long after they were asked for, or measured.
            claims = name == "RemoteFxGraphCache"
            cache.backend_override_cls = staticmethod(functools.partial(backend, claims=claims))
            _switch_on(*switch)


def _switch_on(module: str, name: str) -> None:
    """Where nobody has decided: None in the configuration, as without a variable."""
    try:
        config = importlib.import_module(module)
        if getattr(config, name) is None:
            setattr(config, name, True)
            # What is set counts in this context alone from PyTorch 2.12 on; the default counts in all threads.
            entry = vars(config).get("_config", {}).get(name)
            if getattr(entry, "default", False) is None:
                entry.default = True
    except (ImportError, AttributeError) as error:
        say_once(f"switching on {module}.{name} of {version_of('torch')}", error)

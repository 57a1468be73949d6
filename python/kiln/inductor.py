"""torch.compile's remote caches in kiln's tiers: FX graphs, AOTAutograd, autotuning, profiles of Dynamo.

Inductor looks into its remote caches after its directory, and fills both. `install` puts kiln where it has Redis::

    import kiln.inductor
    kiln.inductor.install()        # before torch.compile; `kiln exec` does it by itself

An entry holds pickles and source code, which run on the host: it is not taken from a remote that nobody signed
(docs/security.md).
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Optional

from kiln._entries import Entries

#: The classes of Inductor's that have a backend of their own.
CACHES = (
    "RemoteFxGraphCache",
    "RemoteAOTAutogradCache",
    "RemoteAutotuneCache",
    "RemoteBundledAutotuneCache",
    "RemoteDynamoPGOCache",
)

#: What switches them on, unless the user said otherwise.
SWITCHES = (
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE",
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE",
    "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE",
)

_ENTRIES = Entries("cpu.inductor", "inductor")


class Backend:
    """A ``RemoteCacheBackend`` of Inductor's: bytes by Inductor's keys. A failure of the cache is a miss."""

    def _get(self, key: str) -> Optional[bytes]:
        blob = _ENTRIES.get(key=key)
        return None if blob is None else bytes(blob)

    def _put(self, key: str, data: bytes) -> None:
        _ENTRIES.put(data, key=key)


def backend() -> Any:
    """A backend that is also of Inductor's own class, which counts its hits."""
    module: Any = importlib.import_module("torch._inductor.remote_cache")
    return type("KilnBackend", (Backend, module.RemoteCacheBackend), {})()


def install(module: Any = None) -> None:
    """Puts kiln behind Inductor's remote caches, and switches on those that the user has not switched off.

    Parameters
    ----------
    module : module, optional
        ``torch._inductor.remote_cache``. Default: imported.

    Notes
    -----
    Where a backend of the user's is set (``backend_override_cls``), it stays. The switches are variables of the
    environment, which torch reads when it is imported: call this before ``import torch``, or set them.
    """
    switch_on()
    module = module or importlib.import_module("torch._inductor.remote_cache")
    for name in CACHES:
        cache = getattr(module, name, None)
        if cache is not None and cache.backend_override_cls is None:
            cache.backend_override_cls = staticmethod(backend)


def switch_on() -> None:
    """Sets the variables of `SWITCHES` that are not set; of a torch that has been imported, its configuration."""
    for name in SWITCHES:
        os.environ.setdefault(name, "1")
    config = sys.modules.get("torch._inductor.config")
    if config is not None:
        for name in ("fx_graph_remote_cache", "autotune_remote_cache", "bundled_autotune_remote_cache"):
            if getattr(config, name, False) is None:
                setattr(config, name, True)

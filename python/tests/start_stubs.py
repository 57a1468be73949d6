"""torch, jax and triton, as far as their caches go, as files of packages: strict where the real ones are."""

from __future__ import annotations

from pathlib import Path

#: As torch reads its variables.
READ = """
import os

def read(name):
    return {"1": True, "0": False}.get(os.environ.get(name))
"""

INDUCTOR_CONFIG = (
    READ
    + """
fx_graph_remote_cache = read("TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE")
autotune_remote_cache = read("TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE")
bundled_autotune_remote_cache = read("TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE")
"""
)

FUNCTORCH_CONFIG = READ + 'enable_remote_autograd_cache = read("TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE")\n'

REMOTE_CACHE = """
from torch._inductor import config

class RemoteFxGraphCache:
    backend_override_cls = None

class RemoteAOTAutogradCache:
    backend_override_cls = None

class RemoteAutotuneCache:
    backend_override_cls = None

class RemoteBundledAutotuneCache:
    backend_override_cls = None
"""

#: triton.knobs from 3.4 on: a value that was set counts, else the variable, whose class must be there.
KNOBS = """
import importlib, os

class env_class:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner=None):
        # Of the class alone it cannot be asked.
        if self.name in obj.__dict__:
            return obj.__dict__[self.name]
        value = os.environ.get("TRITON_CACHE_MANAGER")
        if value is None:
            return None
        module, name = value.split(":")
        found = getattr(importlib.import_module(module), name)
        if not any(base.__name__ == "CacheManager" for base in found.mro()):
            raise RuntimeError("not of type 'CacheManager'")
        return found

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value
        if value is None or type(value) in (bool, str, int):  # what fits into a variable goes there
            os.environ["TRITON_CACHE_MANAGER"] = str(value)

class cache_knobs:
    manager_class = env_class()

cache = cache_knobs()
"""

_MANAGERS = """
class CacheManager:
    def __init__(self, key):
        pass

class FileCacheManager(CacheManager):
    pass

class RemoteCacheBackend:
    pass
"""

TRITON = "from triton import knobs\n" + _MANAGERS + """
def get_cache_manager(key):
    return (knobs.cache.manager_class or FileCacheManager)(key)
"""

#: Before 3.4: the variable is read at each call.
OLD_TRITON = "import importlib, os\n" + _MANAGERS + """
__cache_cls = FileCacheManager
__cache_cls_nme = "DEFAULT"

def get_cache_manager(key):
    global __cache_cls, __cache_cls_nme
    named = os.environ.get("TRITON_CACHE_MANAGER")
    if named is not None and named != __cache_cls_nme:
        module, name = named.split(":")
        __cache_cls = getattr(importlib.import_module(module), name)
        __cache_cls_nme = named
    return __cache_cls(key)
"""

JAX_CONFIG = """
class config:
    jax_compilation_cache_dir = None

    @classmethod
    def update(cls, name, value):
        setattr(cls, name, value)
"""


def write(place: Path) -> None:
    """The packages, below `place`."""
    files = {
        "torch/_inductor/config.py": INDUCTOR_CONFIG,
        "torch/_inductor/remote_cache.py": REMOTE_CACHE,
        "torch/_functorch/config.py": FUNCTORCH_CONFIG,
        "triton/knobs.py": KNOBS,
        "triton/runtime/cache.py": TRITON,
        "jax/_src/config.py": JAX_CONFIG,
        "jax/_src/compilation_cache.py": "def get_file_cache(path):\n    return None\n",
    }
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for package in path.relative_to(place).parents:
            if str(package) != ".":
                (place / package / "__init__.py").touch()

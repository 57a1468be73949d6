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

#: triton.compiler.compiler as 3.6 has it, as far as its cache sees: what it asks for and puts, in its order. What it compiles
#: it appends to a file, and a kernel may be one that fails.
TRITON_COMPILER = """
import hashlib, json, os, time
from triton.runtime.cache import get_cache_manager

class CompilationError(Exception):
    pass

class ASTSource:
    def __init__(self, name, fails=None):
        self.name, self.fails = name, fails

class CompiledKernel:
    def __init__(self, src, metadata_group, hash):
        with open(metadata_group[src.name + ".json"]) as file:
            self.metadata = json.load(file)
        with open(metadata_group[src.name + ".cubin"], "rb") as file:
            self.kernel = file.read()
        assert self.metadata["hash"] == hash and self.kernel.startswith(b"cubin of " + src.name.encode() + b" by ")

def compile(src, target=None, options=None, _env_vars=None):
    assert isinstance(src, ASTSource)
    hash = hashlib.sha256(f"{src.name} {target} {options}".encode()).hexdigest()
    fn_cache_manager = get_cache_manager(hash)
    file_name = src.name[:150]
    metadata_filename = f"{file_name}.json"
    metadata_group = fn_cache_manager.get_group(metadata_filename) or {}
    if metadata_group.get(metadata_filename) is not None:
        return CompiledKernel(src, metadata_group, hash)
    with open(os.environ["STUB_COMPILES"], "a") as file:
        file.write(f"{src.name}\\n")
    metadata = {"hash": hash}
    for ext in ("source", "ttir", "ttgir", "llir", "ptx", "cubin"):
        time.sleep(0.005)
        if src.fails == ext:
            raise CompilationError(ext)
        module = f"{ext} of {src.name} by {os.getpid()}"
        ir_filename = f"{file_name}.{ext}"
        metadata_group[ir_filename] = fn_cache_manager.put(module.encode() if ext == "cubin" else module, ir_filename)
    metadata_group[metadata_filename] = fn_cache_manager.put(
        json.dumps(metadata, default=vars), metadata_filename, binary=False
    )
    fn_cache_manager.put_group(metadata_filename, metadata_group)
    return CompiledKernel(src, metadata_group, hash)
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
        "triton/compiler/__init__.py": "from .compiler import ASTSource, CompilationError, CompiledKernel, compile\n",
        "triton/compiler/compiler.py": TRITON_COMPILER,
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

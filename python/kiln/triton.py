"""Triton's kernels in kiln's cache: ``TRITON_CACHE_MANAGER=kiln.triton:CacheManager``.

Nothing in the program changes; `kiln exec` needs no variable. A compile's files are one entry, published as a whole: no
process sees half of one compile, or a mixture of two. Triton wants paths; they lead to files of this process alone, in
the directory for temporary files or below the cache's, so that no other process can take them away. Where neither can
be used, Triton's own manager writes them.

``TRITON_CACHE_DIR`` is not written to, but for Inductor, which looks there for a kernel's binary by itself.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Optional

from kiln import _claims, _triton_key
from kiln._bundle import pack, unpack
from kiln._entries import Entries, say_once, version_of
from kiln._files import materialise
from kiln.cache import default_cache
from kiln.errors import Error

if TYPE_CHECKING:
    _Manager = object
    _Backend = object
else:
    try:
        from triton.runtime.cache import CacheManager as _Manager
        from triton.runtime.cache import RemoteCacheBackend as _Backend
    except ImportError:  # documentation, and checks without Triton
        _Manager = _Backend = object

#: What compiles for GPUs put into their groups: texts, and code that the host does not run.
_DEVICE = {"source", "ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco", "spv", "zebin", "json"}
_GROUPS = (Entries("triton.group", "triton"), Entries("cpu.triton.group", "triton"))
_FILES = Entries("cpu.triton.file", "triton")
#: The longest wait for another process's compile of a kernel, in seconds: few kernels take so long.
_WAIT = 60.0


def _extension(filename: str) -> str:
    return filename.rpartition(".")[2]


def _groups_of(names: Any) -> Entries:
    return _GROUPS[0] if all(_extension(name) in _DEVICE for name in names) else _GROUPS[1]


class CacheManager(_Manager):
    """The files of one key of Triton's.

    Parameters
    ----------
    key : str
        Triton's digest of everything that the files depend on.
    override, dump : bool, optional
        For ``TRITON_KERNEL_OVERRIDE`` and ``TRITON_KERNEL_DUMP``, whose directories people look into: Triton's own manager
        serves them.
    **more
        What a newer Triton asks for: its own manager serves that, too.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False, **more: Any) -> None:
        self.key = key
        self._written: dict[str, bytes] = {}
        self._own: Any = None
        if override or dump or more:
            self._own = _own_manager()(key, override=override, dump=dump, **more)

    def has_file(self, filename: str) -> bool:
        """Whether `get_file` would find it."""
        return bool(self._own.has_file(filename)) if self._own is not None else self.get_file(filename) is not None

    def get_file(self, filename: str) -> Optional[str]:
        """The path of a file, or None on a miss."""
        if self._own is not None:
            own: Optional[str] = self._own.get_file(filename)
            return own
        if filename in self._written:
            return self._place(filename, self._written[filename])
        blob = _FILES.get(key=self.key, name=filename)
        return None if blob is None else self._place(filename, bytes(blob))

    def put(self, data: Any, filename: str, binary: bool = True, **more: Any) -> str:
        """Takes a file, and gives its path. What a newer Triton says besides is for its own manager."""
        if self._own is not None:
            return str(self._own.put(data, filename, binary=binary, **more))
        encoded = data if isinstance(data, bytes) else str(data).encode()
        self._written[filename] = encoded
        # What a compile puts one after the other is stored when it is whole, as a group.
        if _extension(filename) not in _DEVICE or filename.endswith(".autotune.json"):
            _FILES.put(encoded, key=self.key, name=filename)
        return self._place(filename, encoded)

    def _place(self, filename: str, data: bytes) -> str:
        """The path of a file with these bytes: of kiln's, else of Triton's own manager, which raises what it raises alone."""
        try:
            return materialise(filename, data, _root())
        except OSError as error:
            say_once("writing a file for Triton", error)
            return str(_own_manager()(self.key).put(data, filename, binary=True))

    def get_group(self, filename: str) -> Optional[dict[str, str]]:
        """The paths of a compile's files by their names, or None on a miss."""
        if self._own is not None:
            own: Optional[dict[str, str]] = self._own.get_group(filename)
            return own
        for entries in _GROUPS:
            # What is compiled is nearly always of the first kind, and claimed as that.
            claims = entries is _GROUPS[0]
            names = {"key": self.key, "name": filename}
            blob = entries.get_or_claim(_WAIT, **names) if claims else entries.get(**names)
            files = unpack(blob.data) if blob is not None else None
            # The first stage is portable, so that a remote's unsigned entry is taken: it holds no file that the host runs.
            if files and (entries is _GROUPS[1] or _groups_of(files) is entries):
                _mirror(self.key, files)
                _let_go()
                return {name: self._place(name, data) for name, data in files.items()}
        unpacked = _from_inductor(self.key, filename)
        if unpacked:
            _let_go()
        return {name: self._place(name, data) for name, data in unpacked.items()} or None

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Publishes the files that were put, as one."""
        if self._own is not None:
            return str(self._own.put_group(filename, group))
        files = {name: self._written[name] for name in group if name in self._written}
        if len(files) == len(group):
            _groups_of(files).put(pack(files), key=self.key, name=filename)
            _mirror(self.key, files)
        return self._place(f"__grp__{filename}", b"{}")


def _let_go() -> None:
    """Nothing is compiled after all."""
    span = _claims.innermost()
    if span is not None:
        span.end()


def _own_manager() -> Any:
    from triton.runtime.cache import FileCacheManager

    return FileCacheManager


def _root() -> str:
    """The cache's directory, ``""`` if there is none."""
    try:
        return default_cache().root
    except (Error, OSError):
        return ""


class Remote(_Backend):
    """Kiln behind Triton's own manager: ``TRITON_CACHE_MANAGER=triton.runtime.cache:RemoteCacheManager`` with
    ``TRITON_REMOTE_CACHE_BACKEND=kiln.triton:Remote``.

    For those who want files in ``TRITON_CACHE_DIR``; `CacheManager` needs neither that directory nor its races.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The files there are, by their names."""
        found = {name: _FILES.get(key=self._key, name=name) for name in filenames}
        return {name: bytes(blob) for name, blob in found.items() if blob is not None}

    def put(self, filename: str, data: bytes) -> None:
        """Stores a file."""
        _FILES.put(data, key=self._key, name=filename)


# --- Inductor -----------------------------------------------------------------------------------------------------


def _inductor_directory(key: str) -> Optional[str]:
    """Where Inductor expects a kernel's files: its static launcher opens the binary there, its bundler collects them."""
    root = os.environ.get("TRITON_CACHE_DIR", "")
    return os.path.join(root, key) if root and "torch._inductor" in sys.modules else None


def _mirror(key: str, files: dict[str, bytes]) -> None:
    place = _inductor_directory(key)
    if place is None:
        return
    try:
        os.makedirs(place, exist_ok=True)
        for name, data in files.items():
            path = os.path.join(place, name)
            if not os.path.exists(path):
                fresh = f"{path}.{os.getpid()}"
                with open(fresh, "wb") as file:
                    file.write(data)
                os.replace(fresh, path)
    except OSError as error:  # Inductor goes on without
        say_once(f"writing {place}", error)


def _from_inductor(key: str, filename: str) -> dict[str, bytes]:
    """What Inductor's bundler unpacked there from an entry of its own; empty where there is nothing."""
    place = _inductor_directory(key)
    if place is None or not os.path.exists(os.path.join(place, filename)):
        return {}
    try:
        names = [name for name in os.listdir(place) if _extension(name) in _DEVICE and not name.startswith("__grp__")]
        files = {}
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                files[name] = file.read()
    except OSError:
        return {}
    whole = _extension(filename) == "json" and any(_extension(name) in ("cubin", "hsaco") for name in files)
    return files if whole else {}


# --- under kiln exec ----------------------------------------------------------------------------------------------


def install(module: Any = None) -> None:
    """Puts `CacheManager` where Triton looks for its manager; one that the user chose stays.

    Parameters
    ----------
    module : module, optional
        ``triton.runtime.cache``. Default: imported.

    Notes
    -----
    No variable is set: a child process may have no kiln, and would fail on it.
    """
    module = module or importlib.import_module("triton.runtime.cache")
    _triton_key.install(module)
    if hasattr(sys.modules.get("triton.compiler.compiler"), "compile"):
        share(sys.modules["triton.compiler.compiler"])
    if os.environ.get("TRITON_CACHE_MANAGER"):
        return
    knobs: Any = getattr(sys.modules.get("triton.knobs"), "cache", None)
    if hasattr(knobs, "manager_class"):
        if knobs.manager_class is None:
            knobs.manager_class = CacheManager
    elif hasattr(module, "__cache_cls"):  # before Triton 3.4
        setattr(module, "__cache_cls", CacheManager)
    else:
        say_once("adapting Triton", LookupError(f"{version_of('triton')} has no place for a cache manager that kiln knows"))


def share(module: Any) -> None:
    """Has processes that start together compile each kernel once: a kernel that one of them compiles is waited for by the others.

    Parameters
    ----------
    module : module
        ``triton.compiler.compiler``, whose ``compile`` asks for a kernel's files, and puts them unless it raises.
    """
    if not _claims.span_in(module, "compile", sys.modules.get("triton.compiler"), sys.modules.get("triton")):
        say_once("sharing Triton's compiles", LookupError(f"{version_of('triton')} has no function compile that kiln knows"))

"""Triton's digest of its own files, remembered for as long as they are as they were.

Triton begins every key with a digest of all of its sources and of ``libtriton.so``: 0.4 s of each start, on an
H200's host most of what a warm start of a Triton program took. Here the files are looked at (names, sizes, times, inodes) and not read,
unless one differs. Times that are so young that another change could bear them too are not trusted.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from typing import Any, Callable, Optional

from kiln._entries import Entries

#: A file system's clock ticks in milliseconds, on some in two seconds.
_SETTLED_NS = 4_000_000_000
_FILES_MAX = 100_000
_ENTRIES = Entries("cpu.triton.files", "triton")


def look(root: str) -> Optional[str]:
    """A digest of what `root` has in it, contents aside; None where that cannot stand for the contents."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {root}".encode())
    youngest = count = 0
    try:
        for place, directories, files in os.walk(root, followlinks=True):
            directories[:] = sorted(name for name in directories if name != "__pycache__")
            for name in sorted(files):
                path = os.path.join(place, name)
                told = os.stat(path)
                youngest = max(youngest, told.st_mtime_ns, told.st_ctime_ns)
                facts = (path, told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino)
                digest.update(repr(facts).encode("utf-8", "surrogateescape"))
                count += 1
                if count > _FILES_MAX:  # a link that leads back
                    return None
    except OSError:
        return None
    return digest.hexdigest() if count and youngest < time.time_ns() - _SETTLED_NS else None


def remembered(own: Callable[[], str], root: str) -> Callable[[], str]:
    """Triton's function, which reads what lies below `root`, with an answer that outlives the process."""

    @functools.lru_cache(maxsize=None)
    def triton_key() -> str:
        seen = look(root)
        if seen is None:
            return own()
        blob = _ENTRIES.get(key=seen, name="triton's own files")
        if blob is not None:
            return bytes(blob).decode()
        answer = own()
        if look(root) == seen:  # nothing changed while it was read
            _ENTRIES.put(answer.encode(), key=seen, name="triton's own files")
        return answer

    setattr(triton_key, "_kiln", True)
    return triton_key


def install(module: Any) -> None:
    """Puts `remembered` into ``triton.runtime.cache``, where it has the function."""
    own = getattr(module, "triton_key", None)
    place = getattr(module, "__file__", None)
    if own is not None and place and not getattr(own, "_kiln", False):
        module.triton_key = remembered(own, os.path.dirname(os.path.dirname(os.path.abspath(place))))

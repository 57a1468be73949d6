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

from kiln._entries import say_once
from kiln.cache import default_cache
from kiln.errors import Error
from kiln.recipe import Recipe

#: A file system's clock ticks in milliseconds, on some in two seconds.
_SETTLED_NS = 4_000_000_000
_FILES_MAX = 100_000


class _Changed(Exception):
    """The files changed while they were read."""


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
        answers: list[str] = []

        def read() -> bytes:
            answers.append(own())
            if look(root) != seen:
                raise _Changed()
            return answers[0].encode()

        try:
            # A stage that begins with kiln. is a note about this machine: no remote is asked for it, none is sent it.
            recipe = Recipe("kiln.triton-files", 1, target="triton", key=seen or "")
            return bytes(default_cache().get_or_compile(recipe, read)).decode() if seen is not None else own()
        except (_Changed, Error, OSError) as error:
            if not isinstance(error, _Changed):
                say_once("remembering the digest of Triton's files", error)
            return answers[0] if answers else own()

    setattr(triton_key, "_kiln", True)
    return triton_key


def install(module: Any) -> None:
    """Puts `remembered` into ``triton.runtime.cache``, where it has the function."""
    own = getattr(module, "triton_key", None)
    place = getattr(module, "__file__", None)
    if own is not None and place and not getattr(own, "_kiln", False):
        module.triton_key = remembered(own, os.path.dirname(os.path.dirname(os.path.abspath(place))))

"""Files for those who insist on a path: private to this process, named by their content, gone when it ends."""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import shutil
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Optional

_lock = threading.Lock()
#: The directory of this process in each that was asked for.
_places: dict[str, str] = {}


def _forget() -> None:
    """In a child: it may outlive its parent, whose files go with it; and a thread that held the lock is not in it."""
    global _lock
    _lock = threading.Lock()
    _places.clear()


os.register_at_fork(after_in_child=_forget)


def _directory(root: str) -> str:
    with _lock:
        if root not in _places:
            if os.statvfs(root).f_flag & os.ST_NOEXEC:
                raise OSError(errno.EACCES, "mounted without exec, and some files are libraries", root)
            _remove_abandoned(root)
            _places[root] = tempfile.mkdtemp(prefix=f"{_prefix()}{os.getpid()}-", dir=root)
            atexit.register(_remove, _places[root], os.getpid())
        return _places[root]


def _prefix() -> str:
    """Of this user's, and of processes whose numbers mean the same here: of this start of the machine, and of this
    namespace. Containers and machines may share a directory for temporary files."""
    try:
        place = Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    except OSError:
        place = uuid.uuid4().hex  # nothing is like it, so nothing is removed
    return f"kiln-{os.getuid()}-{hashlib.sha256(place.encode()).hexdigest()[:12]}-"


def _remove(place: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(place, ignore_errors=True)


def _remove_abandoned(root: str) -> None:
    """Of processes that were killed."""
    mine = _prefix()
    try:
        names = [name for name in os.listdir(root) if name.startswith(mine)]
    except OSError:
        return
    for name in names:
        process = name[len(mine) :].split("-")[0]
        path = os.path.join(root, name)
        if process.isdigit() and not os.path.exists(f"/proc/{process}") and _is_own_directory(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_own_directory(path: str) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return facts.st_uid == os.getuid() and os.path.isdir(path) and not os.path.islink(path)


def materialise(name: str, data: bytes, *others: str) -> str:
    """The path of a file of that name with these bytes: in the directory for temporary files, or in the first of `others`
    that takes it.

    The same content has the same path, so what one compile wrote is never seen with another's. Raises what the first
    directory raised.
    """
    first: Optional[OSError] = None
    for root in ("", *others):
        try:
            return _write(root or tempfile.gettempdir(), name, data)
        except OSError as error:
            first = first or error
    raise first or OSError(errno.ENOENT, "no directory for temporary files")


def _write(root: str, name: str, data: bytes) -> str:
    place = os.path.join(_directory(root), hashlib.sha256(data).hexdigest()[:32])
    path = os.path.join(place, name)
    if not os.path.exists(path):
        os.makedirs(place, exist_ok=True)
        fresh = f"{path}.{threading.get_ident()}"
        with open(fresh, "wb") as file:
            file.write(data)
        os.replace(fresh, path)
    return path

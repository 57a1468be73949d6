"""Files for those who insist on a path: private to this process, named by their content, gone when it ends."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Optional

_lock = threading.Lock()
_place: Optional[str] = None
_owner = 0


def _directory() -> str:
    global _place, _owner
    with _lock:
        # A forked child may outlive its parent, whose files go with it.
        if _place is None or _owner != os.getpid():
            _remove_abandoned()
            _place = tempfile.mkdtemp(prefix=f"{_prefix()}{os.getpid()}-")
            _owner = os.getpid()
            atexit.register(_remove, _place, _owner)
        return _place


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


def _remove_abandoned() -> None:
    """Of processes that were killed."""
    root, mine = tempfile.gettempdir(), _prefix()
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


def materialise(name: str, data: bytes) -> str:
    """The path of a file of that name with these bytes.

    The same content has the same path, so what one compile wrote is never seen with another's.
    """
    place = os.path.join(_directory(), hashlib.sha256(data).hexdigest()[:32])
    path = os.path.join(place, name)
    if not os.path.exists(path):
        os.makedirs(place, exist_ok=True)
        fresh = f"{path}.{threading.get_ident()}"
        with open(fresh, "wb") as file:
            file.write(data)
        os.replace(fresh, path)
    return path

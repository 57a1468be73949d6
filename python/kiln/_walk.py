"""The entries on disk, one by one."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Optional

from kiln import _structs as s
from kiln._library import decode, encode, lib
from kiln.errors import OK, E_CANCELLED, check
from kiln.recipe import Key


@dataclass(frozen=True)
class Entry:
    """One entry on disk.

    Attributes
    ----------
    key : Key
        Its key.
    target : str
        Its directory in the store.
    stored_size : int
        The file's size, in bytes.
    used : float
        When it was last used, in seconds since 1970.
    """

    key: Key
    target: str
    stored_size: int
    used: float


def walk(cache: int, target: Optional[str]) -> list[Entry]:
    """All entries, in no order."""
    found: list[Entry] = []
    errors: list[BaseException] = []

    def visit(user: Any, info: Any) -> int:
        try:
            one = info.contents
            found.append(Entry(Key(bytes(one.key)), decode(one.target), one.stored_size, one.used_ns / 1e9))
            return OK
        except BaseException as error:  # it must not cross C
            errors.append(error)
            return E_CANCELLED

    diag = s.Diag()
    status = lib.kiln_cache_walk(cache, encode(target), s.EntryFn(visit), None, ctypes.byref(diag))
    if errors:
        raise errors[0]
    check(status, diag)
    return found

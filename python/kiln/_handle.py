"""Pointers of kiln's that are destroyed when nobody uses them any more, on whatever thread that is."""

from __future__ import annotations

import atexit
import itertools
import sys
import weakref
from types import TracebackType
from typing import Any, Callable, NoReturn, TypeVar

from kiln._library import lib
from kiln.errors import InvalidError

_Self = TypeVar("_Self", bound="Closable")
_live: weakref.WeakSet[Handle] = weakref.WeakSet()
_numbers = itertools.count()


class Unique:
    """Owns what one object can own: a copy would free it twice, or close it under the original."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot copy or pickle kiln.{type(self).__name__}")


class Handle(Unique):
    """Owns one object of the library's.

    A call of the library stands between ``with handle as pointer:``, and so another thread that closes it meanwhile destroys
    nothing that is in use: the last call to end does. `needs` are handles that must be destroyed later than this one,
    which is a user of them for as long as it lives. There is no lock, which a fork could leave behind locked.
    """

    __slots__ = ("__weakref__", "_destroy", "_name", "_needs", "_number", "_owned", "_pointer", "_users", "closed")

    def __init__(self, name: str, pointer: int, destroy: Callable[[Any], None], *needs: Handle) -> None:
        self._name, self._pointer, self._destroy = name, pointer, destroy
        self._users: list[None] = []  # append and pop are atomic
        self._owned = [pointer] if pointer else []  # who pops it destroys it
        self.closed = False
        self._needs = needs
        for need in needs:
            need._users.append(None)
        self._number = next(_numbers)
        _live.add(self)

    def __enter__(self) -> int:
        self._users.append(None)
        if self.closed:
            self.__exit__(None, None, None)
            raise InvalidError(f"use a {self._name}", "it has been closed", f"open another {self._name}")
        return self._pointer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._users.pop()
        if self.closed and not self._users:
            self._end()

    def close(self) -> None:
        """Destroys the object, or leaves that to the last call that is under way."""
        self.closed = True
        if not self._users:
            self._end()

    def give(self) -> int:
        """The object, which a call that follows destroys in another way; 0 where there is none any more. What it needs is the
        caller's to keep."""
        self.closed = True
        try:
            pointer = self._owned.pop()
        except IndexError:
            return 0
        self._leave()
        return pointer

    def _end(self) -> None:
        try:
            pointer = self._owned.pop()
        except IndexError:  # another thread was first
            return
        self._destroy(pointer)
        self._leave()

    def _leave(self) -> None:
        self._pointer = 0
        for need in self._needs:
            need.__exit__(None, None, None)

    def __del__(self) -> None:
        # While the interpreter goes, threads may still be inside the library: the process frees it all.
        if not sys.is_finalizing():
            self.close()


class Closable(Unique):
    """What owns a `Handle`: closed by `close`, or at the end of a ``with``."""

    _handle: Handle

    def close(self) -> None:
        """Destroys the object, as soon as no call uses it; to close it again does nothing."""
        self._handle.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@atexit.register
def _close_all() -> None:
    # What is newer may need what is older. A cache that is destroyed waits for its uploads, which would be lost. One that
    # a daemon thread, or a tensor of others', is still using stays open, and waits for its uploads all the same.
    for handle in sorted(_live, key=lambda handle: handle._number, reverse=True):
        if not handle._users:
            handle.close()
        elif handle._name == "cache" and not handle.closed:
            with handle as cache:
                lib.kiln_cache_flush(cache)

"""What all adapters share: entries by a name of the other project's, of which no failure is the program's."""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from typing import Any, Callable, Optional

from kiln import _claims
from kiln.blob import Blob
from kiln.cache import default_cache
from kiln.errors import Error
from kiln.recipe import Recipe

log = logging.getLogger("kiln")
_said: set[str] = set()
#: Misses whose time is kept until their entries are stored: what lies between is what the program took to make them.
_MISSES_MAX = 4096


def say_once(what: str, error: BaseException) -> None:
    """A warning, the first time that `what` fails."""
    if what not in _said:
        _said.add(what)
        log.warning("%s: %s; the program goes on without kiln's cache", what, error)


def version_of(package: str) -> str:
    """The version of a package that has been imported, for a message: ``"torch 2.11.0"``."""
    return f"{package} {getattr(sys.modules.get(package), '__version__', '(unknown version)')}"


def _report(what: str, origin: str, began: int, spared: int, name: str) -> None:
    """A line of the report of `kiln exec --stats` (src/interpose/session.h)."""
    path = os.environ.get("KILN_EXEC_REPORT")
    if not path:
        return
    plain = "".join(letter if letter.isprintable() else " " for letter in name)[:200]
    line = f"{what}\t{origin}\t{time.perf_counter_ns() - began}\t{spared}\t{plain}\t\n"
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)
    except OSError:
        pass


class Entries:
    """Entries of one stage, keyed by texts that another project made; its keys hold what decides the content.

    Parameters
    ----------
    stage : str
        The stage. One that begins with ``cpu.`` holds what runs on the host (pickles, libraries): it is not taken from a
        remote that nobody signed.
    target : str
        The directory in the store.
    """

    def __init__(self, stage: str, target: str) -> None:
        self.stage, self.target = stage, target
        self._missed: dict[tuple[str, ...], int] = {}

    def recipe(self, **names: str) -> Recipe:
        """The recipe of an entry."""
        return Recipe(self.stage, 1, target=self.target, **names)

    def get(self, **names: str) -> Optional[Blob]:
        """The entry, or None on a miss and on every error."""
        return self._find(names, lambda recipe: default_cache().get(recipe))

    def get_or_claim(self, wait: float = 0, **names: str) -> Optional[Blob]:
        """The same, and other processes that ask for the entry wait until `put`, or until the call of a function ends that was
        wrapped with `spanning`. Outside of one it is `get`. It waits for their compiles, `wait` seconds at most (0: as long as
        the cache does)."""
        span = _claims.innermost()
        if span is None:
            return self.get(**names)
        span.end()  # it has gone on to another
        return self._find(names, functools.partial(self._claim, span, wait, (self.stage, *names.values())))

    def _claim(self, span: _claims.Span, wait: float, of: tuple[str, ...], recipe: Recipe) -> Optional[Blob]:
        return span.hold(default_cache().claim(recipe, wait=wait), of)

    def _find(self, names: dict[str, str], look: Callable[[Recipe], Optional[Blob]]) -> Optional[Blob]:
        began = time.perf_counter_ns()
        try:
            blob = look(self.recipe(**names))
            if blob is not None:
                _report(self.target, blob.origin, began, round(blob.compile_seconds * 1e9), names.get("name", names["key"]))
            elif len(self._missed) < _MISSES_MAX:
                self._missed[tuple(names.values())] = began
            return blob
        except (Error, OSError) as error:
            say_once(f"looking up {self.stage}", error)
            return None

    def put(self, data: Any, **names: str) -> bool:
        """Stores an entry that was made because it was not there; False if it could not be."""
        now = time.perf_counter_ns()
        missed = self._missed.pop(tuple(names.values()), now)
        claim = _claims.take((self.stage, *names.values()))
        try:
            if claim is not None:
                claim.fulfil(data)
            else:
                default_cache().put(self.recipe(**names), data, compile_seconds=(now - missed) / 1e9)
            _report(self.target, "compiled", missed, 0, names.get("name", names["key"]))
            return True
        except (Error, OSError) as error:
            say_once(f"storing {self.stage}", error)
            return False

    def remove(self, **names: str) -> bool:
        """Drops an entry; False if there was none."""
        try:
            return default_cache().remove(self.recipe(**names))
        except (Error, OSError) as error:
            say_once(f"removing {self.stage}", error)
            return False

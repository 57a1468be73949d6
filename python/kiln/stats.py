"""Counters, and what prune and clear removed."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Iterator

from kiln import _structs as s
from kiln._library import decode, lib


def counter_names() -> Iterator[str]:
    """The names of all counters that this libkiln has, in its order.

    Examples
    --------
    >>> import kiln.stats
    >>> list(kiln.stats.counter_names())[:2]
    ['hits_memory', 'hits_disk']
    """
    number = 0
    while (name := lib.kiln_counter_name(number)) is not None:
        yield decode(name)
        number += 1


@dataclass(frozen=True)
class Counter:
    """What a counter counts.

    Attributes
    ----------
    name : str
        As in `Cache.stats`.
    unit : str
        ``"ns"``, ``"bytes"``, or ``""`` for a number of things.
    text : str
        What it counts, in words.
    """

    name: str
    unit: str
    text: str


def counters() -> list[Counter]:
    """All counters that this libkiln has."""
    return [
        Counter(name, decode(lib.kiln_counter_unit(number)), decode(lib.kiln_counter_text(number)))
        for number, name in enumerate(counter_names())
    ]


@dataclass(frozen=True)
class Pruned:
    """What `Cache.prune` and `Cache.clear` looked at and removed; sizes in bytes."""

    entries_seen: int
    bytes_seen: int
    entries_removed: int
    bytes_removed: int
    temporaries_removed: int


def pruned(result: s.PruneResult) -> Pruned:
    """From the library's struct."""
    return Pruned(
        result.entries_seen,
        result.bytes_seen,
        result.entries_removed,
        result.bytes_removed,
        result.temporaries_removed,
    )


def own(cache: int, names: list[str]) -> dict[str, int]:
    """The counters of one cache object."""
    return {name: int(lib.kiln_cache_counter(cache, number)) for number, name in enumerate(names)}


def totals_buffer(names: list[str]) -> ctypes.Array[ctypes.c_uint64]:
    """Room for a value of each counter."""
    return (ctypes.c_uint64 * len(names))()

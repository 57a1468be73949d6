"""Numbers for C, checked: ctypes drops the bits that do not fit, and another number arrives."""

from __future__ import annotations

import math
import operator
from typing import Any

from kiln.errors import InvalidError

_U32_MAX, U64_MAX = (1 << 32) - 1, (1 << 64) - 1


def _unsigned(name: str, value: Any, most: int) -> int:
    if type(value) is int and 0 <= value <= most:
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidError(f"take {name}", f"{value!r:.80} is not an integer", "give an integer") from None
    if not 0 <= number <= most:
        raise InvalidError(f"take {name}", f"{number} is not between 0 and {most}", "give a number in this range")
    return number


def u32(name: str, value: Any) -> int:
    """An integer that a ``uint32_t`` holds."""
    return _unsigned(name, value, _U32_MAX)


def u64(name: str, value: Any) -> int:
    """An integer that a ``uint64_t`` or a ``size_t`` holds."""
    return _unsigned(name, value, U64_MAX)


def limit32(name: str, value: Any) -> int:
    """The same where None is the default, C's 0, and ``math.inf`` no limit."""
    return 0 if value is None else _U32_MAX if value == math.inf else u32(name, value)


def limit64(name: str, value: Any) -> int:
    """The same of 64 bits."""
    return 0 if value is None else U64_MAX if value == math.inf else u64(name, value)


def _units(name: str, seconds: Any, per_second: int, most: int) -> int:
    try:
        given = float(seconds + 0)  # a text is no number, though float() reads it
    except (TypeError, ValueError, OverflowError):
        raise InvalidError(f"take {name}", f"{seconds!r:.80} is not a number of seconds", "give a number") from None
    if not math.isfinite(given) or given < 0 or given * per_second > most:
        what = f"{given} is not between 0 and {most // per_second} seconds"
        raise InvalidError(f"take {name}", what, "give a time in this range")
    # The smallest unit, where 0 would mean something else.
    return min(max(round(given * per_second), 1 if given > 0 else 0), most)


def u32_units(name: str, seconds: Any, per_second: int) -> int:
    """A time in units of which there are so many in a second, as a ``uint32_t``."""
    return _units(name, seconds, per_second, _U32_MAX)


def u64_units(name: str, seconds: Any, per_second: int) -> int:
    """A time in units of which there are so many in a second, as a ``uint64_t``."""
    return _units(name, seconds, per_second, U64_MAX)

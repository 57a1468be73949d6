"""Why a lookup misses."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from kiln import _structs as s
from kiln._library import decode, lib
from kiln.errors import OK, E_CANCELLED, check
from kiln.recipe import Key


@dataclass(frozen=True)
class Difference:
    """One field that differs from the nearest stored recipe.

    Attributes
    ----------
    field : str
        Its name.
    then, now : str or None
        Its value in the stored recipe and in this one; None where it is absent.
    why : str
        What such a change means: ``"options changed"``.
    """

    field: str
    then: Optional[str]
    now: Optional[str]
    why: str


@dataclass(frozen=True)
class Explanation:
    """Of one recipe, or of one stage of a build.

    Attributes
    ----------
    stage : str
        The stage of the recipe.
    why : str
        ``"hit"``, ``"new"``, ``"options changed"``, ``"evicted"``, ...
    detail : str
        The reason of a compile that is never cached, or ``""``.
    key : Key
        Of the recipe; zeros where it is not known until the preceding stage is made.
    recipe : str
        Its text, ``""`` where only a key was given.
    nearest : Key or None
        The stored entry that `differences` are from.
    differences : list of Difference
        Field by field.
    """

    stage: str
    why: str
    detail: str
    key: Key
    recipe: str
    nearest: Optional[Key]
    differences: list[Difference] = field(default_factory=list)

    @property
    def hit(self) -> bool:
        """Whether a lookup would find it."""
        return self.why == "hit"

    def __str__(self) -> str:
        lines = [f"{self.stage}: {self.why}" + (f" ({self.detail})" if self.detail else "")]
        lines += [f"  {one.field}: {one.then} -> {one.now}" for one in self.differences]
        return "\n".join(lines)


def _text(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else decode(value)


def _explanation(told: s.Explanation) -> Explanation:
    differences = []
    for index in range(told.difference_count):
        one = told.differences[index].contents
        why = decode(lib.kiln_why_text(one.why))
        differences.append(Difference(decode(one.field), _text(one.then), _text(one.now), why))
    return Explanation(
        decode(told.stage),
        decode(lib.kiln_why_text(told.why)),
        decode(told.detail),
        Key(bytes(told.key)),
        decode(told.recipe),
        Key(bytes(told.nearest)) if told.has_nearest else None,
        differences,
    )


def collect(call: Callable[[Any, Any], Any]) -> list[Explanation]:
    """All explanations that ``call(visit, diag)`` is given, in order."""
    found: list[Explanation] = []
    errors: list[BaseException] = []

    def visit(user: Any, told: Any) -> int:
        try:
            found.append(_explanation(told.contents))
            return OK
        except BaseException as error:  # it must not cross C
            errors.append(error)
            return E_CANCELLED

    diag = s.Diag()
    status: int = call(s.ExplanationFn(visit), ctypes.byref(diag))
    if errors:
        raise errors[0]
    check(status, diag)
    return found

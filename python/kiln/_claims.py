"""Where a compile of another project's begins and ends, so that a claim for its result is not left open.

The project asks for an entry and stores it in two calls. Between them the compile may raise, or find that its result is not
worth storing: nothing says so, and other processes would wait. A claim is therefore taken only inside a function that was
wrapped with `spanning`, at whose end it is abandoned.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from kiln.blob import Blob
    from kiln.claim import Claim


class Span:
    """One call of such a function, with the claim that it has."""

    __slots__ = ("claim", "of")

    def __init__(self) -> None:
        self.claim: Optional[Claim] = None
        self.of: tuple[str, ...] = ()

    def hold(self, claim: Claim, of: tuple[str, ...]) -> Optional[Blob]:
        """Keeps a claim for what it is of, unless it is a hit; gives its blob."""
        if claim.blob is None:
            self.claim, self.of = claim, of
        return claim.blob

    def end(self) -> None:
        """Abandons what was not fulfilled."""
        claim, self.claim = self.claim, None
        if claim is not None:
            claim.abandon()


class _Spans(threading.local):
    def __init__(self) -> None:
        self.open: list[Span] = []


_spans = _Spans()


def innermost() -> Optional[Span]:
    """The call that this thread is in, None outside of one."""
    return _spans.open[-1] if _spans.open else None


def take(of: tuple[str, ...]) -> Optional[Claim]:
    """The claim that one of this thread's calls has for something, which is the caller's from now on."""
    for span in reversed(_spans.open):
        if span.claim is not None and span.of == of:
            claim, span.claim = span.claim, None
            return claim
    return None


def spanning(own: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a span around each call."""
    if getattr(own, "_kiln", False):
        return own

    @functools.wraps(own)
    def call(*args: Any, **more: Any) -> Any:
        span = Span()
        _spans.open.append(span)
        try:
            return own(*args, **more)
        finally:
            _spans.open.remove(span)
            span.end()

    setattr(call, "_kiln", True)
    return call


def span_in(module: Any, name: str, *copies: Any) -> bool:
    """Puts `spanning` around a module's function, and around what other modules have imported of it; False if the module has
    no such function."""
    own = getattr(module, name, None)
    if not callable(own):
        return False
    call = spanning(own)
    for place in (module, *copies):
        if getattr(place, name, None) is own:
            setattr(place, name, call)
    return True

"""Single flight for programs that compile between a lookup and a store: a blob, or a claim that others wait for."""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any, Optional

from kiln import _flight
from kiln import _structs as s
from kiln._handle import Handle, Unique
from kiln._library import lib
from kiln._numbers import u32_units
from kiln.blob import Blob, blob_of
from kiln.errors import MISS, InvalidError, check
from kiln.recipe import Recipe


class Claim(Unique):
    """What `Cache.claim` gives: the blob, or the right to make it, which ends with the ``with`` block.

    Attributes
    ----------
    blob : Blob or None
        The entry; None until it is fulfilled, where the claim is to compile.
    """

    __slots__ = ("_cache", "_handle", "blob")

    def __init__(self, cache: Handle, pointer: int, blob: Optional[Blob]) -> None:
        self.blob = blob
        self._cache = cache
        # It is destroyed before its cache, wherever it is forgotten.
        self._handle = Handle("claim", pointer, lib.kiln_claim_abandon, cache) if pointer else None

    def fulfil(self, data: Any, facts: Any = b"") -> Blob:
        """Stores what was compiled, and hands it to those who wait.

        Parameters
        ----------
        data : bytes-like or Blob
            The payload, not empty.
        facts : bytes-like, optional
            What a hit has to bring along besides.

        Returns
        -------
        Blob
            What was stored. Errors of the store are counted and logged, and raise nothing.

        Raises
        ------
        InvalidError
            The payload is empty, or there is no claim any more. The claim has ended in either case.
        """
        try:
            blob = blob_of(data, facts)
            with self._cache:
                pointer = self._handle.give() if self._handle is not None else 0
                if not pointer:
                    raise InvalidError("fulfil a claim", "it is a hit, or has ended", "fulfil a claim without a blob, once")
                diag = s.Diag()
                check(lib.kiln_claim_fulfil(pointer, blob._pointer, ctypes.byref(diag)), diag)
        finally:
            self.abandon()
        self.blob = blob
        return blob

    def abandon(self) -> None:
        """Ends the claim without a result; does nothing where it has ended."""
        if self._handle is not None:
            self._handle.close()

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.abandon()

    def __repr__(self) -> str:
        open_ = self._handle is not None and not self._handle.closed
        return f"<kiln.claim.Claim, {'open' if open_ else 'ended'}, {self.blob!r}>"


def take(handle: Handle, recipe: Recipe, wait: float) -> Claim:
    """`Cache.claim`."""
    flight, diag = _flight.Flight(lambda: None), s.Diag()
    blob, claim, origin = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    milliseconds = u32_units("wait", wait, 1000)
    number = _flight.depart(flight)
    try:
        with handle as cache:
            options = s.ClaimOptions(ctypes.sizeof(s.ClaimOptions), milliseconds, _flight.question(flight), number)
            status = lib.kiln_cache_claim(
                cache,
                recipe._pointer,
                ctypes.byref(options),
                ctypes.byref(blob),
                ctypes.byref(claim),
                ctypes.byref(origin),
                ctypes.byref(diag),
            )
            if status == MISS:
                return Claim(handle, claim.value or 0, None)
    finally:
        _flight.arrive(number)
    if status != 0:
        _flight.finish(flight, status, diag)
    return Claim(handle, 0, Blob._of(blob.value or 0, origin.value))

"""What a compile made: immutable bytes, shared with the cache and not copied."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NoReturn, Union

from kiln import _structs as s
from kiln._library import decode, lib, view
from kiln.errors import InvalidError, check

#: What is taken wherever bytes are.
Bytes = Union[bytes, bytearray, memoryview]

_ORIGINS = {number: decode(lib.kiln_origin_name(number)) for number in range(7)}


class Blob:
    """The payload of an entry and the facts that were stored with it.

    The bytes lie in the cache's memory: `data` and `facts` are views of it and copy nothing. They stay valid as long
    as the blob, or a view, is alive, whatever becomes of the cache. From Python 3.12 on a blob itself has the buffer
    protocol, so that ``memoryview(blob)`` and all that takes bytes-like objects take it; before that, give `data`.

    Attributes
    ----------
    data : memoryview
        The payload, of shape ``(size,)`` in unsigned bytes, read-only.
    facts : memoryview
        What else the compile had to say, in the caller's encoding; empty if nothing.
    origin : str
        Where it came from: ``"compiled"``, ``"memory"``, ``"disk"``, ``"pack"``, ``"remote"``, ``"shared"`` (another
        thread compiled it meanwhile), or ``"none"``.
    compile_seconds : float
        How long the original compile took, in seconds; 0.0 if it is not known.
    """

    __slots__ = ("__weakref__", "_pointer", "_release", "origin")

    def __init__(self, data: Any = b"", facts: Any = b"") -> None:
        """Makes a blob of bytes, which are copied.

        Parameters
        ----------
        data : bytes-like
            The payload.
        facts : bytes-like, optional
            What a hit has to bring along besides.
        """
        payload, beside = as_bytes(data, "data"), as_bytes(facts, "facts")
        diag, out = s.Diag(), ctypes.c_void_p()
        status = lib.kiln_blob_create(payload, len(payload), beside, len(beside), ctypes.byref(out), ctypes.byref(diag))
        check(status, diag)
        self._own(out.value or 0, 0)

    def _own(self, pointer: int, origin: int) -> None:
        self._pointer = pointer
        self._release = lib.kiln_blob_release
        self.origin = _ORIGINS.get(origin, "unknown")

    @classmethod
    def _of(cls, pointer: int, origin: int) -> Blob:
        """Takes over a reference to a blob of the library's."""
        blob = cls.__new__(cls)
        blob._own(pointer, origin)
        return blob

    def __del__(self) -> None:
        pointer = getattr(self, "_pointer", 0)
        if pointer:
            self._release(pointer)

    def __copy__(self) -> Blob:
        copied = Blob._of(lib.kiln_blob_retain(self._pointer), 0)
        copied.origin = self.origin
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Blob:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle kiln.Blob (pickle bytes(blob))")

    @property
    def data(self) -> memoryview:
        return view(lib.kiln_blob_data(self._pointer), lib.kiln_blob_size(self._pointer), self)

    @property
    def facts(self) -> memoryview:
        return view(lib.kiln_blob_facts(self._pointer), lib.kiln_blob_facts_size(self._pointer), self)

    @property
    def compile_seconds(self) -> float:
        return float(lib.kiln_blob_compile_ns(self._pointer)) / 1e9

    def __eq__(self, other: object) -> bool:
        """Whether the payloads are equal; `other` may be anything that is bytes-like."""
        if isinstance(other, Blob):
            return self.data == other.data
        if isinstance(other, (bytes, bytearray, memoryview)):
            return self.data == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(bytes(self))

    def __len__(self) -> int:
        return int(lib.kiln_blob_size(self._pointer))

    def __bytes__(self) -> bytes:
        size = lib.kiln_blob_size(self._pointer)
        return ctypes.string_at(lib.kiln_blob_data(self._pointer), size) if size else b""

    def __repr__(self) -> str:
        return f"<kiln.Blob of {len(self)} {'byte' if len(self) == 1 else 'bytes'}, origin {self.origin!r}>"

    if sys.version_info >= (3, 12):

        def __buffer__(self, flags: int) -> memoryview:
            if flags & 1:  # PyBUF_WRITABLE
                raise BufferError("a kiln.Blob is read-only")
            return self.data


def as_bytes(value: Any, name: str) -> bytes:
    """Bytes of anything that has the buffer protocol; text is refused, for it has an encoding."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Blob):
        return bytes(value)
    if isinstance(value, str):
        raise InvalidError(f"take {name}", "it is text", "encode it")
    try:
        return memoryview(value).tobytes()
    except TypeError:
        raise InvalidError(f"take {name}", f"{type(value).__name__} is not bytes-like", "give bytes") from None


def blob_of(data: Any, facts: Any) -> Blob:
    """A blob of bytes; `data` itself if it is a blob and there are no facts to add."""
    return data if isinstance(data, Blob) and len(as_bytes(facts, "facts")) == 0 else Blob(data, facts)

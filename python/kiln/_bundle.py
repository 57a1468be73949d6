"""Several named files as one payload: a count, then each name and its bytes, framed by their lengths."""

from __future__ import annotations

import struct
from typing import Any, Mapping, Optional

_MAGIC = b"KBN\x01"
_COUNT = struct.Struct("<I")
_LENGTHS = struct.Struct("<IQ")


def pack(files: Mapping[str, bytes]) -> bytes:
    """The payload of some files.

    Examples
    --------
    >>> unpack(pack({"k.json": b"{}", "k.cubin": b"code"}))
    {'k.json': b'{}', 'k.cubin': b'code'}
    """
    parts = [_MAGIC, _COUNT.pack(len(files))]
    for name, data in files.items():
        encoded = name.encode()
        parts += [_LENGTHS.pack(len(encoded), len(data)), encoded, data]
    return b"".join(parts)


def unpack(payload: Any) -> Optional[dict[str, bytes]]:
    """The files of a payload; None if it is none.

    Examples
    --------
    >>> unpack(b"KBN") is None
    True
    """
    data = memoryview(payload)
    files: dict[str, bytes] = {}
    try:
        if bytes(data[:4]) != _MAGIC:
            return None
        (count,), at = _COUNT.unpack_from(data, 4), 4 + _COUNT.size
        for _ in range(count):
            name_size, size = _LENGTHS.unpack_from(data, at)
            at += _LENGTHS.size
            if at + name_size + size > len(data):
                return None
            name = bytes(data[at : at + name_size]).decode()
            if name in ("", ".", "..") or "/" in name or "\0" in name:
                return None
            files[name] = bytes(data[at + name_size : at + name_size + size])
            at += name_size + size
    except (struct.error, UnicodeDecodeError):
        return None
    return files if at == len(data) else None

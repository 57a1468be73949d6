#!/usr/bin/env python3
"""open_archive.py IN OUT: copies an archive and makes its hidden symbols visible, so that a shared library made of it
exports them. The objects are those that ship; what changes is the visibility in their symbol tables (ELF64)."""
import struct
import sys

SYMTAB, HIDDEN = 2, 2


def open_object(data, start):
    """Changes the object that begins at `start` of `data`."""
    order = "<" if data[start + 5] == 1 else ">"
    sections, = struct.unpack_from(order + "Q", data, start + 40)
    size, count = struct.unpack_from(order + "HH", data, start + 58)
    for at in range(start + sections, start + sections + size * count, size):
        kind, = struct.unpack_from(order + "I", data, at + 4)
        offset, length = struct.unpack_from(order + "QQ", data, at + 24)
        for symbol in range(start + offset, start + offset + length, 24) if kind == SYMTAB else ():
            section, = struct.unpack_from(order + "H", data, symbol + 6)
            if data[symbol + 5] & 3 == HIDDEN and section != 0:
                data[symbol + 5] &= ~3


def main():
    with open(sys.argv[1], "rb") as file:
        data = bytearray(file.read())
    assert data.startswith(b"!<arch>\n"), "an archive"
    at = 8
    while at < len(data):
        size = int(data[at + 48:at + 58])
        if data[at + 60:at + 65] == b"\x7fELF\x02":
            open_object(data, at + 60)
        at += 60 + size + size % 2
    with open(sys.argv[2], "wb") as file:
        file.write(data)


main()

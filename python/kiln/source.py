"""What is to be compiled: one kernel source in one language, and how."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Union

from kiln import _structs as s
from kiln._library import decode, encode, lib
from kiln.errors import InvalidError


def _list_languages() -> list[str]:
    """Those that a source may be in."""
    names: list[str] = []
    while names[-1:] != ["unknown"]:
        names.append(decode(lib.kiln_language_name(len(names) + 1)))
    return [name for name in names[:-1] if name not in ("builtin", "fake")]


def _unknown_language(language: object) -> InvalidError:
    known = _list_languages()
    names = [name for name in known if str(language).lower()[:3] == name[:3]] or known
    fix = f"did you mean {names[0]!r}?" if len(names) == 1 else f"they are {', '.join(names)}"
    return InvalidError("take a source", f"{language!r:.80} is not a language that kiln knows", fix)


@dataclass(frozen=True)
class Source:
    """One source in one language.

    Attributes
    ----------
    language : str
        ``"opencl-c"``, ``"cuda"``, ``"hip"``, ``"glsl"``, ``"spirv"``, ``"ptx"``, ``"cubin"``, ``"c"``.
    text : str or bytes
        The source, or the bytes of a binary.
    name : str, optional
        Shown in messages; with a ``/`` in it, its directory is the first include directory.
    defines : mapping of str to str, int, or None, optional
        Preprocessor definitions; None defines the name as 1.
    options : tuple of str, optional
        Passed to the compiler in this order.
    include_dirs : tuple of str, optional
        Searched in this order.
    headers : mapping of str to str, optional
        Headers held in memory, by the name between the quotes or brackets.
    entries : tuple of str, optional
        Kernels that must be there, or name expressions.

    Raises
    ------
    InvalidError
        kiln does not know the language.

    Examples
    --------
    >>> import kiln
    >>> source = kiln.Source("opencl-c", "kernel void twice(global int *x) { x[get_global_id(0)] *= 2; }")
    >>> source.language
    'opencl-c'
    """

    language: str
    text: Union[str, bytes]
    name: str = ""
    defines: Mapping[str, Union[str, int, None]] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.language, str) or lib.kiln_language_parse(encode(self.language)) == 0:
            raise _unknown_language(self.language)

    @classmethod
    def read(cls, path: Union[str, os.PathLike[str]], **more: Any) -> Source:
        """A source from a file, in the language that its name says (``.cl .cu .comp .glsl .spv .ptx .cubin .c``).

        Parameters
        ----------
        path : path
            The file.
        **more
            Other attributes of the source.

        Raises
        ------
        InvalidError
            The name says no language.
        OSError
            The file cannot be read.
        """
        place = os.fspath(path)
        number = lib.kiln_language_of_path(encode(place))
        if number == 0:
            raise InvalidError(f"read {place}", "its name says no language that kiln knows", "make a Source with a language")
        return cls(decode(lib.kiln_language_name(number)), Path(place).read_bytes(), name=os.path.abspath(place), **more)

    def _struct(self) -> s.Source:
        number = lib.kiln_language_parse(encode(self.language))
        text = self.text.encode() if isinstance(self.text, str) else bytes(self.text)
        out = s.Source(ctypes.sizeof(s.Source), number, encode(self.name) or None, text, len(text))
        defines = [(name, None if value is None else str(value)) for name, value in self.defines.items()]
        out.defines = (s.Define * len(defines))(*(s.Define(encode(name), encode(value)) for name, value in defines))
        out.define_count = len(defines)
        out.options, out.option_count = strings(self.options)
        out.include_dirs, out.include_dir_count = strings(self.include_dirs)
        out.headers, out.header_count = headers(self.headers)
        out.entries, out.entry_count = strings(self.entries)
        return out


def strings(texts: Iterable[Union[str, bytes]]) -> tuple[Any, int]:
    """A list of texts as C takes it."""
    encoded = [encode(text) for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded), len(encoded)


def headers(texts: Optional[Mapping[str, Union[str, bytes]]]) -> tuple[Any, int]:
    """Headers in memory as C takes them."""
    encoded = [
        (encode(name), text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text))
        for name, text in (texts or {}).items()
    ]
    return (s.Header * len(encoded))(*(s.Header(name, text, len(text)) for name, text in encoded)), len(encoded)


def structs(sources: Iterable[Source]) -> tuple[Any, int]:
    """Sources as C takes them."""
    each = [source._struct() for source in sources]
    return (s.Source * len(each))(*each), len(each)

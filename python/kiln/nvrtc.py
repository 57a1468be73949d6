"""NVRTC through the cache, for a program that compiles CUDA C++ and loads it by itself."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Union

from kiln import _structs as s
from kiln._handle import Unique
from kiln._library import decode, encode, lib, view
from kiln.blob import _ORIGINS
from kiln.cache import Cache, default_cache
from kiln.errors import check
from kiln.source import headers as header_structs
from kiln.source import strings


class _Owner(Unique):
    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        self._destroy = lib.kiln_nvrtc_result_destroy

    def __del__(self) -> None:
        self._destroy(ctypes.cast(self._pointer, ctypes.POINTER(s.NvrtcResult)))


@dataclass(frozen=True)
class Result:
    """What NVRTC made, or made once.

    Attributes
    ----------
    binary : memoryview
        CUBIN for ``-arch=sm_XX``, PTX for ``compute_XX``: bytes of the cache, read-only, not copied.
    is_ptx : bool
        Whether it is PTX.
    log : str
        NVRTC's warnings, the same on a hit as on a compile.
    lowered : dict of str to str
        The lowered name of each expression.
    origin : str
        As `Blob.origin`.
    """

    binary: memoryview
    is_ptx: bool
    log: str
    lowered: dict[str, str]
    origin: str


def compile(
    text: Union[str, bytes],
    options: Iterable[str],
    *,
    name: Optional[str] = None,
    headers: Optional[Mapping[str, str]] = None,
    expressions: Iterable[str] = (),
    cache: Optional[Cache] = None,
) -> Result:
    """Compiles CUDA C++, or finds what NVRTC made of the same text, options, headers and toolkit.

    No GPU and no driver is needed; a hit does not even open NVRTC.

    Parameters
    ----------
    text : str or bytes
        CUDA C++.
    options : iterable of str
        As for NVRTC; ``--gpu-architecture`` (``-arch``) must be among them.
    name : str, optional
        Shown in messages. Default: ``"kernel.cu"``.
    headers : mapping of str to str, optional
        Headers in memory, found before any directory.
    expressions : iterable of str, optional
        Name expressions whose lowered names are wanted.
    cache : Cache, optional
        Default: `default_cache`.

    Returns
    -------
    Result
        The binary, the log and the lowered names.

    Raises
    ------
    CompileError
        The source does not compile; `Error.log` has NVRTC's log.
    UnavailableError
        There is no NVRTC, and the result is not in the cache.
    InvalidError
        No text, or no architecture.
    """
    wanted = list(expressions)
    request = s.NvrtcRequest(ctypes.sizeof(s.NvrtcRequest), encode(text), encode(name))
    request.options, request.option_count = strings(options)
    request.headers, request.header_count = header_structs(headers)
    request.expressions, request.expression_count = strings(wanted)
    diag, out = s.Diag(), ctypes.POINTER(s.NvrtcResult)()
    with (cache or default_cache())._handle as handle:
        status = lib.kiln_nvrtc_compile(handle, ctypes.byref(request), ctypes.byref(out), ctypes.byref(diag))
    check(status, diag)
    made = out.contents
    lowered = {text: decode(made.lowered[index]) for index, text in enumerate(wanted)}
    owner = _Owner(ctypes.addressof(made))
    return Result(
        view(made.binary, made.size, owner),
        bool(made.is_ptx),
        decode(made.log),
        lowered,
        _ORIGINS.get(made.origin, "unknown"),
    )

"""Programs: kernels compiled, or found in the cache, and loaded on one device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass


from kiln import _structs as s
from kiln._handle import Closable, Handle
from kiln._library import decode, encode, lib
from kiln.blob import _ORIGINS
from kiln.errors import MISS, check
from kiln.recipe import Key

UNKNOWN, BUFFER, VALUE, LOCAL = range(4)
_KINDS = ("unknown", "buffer", "value", "local")


@dataclass(frozen=True)
class Param:
    """One parameter of a kernel.

    Attributes
    ----------
    name, type : str
        As the source says, ``""`` where the backend cannot tell.
    kind : str
        ``"buffer"``, ``"value"``, ``"local"`` or ``"unknown"``.
    size : int
        Of a value, in bytes; 0 if it is not known.
    """

    name: str
    type: str
    kind: str
    size: int


@dataclass(frozen=True)
class BuildInfo:
    """How a program came to be; times in seconds.

    Attributes
    ----------
    origin : str
        Of the last stage, as `Blob.origin`.
    compiles : int
        How many stages this build compiled itself; 0 on a warm start.
    key_seconds, lookup_seconds, compile_seconds, load_seconds, total_seconds : float
        To read sources and headers and make keys; to look up and to wait; in the compiler; in the driver's load; in all.
    key : Key
        Of the last stage.
    log : str
        The compiler's warnings, the same on a hit as on a compile.
    """

    origin: str
    compiles: int
    key_seconds: float
    lookup_seconds: float
    compile_seconds: float
    load_seconds: float
    total_seconds: float
    key: Key
    log: str


class Program(Closable):
    """Kernels on one device; made by `Device.build`. Any thread may use it."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._params: dict[str, list[Param]] = {}

    @property
    def info(self) -> BuildInfo:
        """How it came to be."""
        with self._handle as program:
            told = lib.kiln_program_get_info(program).contents
            times = (told.key_ns, told.lookup_ns, told.compile_ns, told.load_ns, told.total_ns)
            key, lookup, compile, load, total = (time / 1e9 for time in times)
            origin = _ORIGINS.get(told.origin, "unknown")
            log = decode(told.log)
            return BuildInfo(origin, told.compiles, key, lookup, compile, load, total, Key(bytes(told.key)), log)

    @property
    def entries(self) -> list[str]:
        """The kernels in it; empty where the backend cannot tell."""
        with self._handle as program:
            count = lib.kiln_program_entry_count(program)
            return [decode(lib.kiln_program_entry(program, index)) for index in range(count)]

    def params(self, entry: str) -> list[Param]:
        """The parameters of a kernel.

        Parameters
        ----------
        entry : str
            Its name.

        Returns
        -------
        list of Param
            Empty where the backend cannot tell.

        Raises
        ------
        InvalidError
            There is no such kernel; the message lists those there are.
        """
        if entry not in self._params:
            self._params[entry] = self._ask(entry)
        return self._params[entry]

    def _ask(self, entry: str) -> list[Param]:
        out, count, diag = ctypes.POINTER(ctypes.POINTER(s.Param))(), ctypes.c_size_t(), s.Diag()
        with self._handle as program:
            status = lib.kiln_program_get_params(
                program, encode(entry), ctypes.byref(out), ctypes.byref(count), ctypes.byref(diag)
            )
            check(10 if status == MISS else status, diag)
            found = [out[index].contents for index in range(count.value)]
            return [Param(decode(one.name), decode(one.type), _KINDS[one.kind], one.size) for one in found]

    def wait(self) -> None:
        """Waits for a compile in the background; raises what it failed with."""
        diag = s.Diag()
        with self._handle as program:
            status = lib.kiln_program_wait(program, ctypes.byref(diag))
        check(status, diag)

    def __repr__(self) -> str:
        return f"<kiln.Program with {', '.join(self.entries) or 'kernels'}>"



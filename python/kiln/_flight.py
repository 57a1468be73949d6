"""Calls of a Python function from inside the library: one C function for all compiles."""

from __future__ import annotations

import ctypes
import itertools
import threading
from typing import Any, Callable, Generator, Optional

from kiln import _structs as s
from kiln._library import lib
from kiln.blob import Blob, as_bytes
from kiln.errors import E_CANCELLED, E_COMPILE, OK, Error, InvalidError, check

#: What a compile may return: the payload, the payload and its facts, or a blob.
Compile = Callable[[], Any]


class Flight:
    """One call of get_or_compile: the function, and what it raised."""

    __slots__ = ("compile", "error")

    def __init__(self, compile: Compile) -> None:
        self.compile = compile
        self.error: Optional[BaseException] = None


_flights: dict[int, Flight] = {}
#: Those of the main thread, which runs the handlers of signals, the innermost last.
_asking: list[Flight] = []
_numbers = itertools.count(1)


def depart(flight: Flight) -> int:
    """A number that stands for the flight in C."""
    number = next(_numbers)
    _flights[number] = flight
    return number


def arrive(number: int) -> None:
    """Forgets the flight."""
    flight = _flights.pop(number)
    if flight in _asking:
        _asking.remove(flight)


def _blob_of(result: Any) -> Blob:
    if isinstance(result, Blob):
        return result
    if isinstance(result, tuple) and len(result) == 2:
        return Blob(as_bytes(result[0], "a compile's result"), as_bytes(result[1], "a compile's facts"))
    return Blob(as_bytes(result, "a compile's result"))


def _plain(text: str) -> bytes:
    """A text of anybody's, whole to its end as C sees it."""
    return text.replace("\0", " ").encode("utf-8", "replace")


def _report(diag: Any, status: int, error: BaseException) -> int:
    if not diag:
        return status
    if isinstance(error, Error):
        what, why, fix = error.what, error.why, error.fix
    else:
        what, why, fix = "compile in Python", f"{type(error).__name__}: {error}", ""
    lib.kiln_diag_set(diag, status, _plain(fix), _plain(what), b"%s", _plain(why))
    log = _plain(error.log if isinstance(error, Error) else "")
    if log:
        lib.kiln_diag_set_log(diag, log, len(log))
    return status


def _run(user: int, out_blob: Any, diag: Any) -> int:
    flight = _flights[user]
    try:
        blob = _blob_of(flight.compile())
        if len(blob) == 0:
            raise InvalidError("store what was compiled", "it is empty", "raise an exception where a compile fails")
        out_blob[0] = lib.kiln_blob_retain(blob._pointer)
        return OK
    except BaseException as error:  # it must not cross C; the caller gets it from the flight
        flight.error = error
        return _report(diag, E_COMPILE if isinstance(error, Exception) else E_CANCELLED, error)


run = s.CompileFn(_run)

_check_signals = ctypes.pythonapi.PyErr_CheckSignals
_check_signals.restype, _check_signals.argtypes = ctypes.c_int, []


def _ask() -> Generator[bool, int, None]:
    """Runs the handlers of signals that came while the library was at work; what one raises ends the flight.

    A generator, for it is resumed inside its ``try``: a function may be interrupted before it comes to one, and what is raised
    there is lost in C.
    """
    answer = False
    while True:
        try:
            yield answer
            answer = False
            _check_signals()
        except GeneratorExit:  # the interpreter ends
            return
        except BaseException as error:  # it must not cross C; the caller gets it from the flight
            answer = True
            _asking[-1].error = error


_asker = _ask()
next(_asker)
_interrupted = s.InterruptedFn(_asker.send)
_never = s.InterruptedFn(0)


def question(flight: Flight) -> Any:
    """What the library asks while the flight waits; NULL off the main thread, and in a handler that `_ask` is running. A daemon
    thread that asked would be ended inside the library when the interpreter goes."""
    if threading.current_thread() is not threading.main_thread() or _asker.gi_running:
        return _never
    _asking.append(flight)
    return _interrupted


def finish(flight: Flight, status: int, diag: s.Diag) -> None:
    """Raises what the flight's function raised, on the thread whose function it was; else the status."""
    if flight.error is not None:
        lib.kiln_diag_clear(ctypes.byref(diag))
        error, flight.error = flight.error, None
        raise error
    check(status, diag)

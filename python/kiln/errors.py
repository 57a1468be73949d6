"""What kiln raises: each error says what failed, why, and what to do about it."""

from __future__ import annotations

import ctypes
import errno
from typing import Any

from kiln import _structs as s
from kiln._library import decode, lib


_LOG_SHOWN = 8000  # characters: a traceback is read by people


class Error(Exception):
    """Any failure that kiln reports. Its text ends with the compiler's log.

    Attributes
    ----------
    status : str
        The name of the status, ``"KILN_E_COMPILE"``.
    what : str
        The operation and its object.
    why : str
        The cause, with the system's or the driver's own text.
    fix : str
        One thing to do about it, or ``""``.
    log : str
        The compiler's log, or ``""``; ``str(error)`` ends with it.
    vendor_code : int
        The driver's or the system's own number (``CUresult``, ``cl_int``, ``errno``); 0 if there is none.

    Examples
    --------
    >>> import kiln
    >>> try:
    ...     kiln.Key("not a key")
    ... except kiln.Error as error:
    ...     print(error.status)
    KILN_E_INVALID
    """

    status = "KILN_E_INTERNAL"

    def __init__(self, what: str = "", why: str = "", fix: str = "", log: str = "", vendor_code: int = 0) -> None:
        self.what, self.why, self.fix, self.log, self.vendor_code = what, why, fix, log, vendor_code
        super().__init__(str(self))

    def __str__(self) -> str:
        line = f"{self.what}: {self.why}" if self.what and self.why else self.what or self.why
        line = f"{line} ({self.fix})" if self.fix else line
        log = self.log.rstrip()
        if not log:
            return line
        kept = log if len(log) <= _LOG_SHOWN else f"{log[:_LOG_SHOWN]}\n... ({len(log)} characters: see the attribute log)"
        return f"{line}\n{kept}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.why, self.fix, self.log, self.vendor_code)


class InvalidError(Error, ValueError):
    """An argument, an option or a variable of the environment cannot be used."""

    status = "KILN_E_INVALID"


class UnsupportedError(Error):
    """What was asked for cannot be done here."""

    status = "KILN_E_UNSUPPORTED"


class UnavailableError(Error):
    """A library, a driver or a device is not available."""

    status = "KILN_E_UNAVAILABLE"


class CompileError(Error):
    """The kernel does not compile; `log` has the compiler's words."""

    status = "KILN_E_COMPILE"


class RejectedError(Error):
    """The driver refused a binary."""

    status = "KILN_E_REJECTED"


class CorruptError(Error):
    """Stored data is damaged."""

    status = "KILN_E_CORRUPT"


class StorageError(Error, OSError):
    """Input or output failed; `errno` is the system's number (also `vendor_code`), None if there is none."""

    status = "KILN_E_IO"

    def __init__(self, what: str = "", why: str = "", fix: str = "", log: str = "", vendor_code: int = 0) -> None:
        super().__init__(what, why, fix, log, vendor_code)
        self.strerror = why
        if vendor_code:
            self.errno = vendor_code


class TimeLimitError(Error, TimeoutError):
    """A time limit was reached; `errno` is ``ETIMEDOUT``."""

    status = "KILN_E_TIMEOUT"

    def __init__(self, what: str = "", why: str = "", fix: str = "", log: str = "", vendor_code: int = 0) -> None:
        super().__init__(what, why, fix, log, vendor_code)
        self.errno, self.strerror = errno.ETIMEDOUT, why


class CancelledError(Error):
    """The work was cancelled before it ended."""

    status = "KILN_E_CANCELLED"


class BusyError(Error):
    """The object is in use."""

    status = "KILN_E_BUSY"


class DeviceLostError(Error):
    """The device stopped working."""

    status = "KILN_E_DEVICE_LOST"


class OutOfMemoryError(Error, MemoryError):
    """The host or the device is out of memory."""

    status = "KILN_E_NOMEM"


class InternalError(Error):
    """An error in kiln itself."""

    status = "KILN_E_INTERNAL"


OK, MISS = 0, 1
E_COMPILE, E_CANCELLED = 20, 41

_BY_STATUS: dict[int, type[Error]] = {
    10: InvalidError,
    11: UnsupportedError,
    12: UnavailableError,
    20: CompileError,
    21: RejectedError,
    30: CorruptError,
    31: StorageError,
    40: TimeLimitError,
    41: CancelledError,
    42: BusyError,
    50: DeviceLostError,
    60: OutOfMemoryError,
    70: InternalError,
}


def error_of(status: int, diag: s.Diag) -> Error:
    """The exception for a status; the diag is cleared."""
    kind = _BY_STATUS.get(status, InternalError)
    log = ctypes.string_at(diag.log, diag.log_length) if diag.log else b""
    error = kind(
        decode(diag.what),
        decode(diag.why) or decode(lib.kiln_status_text(status)),
        decode(diag.fix),
        decode(log),
        int(diag.vendor_code),
    )
    lib.kiln_diag_clear(ctypes.byref(diag))
    return error


def check(status: int, diag: s.Diag) -> None:
    """Raises what a status other than OK stands for."""
    if status != OK:
        raise error_of(status, diag)

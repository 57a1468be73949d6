"""Finds libkiln, opens it, and declares what this package calls of it.

Calls that may wait (for the disk, a compiler, another process) go through :class:`ctypes.CDLL`, which gives the GIL up
for the call. Calls that never do go through :class:`ctypes.PyDLL`: to give up the GIL and to take it back costs
more than they do.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from kiln import _structs as s

#: Of this package. It calls functions that are promised for one minor version alone, and ctypes does not ask for one.
VERSION = "0.1.0"

#: What the wheel brings: ``lib``, ``libexec``, ``bin``. Debian's package has none; the system's are used there.
NATIVE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "native")

_DIAG = POINTER(s.Diag)
_OUT = POINTER(c_void_p)
_KEY = POINTER(s.Key)

#: name: (result, arguments). None of these blocks.
QUICK: dict[str, tuple[Any, list[Any]]] = {
    "kiln_version": (c_char_p, []),
    "kiln_status_name": (c_char_p, [c_int]),
    "kiln_status_text": (c_char_p, [c_int]),
    "kiln_diag_clear": (None, [_DIAG]),
    "kiln_diag_set": (c_int, [_DIAG, c_int, c_char_p, c_char_p, c_char_p, c_char_p]),
    "kiln_diag_set_log": (None, [_DIAG, c_char_p, c_size_t]),
    "kiln_key_parse": (c_int, [c_char_p, _KEY, _DIAG]),
    "kiln_recipe_create": (c_int, [c_char_p, c_uint32, _OUT, _DIAG]),
    "kiln_recipe_destroy": (None, [c_void_p]),
    "kiln_recipe_copy": (c_int, [c_void_p, _OUT, _DIAG]),
    "kiln_recipe_add_text": (None, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "kiln_recipe_add_bytes": (None, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "kiln_recipe_add_u64": (None, [c_void_p, c_char_p, c_uint64]),
    "kiln_recipe_set_target": (None, [c_void_p, c_char_p]),
    "kiln_recipe_set_native": (None, [c_void_p]),
    "kiln_recipe_status": (c_int, [c_void_p, _DIAG]),
    "kiln_recipe_key": (s.Key, [c_void_p]),
    "kiln_recipe_text": (c_char_p, [c_void_p]),
    "kiln_blob_release": (None, [c_void_p]),
    "kiln_blob_retain": (c_void_p, [c_void_p]),
    "kiln_blob_data": (c_void_p, [c_void_p]),
    "kiln_blob_size": (c_size_t, [c_void_p]),
    "kiln_blob_facts": (c_void_p, [c_void_p]),
    "kiln_blob_facts_size": (c_size_t, [c_void_p]),
    "kiln_blob_compile_ns": (c_uint64, [c_void_p]),
    "kiln_cache_root": (c_char_p, [c_void_p]),
    "kiln_cache_disk_reason": (c_char_p, [c_void_p]),
    "kiln_cache_unpin": (None, [c_void_p, _KEY]),
    "kiln_cache_counter": (c_uint64, [c_void_p, c_uint32]),
    "kiln_origin_name": (c_char_p, [c_int]),
    "kiln_counter_name": (c_char_p, [c_uint32]),
    "kiln_counter_unit": (c_char_p, [c_uint32]),
    "kiln_counter_text": (c_char_p, [c_uint32]),
    "kiln_why_text": (c_char_p, [c_int]),
    "kiln_language_parse": (c_int, [c_char_p]),
    "kiln_language_name": (c_char_p, [c_int]),
    "kiln_language_of_path": (c_int, [c_char_p]),
    "kiln_device_class_name": (c_char_p, [c_int]),
    "kiln_probe_outcome_name": (c_char_p, [c_int]),
    "kiln_nvrtc_result_destroy": (None, [POINTER(s.NvrtcResult)]),
    "kiln_runtime_cache": (c_void_p, [c_void_p]),
    "kiln_runtime_report_count": (c_size_t, [c_void_p]),
    "kiln_runtime_get_report": (POINTER(s.ProbeReport), [c_void_p, c_size_t]),
    "kiln_runtime_device_count": (c_size_t, [c_void_p]),
    "kiln_runtime_device": (c_void_p, [c_void_p, c_size_t]),
    "kiln_runtime_summary": (c_char_p, [c_void_p]),
    "kiln_device_get_info": (POINTER(s.DeviceInfo), [c_void_p]),
    "kiln_program_get_info": (POINTER(s.BuildInfo), [c_void_p]),
    "kiln_program_entry_count": (c_size_t, [c_void_p]),
    "kiln_program_entry": (c_char_p, [c_void_p, c_size_t]),
    "kiln_program_get_params": (c_int, [c_void_p, c_char_p, POINTER(POINTER(POINTER(s.Param))), POINTER(c_size_t), _DIAG]),
    "kiln_buffer_size": (c_size_t, [c_void_p]),
    "kiln_event_release": (None, [c_void_p]),
    "kiln_buffer_address": (c_int, [c_void_p, POINTER(c_uint64), _DIAG]),
    "kiln_queue_native": (c_int, [c_void_p, POINTER(c_uint64), _DIAG]),
    "kiln_exports_create": (c_int, [c_void_p, c_void_p, _OUT, _DIAG]),
    "kiln_exports_silence": (None, [c_void_p]),
    "kiln_exports_add": (c_int, [c_void_p, c_size_t, _OUT, _DIAG]),
    "kiln_export_end": (None, [c_void_p]),
    "kiln_exports_take": (c_void_p, [c_void_p]),
    "kiln_export_free": (None, [c_void_p]),
}

#: The same for those that may wait: they run without the GIL.
BLOCKING: dict[str, tuple[Any, list[Any]]] = {
    "kiln_blob_create": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t, _OUT, _DIAG]),
    "kiln_cache_options_init_sized": (c_int, [POINTER(s.CacheOptions), c_size_t, _DIAG]),
    "kiln_cache_create": (c_int, [POINTER(s.CacheOptions), _OUT, _DIAG]),
    "kiln_cache_destroy": (None, [c_void_p]),
    "kiln_cache_get": (c_int, [c_void_p, _KEY, _OUT, POINTER(c_int), _DIAG]),
    "kiln_cache_contains": (None, [c_void_p, _KEY, c_size_t, POINTER(c_bool)]),
    "kiln_cache_put": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, _DIAG]),
    "kiln_cache_remove": (c_int, [c_void_p, _KEY, _DIAG]),
    "kiln_cache_trim": (None, [c_void_p, c_uint64]),
    "kiln_cache_pin": (c_int, [c_void_p, _KEY, _DIAG]),
    "kiln_cache_get_or_compile": (
        c_int,
        [c_void_p, c_void_p, s.CompileFn, c_void_p, _OUT, POINTER(c_int), _DIAG],
    ),
    "kiln_cache_get_or_compile_interruptible": (
        c_int,
        [c_void_p, c_void_p, s.CompileFn, s.InterruptedFn, c_void_p, _OUT, POINTER(c_int), _DIAG],
    ),
    "kiln_cache_claim": (
        c_int,
        [c_void_p, c_void_p, POINTER(s.ClaimOptions), _OUT, _OUT, POINTER(c_int), _DIAG],
    ),
    "kiln_claim_fulfil": (c_int, [c_void_p, c_void_p, _DIAG]),
    "kiln_claim_abandon": (None, [c_void_p]),
    "kiln_cache_flush": (None, [c_void_p]),
    "kiln_cache_get_totals": (c_int, [c_void_p, POINTER(c_uint64), c_size_t, _DIAG]),
    "kiln_cache_prune": (c_int, [c_void_p, POINTER(s.PruneOptions), POINTER(s.PruneResult), _DIAG]),
    "kiln_cache_clear": (c_int, [c_void_p, POINTER(s.PruneResult), _DIAG]),
    "kiln_cache_walk": (c_int, [c_void_p, c_char_p, s.EntryFn, c_void_p, _DIAG]),
    "kiln_cache_explain": (c_int, [c_void_p, c_void_p, s.ExplanationFn, c_void_p, _DIAG]),
    "kiln_cache_explain_key": (c_int, [c_void_p, _KEY, s.ExplanationFn, c_void_p, _DIAG]),
    "kiln_nvrtc_compile": (
        c_int,
        [c_void_p, POINTER(s.NvrtcRequest), POINTER(POINTER(s.NvrtcResult)), _DIAG],
    ),
    "kiln_opencl_build_program": (c_int, [c_void_p, c_void_p, c_void_p, c_char_p, c_char_p, _OUT, _DIAG]),
    "kiln_runtime_options_init_sized": (c_int, [POINTER(s.RuntimeOptions), c_size_t, _DIAG]),
    "kiln_runtime_create": (c_int, [POINTER(s.RuntimeOptions), _OUT, _DIAG]),
    "kiln_runtime_destroy": (None, [c_void_p]),
    "kiln_runtime_select": (c_int, [c_void_p, POINTER(s.Source), c_size_t, _OUT, _DIAG]),
    "kiln_compile": (c_int, [c_void_p, c_char_p, POINTER(s.Source), _OUT, POINTER(c_int), _DIAG]),
    "kiln_compile_headers": (c_int, [c_void_p, c_char_p, POINTER(s.Source), s.HeaderFn, c_void_p, _DIAG]),
    "kiln_explain": (c_int, [c_void_p, c_char_p, POINTER(s.Source), s.ExplanationFn, c_void_p, _DIAG]),
    "kiln_program_build": (
        c_int,
        [c_void_p, POINTER(s.Source), c_size_t, POINTER(s.BuildOptions), _OUT, _DIAG],
    ),
    "kiln_program_release": (None, [c_void_p]),
    "kiln_program_wait": (c_int, [c_void_p, _DIAG]),
    "kiln_buffer_create": (c_int, [c_void_p, c_size_t, _OUT, _DIAG]),
    "kiln_buffer_destroy": (None, [c_void_p]),
    "kiln_buffer_wrap": (c_int, [c_void_p, c_uint64, c_size_t, _OUT, _DIAG]),
    "kiln_queue_create": (c_int, [c_void_p, _OUT, _DIAG]),
    "kiln_queue_wrap": (c_int, [c_void_p, c_uint64, _OUT, _DIAG]),
    "kiln_queue_wait_queue": (c_int, [c_void_p, c_void_p, _DIAG]),
    "kiln_queue_destroy": (None, [c_void_p]),
    "kiln_queue_write": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, _DIAG]),
    "kiln_queue_read": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, _DIAG]),
    "kiln_queue_fill": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, _DIAG]),
    "kiln_queue_copy": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, _DIAG]),
    "kiln_queue_launch": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(s.Launch), _OUT, _DIAG]),
    "kiln_queue_finish": (c_int, [c_void_p, _DIAG]),
    "kiln_event_wait": (c_int, [c_void_p, _DIAG]),
    "kiln_event_elapsed": (c_int, [c_void_p, POINTER(c_uint64), _DIAG]),
}

_SONAME = "libkiln.so.0"


def _candidates() -> list[str]:
    own = os.path.join(NATIVE, "lib", _SONAME)
    return [own] if os.path.exists(own) else [_SONAME]


def _open() -> tuple[ctypes.CDLL, ctypes.PyDLL]:
    failures = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path), ctypes.PyDLL(path)
        except OSError as error:
            failures.append(f"{path}: {error}")
    raise ImportError(
        "kiln: cannot load libkiln: "
        + "; ".join(failures)
        + " (install the package libkiln0, or kiln's wheel, which brings it)"
    )


class _Functions:
    """Each function of libkiln by its name, declared at its first use."""

    def __init__(self) -> None:
        self._blocking, self._quick = _open()

    def __getattr__(self, name: str) -> Any:
        if name in QUICK:
            function = getattr(self._quick, name)
            function.restype, function.argtypes = QUICK[name]
        elif name in BLOCKING:
            function = getattr(self._blocking, name)
            function.restype, function.argtypes = BLOCKING[name]
        else:
            raise AttributeError(name)
        setattr(self, name, function)  # found without this method from now on
        return function


lib = _Functions()


def _refuse_another_version() -> None:
    told = decode(lib.kiln_version())
    if told.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(
            f"kiln: the Python package is {VERSION}, and the libkiln that was loaded is {told} (install the same version of both)"
        )


# What a view gives as its `obj` must not be a way to write to an entry.
if sys.version_info >= (3, 12):
    _READ = 0x100  # PyBUF_READ
    _view_memory = ctypes.pythonapi.PyMemoryView_FromMemory
    _view_memory.restype, _view_memory.argtypes = ctypes.py_object, [c_void_p, ctypes.c_ssize_t, c_int]

    class _Window:
        __slots__ = ("_memory", "_owner")

        def __init__(self, address: int, size: int, owner: object) -> None:
            self._memory, self._owner = _view_memory(address, size, _READ), owner

        def __buffer__(self, flags: int) -> memoryview:
            view: memoryview = self._memory
            return view

    def view(address: int, size: int, owner: object) -> memoryview:
        """A read-only view of foreign memory that keeps `owner` alive as long as anyone looks at it."""
        return memoryview(_Window(address, size, owner) if size else b"")

else:

    class _Window(c_uint8 * (2**62)):  # type: ignore[misc]
        # One ctypes type for memory of every length: to make a type for each costs more than a lookup does. Nothing is
        # read beyond the slice that is handed out. Before Python 3.12 no other type has a buffer at an address.

        def __setitem__(self, index: Any, value: Any) -> None:
            raise TypeError("the memory of a kiln entry is read-only")

        def __getitem__(self, index: Any) -> Any:
            raise TypeError("read an entry through the view that kiln gave")

    def view(address: int, size: int, owner: object) -> memoryview:
        """A read-only view of foreign memory that keeps `owner` alive as long as anyone looks at it."""
        if size == 0:
            return memoryview(b"")
        window = _Window.from_address(address)
        window._owner = owner
        return memoryview(window).cast("B")[:size].toreadonly()


def encode(text: str | bytes | os.PathLike[str] | None) -> bytes | None:
    """A path or a text as C takes it; None stays None. C would take a text with a NUL for a shorter one."""
    if isinstance(text, str):
        encoded = text.encode("utf-8", "surrogateescape")
    elif text is None:
        return None
    else:
        encoded = text if isinstance(text, bytes) else os.fsencode(text)
    if 0 in encoded:
        from kiln.errors import InvalidError

        raise InvalidError("pass a text to libkiln", f"{text!r:.80} has a NUL in it", "remove it")
    return encoded


def decode(text: bytes | None) -> str:
    """A text of C's."""
    return text.decode("utf-8", "replace") if text is not None else ""


_refuse_another_version()

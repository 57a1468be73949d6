"""Device memory shared with others: DLPack and ``__cuda_array_interface__``, out of kiln and into it.

No code of Python's runs in a tensor's deleter: a consumer calls it on any thread, and in the middle of errors, where ctypes
would lose the error. The library notes what is done with (kiln/unstable/native.h), and `_drain` runs when Python is ready.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p, py_object
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from kiln import _structs as s
from kiln._arrays import DLTensor, tensor_bytes
from kiln._library import lib
from kiln.errors import InvalidError, check

if TYPE_CHECKING:
    from kiln.buffer import Buffer

#: DLPack's numbers for devices.
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
#: What kernels of a backend reach.
REACHED = {"cpu": (CPU, CUDA_HOST), "cuda": (CUDA, CUDA_MANAGED, CUDA_HOST)}
#: What a buffer of a backend is.
EXPORTED = {"cpu": CPU, "cuda": CUDA}

#: The legacy default stream, in both protocols.
LEGACY = 1

_CODES = {"i": 0, "u": 1, "f": 2, "V": 3, "c": 5, "b": 6}
_LETTERS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_READ_ONLY = 1


class DType(NamedTuple):
    """DLPack's type of an element."""

    code: int
    bits: int
    lanes: int = 1

    @property
    def size(self) -> int:
        """In bytes."""
        return (self.bits * self.lanes + 7) // 8

    @property
    def typestr(self) -> Optional[str]:
        """As NumPy writes it, or None where NumPy has no such type (bfloat16)."""
        letter = _LETTERS.get(self.code)
        if letter is None or self.lanes != 1 or self.bits % 8:
            return None
        return f"{'|' if self.bits == 8 else '<'}{letter}{self.bits // 8}"


BYTES = DType(1, 8)


def parse_dtype(given: Any) -> DType:
    """A `DType` of ``"<f4"``, or of anything that has such a text as its ``str`` (NumPy's types)."""
    text = given if isinstance(given, str) else getattr(given, "str", "")
    known = len(text) >= 3 and text[0] in "<|=" and text[1] in _CODES and text[1] != "V" and text[2:].isdecimal()
    if known and 0 < 8 * int(text[2:]) < 256:  # a uint8_t of bits
        return DType(_CODES[text[1]], 8 * int(text[2:]))
    raise InvalidError("describe a buffer's elements", f"{given!r} is not a type that DLPack has", 'give one like "<f4"')


def described(array: Any) -> Optional[tuple[DType, tuple[int, ...]]]:
    """The elements of an array of the host, or None where its owner does not say, or DLPack has no such type."""
    try:
        seen = memoryview(array)
    except (TypeError, ValueError, BufferError):
        return None
    order, letter = ("@" + seen.format)[-2:] if len(seen.format) <= 2 else ("", "")
    code = "b" if letter == "?" else "f" if letter in "efd" else "i" if letter in "bhilqn" else "u"
    if order not in ("@", "=", "<") or letter not in "?efdbhilqnBHILQN":
        return None
    return DType(_CODES[code], 8 * seen.itemsize), seen.shape or ()


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    ]


_PLAIN, _NEWER = b"dltensor", b"dltensor_versioned"
for _name in (_PLAIN, _NEWER):
    ctypes.pythonapi.Py_IncRef(py_object(_name))  # a capsule may outlive this module, and has only the pointer

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
_capsule_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_valid.restype, _capsule_valid.argtypes = c_int, [py_object, c_char_p]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]


# --- out ----------------------------------------------------------------------------------------------------------


class _Export:
    """A tensor that others have, and the capsule that it was handed over in."""

    __slots__ = ("buffer", "capsule", "name")

    def __init__(self, buffer: Buffer, capsule: Any, name: bytes) -> None:
        self.buffer, self.capsule, self.name = buffer, capsule, name


_records: dict[int, _Export] = {}
_list: Optional[int] = None


def _drain(user: Any = None) -> int:
    """Gives back what consumers have let go of. It takes no lock: it may run between any two steps of the main thread."""
    while _list is not None:
        managed = lib.kiln_exports_take(_list)
        if not managed:
            break
        record = _records.pop(managed, None)
        lib.kiln_export_free(managed)
        if record is not None:
            record.buffer._handle.__exit__(None, None, None)
    return 0


_run = s.RunFn(_drain)


def _exports() -> int:
    global _list
    if _list is None:
        diag, out = s.Diag(), c_void_p()
        wake = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, c_void_p)
        check(lib.kiln_exports_create(wake, ctypes.cast(_run, c_void_p), ctypes.byref(out), ctypes.byref(diag)), diag)
        _list = out.value
        atexit.register(lib.kiln_exports_silence, _list)
    return _list or 0


def sweep() -> None:
    """Gives back what is done with, and what nobody took: a capsule that only `_records` still has."""
    for managed, record in list(_records.items()):
        if record.capsule is not None and sys.getrefcount(record.capsule) <= 2:
            unused = _capsule_valid(record.capsule, record.name)
            record.capsule = None
            if unused:
                lib.kiln_export_end(managed)
    _drain()


def export(buffer: Buffer, kind: int, index: int, newer: bool) -> Any:
    """A capsule with a tensor over a buffer, which lives until the consumer is done with it."""
    sweep()
    struct: Any = _Versioned if newer else _Managed
    size, ndim = ctypes.sizeof(struct), len(buffer.shape)
    diag, out = s.Diag(), c_void_p()
    address = buffer._handle.__enter__()
    try:
        lies_at = buffer.address
        check(lib.kiln_exports_add(_exports(), size + 16 * ndim, ctypes.byref(out), ctypes.byref(diag)), diag)
    except BaseException:
        buffer._handle.__exit__(None, None, None)
        raise
    managed = out.value or 0
    tensor = struct.from_address(managed)
    numbers = (c_int64 * (2 * ndim)).from_address(managed + size)
    stride = 1
    for axis in reversed(range(ndim)):
        numbers[axis], numbers[ndim + axis] = buffer.shape[axis], stride
        stride *= buffer.shape[axis]
    about = tensor.tensor
    about.data, about.device_type, about.device_id, about.ndim = lies_at, kind, index, ndim
    about.code, about.bits, about.lanes = buffer.dtype
    about.shape = ctypes.cast(managed + size, POINTER(c_int64))
    about.strides = ctypes.cast(managed + size + 8 * ndim, POINTER(c_int64))
    tensor.manager_ctx = address
    tensor.deleter = ctypes.cast(lib.kiln_export_end, c_void_p)
    if newer:
        tensor.major, tensor.minor, tensor.flags = 1, 0, 0
    name = _NEWER if newer else _PLAIN
    capsule = _capsule_new(managed, name, None)
    _records[managed] = _Export(buffer, capsule, name)
    return capsule


# --- in -----------------------------------------------------------------------------------------------------------


class Taken(NamedTuple):
    """Memory of an array of others'."""

    address: int
    size: int
    dtype: DType
    shape: tuple[int, ...]
    array: Any
    #: The capsule that keeps the memory alive, if there is one.
    capsule: Any
    #: The stream that its owner works in, or None on the host.
    stream: Optional[int]


def device_of(array: Any) -> Optional[int]:
    """DLPack's number of the device that an array lies on; None for what is not an array of DLPack's."""
    ask = getattr(array, "__dlpack_device__", None)
    if ask is None:
        return None
    try:
        return int(ask()[0])
    except (TypeError, ValueError, BufferError, RuntimeError):
        return None


def cuda_interface(array: Any) -> Optional[dict[str, Any]]:
    """What ``__cuda_array_interface__`` gives, or None."""
    try:
        found = getattr(array, "__cuda_array_interface__", None)
    except (RuntimeError, TypeError, ValueError, BufferError) as error:
        raise InvalidError(f"take a {type(array).__name__}", str(error)) from None
    return found if isinstance(found, dict) else None


def is_device_array(array: Any) -> bool:
    """Whether its elements lie on a CUDA device."""
    kind = device_of(array)
    return kind in (CUDA, CUDA_MANAGED) if kind is not None else cuda_interface(array) is not None


def stream_of(array: Any) -> int:
    """The stream that an array's owner puts its next work in: what comes after kiln's work must wait for it there."""
    if type(array).__module__.partition(".")[0] == "torch":  # PyTorch names its stream in neither protocol
        torch = sys.modules["torch"]
        return int(torch.cuda.current_stream(array.device).cuda_stream) or LEGACY
    told = cuda_interface(array) if device_of(array) != CPU else None
    return int((told or {}).get("stream") or LEGACY)


def take(array: Any, backend: str, stream: int) -> Taken:
    """The memory of an array that kernels of a backend reach. The owner's work on it comes before `stream`'s next.

    Raises
    ------
    InvalidError
        It lies elsewhere, or its elements do not lie one after the other.
    """
    kind = device_of(array)
    if kind is None:
        if backend == "cuda":
            return _take_interface(array)
        raise _refusal(array, "it has no DLPack")
    if kind not in REACHED.get(backend, ()):
        raise _refusal(array, f"its memory (DLPack's device {kind}) is not what {backend} reaches")
    capsule = _ask(array, stream if kind in (CUDA, CUDA_MANAGED) else None)
    newer = bool(_capsule_valid(capsule, _NEWER))
    pointer = _capsule_pointer(capsule, _NEWER if newer else _PLAIN)
    managed: Any = (_Versioned if newer else _Managed).from_address(pointer)
    tensor = managed.tensor
    if newer and managed.major != 1:
        raise _refusal(array, f"its DLPack is of version {managed.major}.{managed.minor}")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    dtype = DType(tensor.code, tensor.bits, tensor.lanes)
    size, address = tensor_bytes(tensor), (tensor.data or 0) + tensor.byte_offset
    # The capsule owns the memory, and gives it back when it goes: it is not consumed.
    return Taken(address, size, dtype, shape, array, capsule, stream_of(array) if kind == CUDA else None)


def _refusal(array: Any, why: str) -> InvalidError:
    return InvalidError(f"take the memory of a {type(array).__name__}", why, "give a contiguous array of the queue's device")


def _ask(array: Any, stream: Optional[int]) -> Any:
    try:
        try:
            return array.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # older than DLPack 1.0
            return array.__dlpack__(stream=stream) if stream is not None else array.__dlpack__()
    except (TypeError, BufferError, ValueError, RuntimeError) as error:
        raise _refusal(array, str(error)) from None


def _take_interface(array: Any) -> Taken:
    told = cuda_interface(array)
    if told is None:
        raise _refusal(array, "it has neither DLPack nor __cuda_array_interface__")
    if told.get("mask") is not None:
        raise _refusal(array, "it has a mask")
    dtype, shape = parse_dtype(told["typestr"]), tuple(int(n) for n in told["shape"])
    expected = dtype.size
    for length, stride in zip(reversed(shape), reversed(told.get("strides") or ())):
        if length > 1 and stride != expected:
            raise _refusal(array, "its elements do not lie one after the other")
        expected *= length
    size = dtype.size
    for length in shape:
        size *= length
    return Taken(int(told["data"][0] or 0), size, dtype, shape, array, None, int(told.get("stream") or LEGACY))

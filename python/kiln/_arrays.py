"""The memory of other people's arrays: the buffer protocol, then DLPack, of the host alone."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_ssize_t, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from types import TracebackType
from typing import Any, Optional

from kiln.errors import InvalidError

_WRITABLE = 1
_KDL_CPU, _KDL_CUDA_HOST, _KDL_ROCM_HOST = 1, 3, 11


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]


class DLTensor(ctypes.Structure):
    """DLPack's description of an array."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.restype, _get_buffer.argtypes = c_int, [py_object, POINTER(_PyBuffer), c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.restype, _release_buffer.argtypes = None, [POINTER(_PyBuffer)]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]


def tensor_bytes(tensor: DLTensor) -> int:
    """The size of an array whose elements lie one after the other; others are refused."""
    size = (tensor.bits * tensor.lanes + 7) // 8
    expected = 1
    for axis in reversed(range(tensor.ndim)):
        if tensor.strides and tensor.shape[axis] > 1 and tensor.strides[axis] != expected:
            raise InvalidError("take an array", "its elements do not lie one after the other", "make it contiguous")
        expected *= tensor.shape[axis]
    return int(size * expected)


class Memory:
    """The bytes of an array for the time of a ``with``: `address` and `size`."""

    def __init__(self, array: Any, *, writable: bool = False) -> None:
        self._array, self._writable = array, writable
        self._buffer: Optional[_PyBuffer] = None
        self._capsule: Any = None
        self.address, self.size = 0, 0

    def __enter__(self) -> Memory:
        buffer = _PyBuffer()
        try:
            # PyBUF_SIMPLE: the exporter refuses what is not contiguous.
            _get_buffer(self._array, ctypes.byref(buffer), _WRITABLE if self._writable else 0)
        except (TypeError, BufferError, ValueError) as error:
            # What has the buffer protocol and refuses is read-only, or not contiguous, by DLPack as well.
            if not isinstance(error, TypeError) or not hasattr(self._array, "__dlpack__"):
                raise self._refusal(str(error)) from None
            self._take_dlpack()
        else:
            self._buffer = buffer
            self.address, self.size = buffer.buf or 0, buffer.len
        return self

    def _refusal(self, why: str) -> InvalidError:
        fix = "give a contiguous" + (" writable" if self._writable else "") + " array of the host"
        return InvalidError(f"take the bytes of a {type(self._array).__name__}", why, fix)

    def _take_dlpack(self) -> None:
        kind, _ = self._array.__dlpack_device__()
        if int(kind) not in (_KDL_CPU, _KDL_CUDA_HOST, _KDL_ROCM_HOST):
            raise self._refusal("they lie on a device")
        # The capsule owns the memory and gives it back when it goes; nothing is consumed.
        try:
            self._capsule = self._array.__dlpack__()
        except (TypeError, BufferError, ValueError, RuntimeError) as error:
            raise self._refusal(str(error)) from None
        tensor = DLTensor.from_address(_capsule_pointer(self._capsule, b"dltensor"))
        self.address, self.size = (tensor.data or 0) + tensor.byte_offset, tensor_bytes(tensor)

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._buffer is not None:
            _release_buffer(ctypes.byref(self._buffer))
            self._buffer = None
        self._capsule = None

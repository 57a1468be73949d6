"""Device memory, kiln's own or others', and what others see of it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Optional, Sequence

from kiln import _dlpack as d
from kiln import _structs as s
from kiln._handle import Closable, Handle
from kiln._library import lib
from kiln._numbers import u64
from kiln.errors import Error, InvalidError, check

if TYPE_CHECKING:
    from kiln.launch import Queue
    from kiln.runtime import Device


class Buffer(Closable):
    """Device memory; made by `Device.buffer`, or over an array of others' by `Device.wrap`.

    Other libraries take it as it is: ``numpy.from_dlpack(buffer)`` on the processor, ``torch.from_dlpack(buffer)`` and
    ``cupy.asarray(buffer)`` with CUDA. Nothing is copied, and the memory lives until they have let go of it.

    Attributes
    ----------
    size : int
        In bytes.
    shape : tuple of int
        In elements, as others see it.
    device : Device
        Where it lies.
    """

    def __init__(
        self,
        device: Device,
        size: int,
        dtype: d.DType = d.BYTES,
        shape: Optional[Sequence[int]] = None,
        taken: Optional[d.Taken] = None,
    ) -> None:
        size = u64("the size of a buffer", size)
        self.device, self.size, self.dtype = device, size, dtype
        self.shape: tuple[int, ...] = tuple(shape) if shape is not None else (size // dtype.size,)
        count = dtype.size
        for length in self.shape:
            count *= length
        if count != size or min(self.shape, default=1) < 0:
            why = f"{size} bytes are not {self.shape} elements of {dtype.size} bytes"
            raise InvalidError("create a buffer", why, "give a shape that fits")
        self._queues: list[Queue] = []  # that may still be at work on it
        # An array in whose owner's stream the work on it is ordered; on the host there is none.
        self._foreign = taken.array if taken is not None and taken.stream is not None else None
        diag, out = s.Diag(), ctypes.c_void_p()
        with device._runtime as _:
            if taken is None:
                status = lib.kiln_buffer_create(device._pointer, size, ctypes.byref(out), ctypes.byref(diag))
            else:
                status = lib.kiln_buffer_wrap(
                    device._pointer, taken.address, size, ctypes.byref(out), ctypes.byref(diag)
                )
        check(status, diag)
        destroy = lib.kiln_buffer_destroy if taken is None else _EndOfWrapped(self._queues, taken)
        self._handle: Handle = Handle("buffer", out.value or 0, destroy, device._runtime)

    @property
    def address(self) -> int:
        """Where it lies, as the device's own interface says it (a ``CUdeviceptr``, a pointer of the host).

        Raises
        ------
        UnsupportedError
            The backend's memory has no address: opencl, vulkan, opengl.
        """
        diag, out = s.Diag(), ctypes.c_uint64()
        with self._handle as buffer:
            status = lib.kiln_buffer_address(buffer, ctypes.byref(out), ctypes.byref(diag))
        check(status, diag)
        return out.value

    def close(self) -> None:
        """Gives the memory back, as soon as others have let go of it; waits for work that uses it."""
        self._handle.close()
        d.sweep()

    # --- what others see -------------------------------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's kind and index of the device."""
        kind = d.EXPORTED.get(self.device.backend)
        if kind is None:
            raise BufferError(f"kiln: memory of {self.device.backend} has no address that others could use")
        return kind, self.device.index

    def __dlpack__(
        self,
        *,
        stream: Optional[int] = None,
        max_version: Optional[tuple[int, int]] = None,
        dl_device: Optional[tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule with the memory, for the consumer's ``from_dlpack``.

        Parameters
        ----------
        stream : int, optional
            The consumer's: what it puts there next comes after kiln's work. Default: the legacy default stream; -1: the
            consumer sees to the order itself. On the processor kiln waits for its work.
        max_version : tuple of int, optional
            Of DLPack, as the consumer knows it.
        dl_device, copy : optional
            Another device, or a copy, is refused: kiln shares memory and makes none.

        Raises
        ------
        BufferError
            The memory cannot be shared, or not so.
        """
        kind, index = self.__dlpack_device__()
        if copy or (dl_device is not None and tuple(dl_device) != (kind, index)):
            raise BufferError("kiln: a buffer is shared where it lies, and not copied (use Queue.read)")
        if kind == d.CUDA and stream == 0:
            raise BufferError("kiln: stream 0 is ambiguous in DLPack: 1 is the legacy default stream, 2 a thread's own")
        try:
            if kind == d.CPU:
                self._finish()
            elif stream != -1:
                self._precede(d.LEGACY if stream is None else int(stream))
            return d.export(self, kind, index, max_version is not None and max_version[0] >= 1)
        except Error as error:
            raise BufferError(str(error)) from error

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = self.dtype.typestr
        if self.device.backend != "cuda" or typestr is None:
            raise AttributeError("__cuda_array_interface__")
        queues = self._at_work()
        for other in queues[1:]:
            queues[0]._wait_for(other)
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.address, False),
            "version": 3,
            "strides": None,
            "stream": (queues[0].stream or d.LEGACY) if queues else None,
        }

    # --- order -----------------------------------------------------------------------------------------------------

    def _at_work(self) -> list[Queue]:
        self._queues[:] = [queue for queue in self._queues if not queue._handle.closed]
        return list(self._queues)

    def _finish(self) -> None:
        for queue in self._at_work():
            queue.finish()

    def _precede(self, stream: int) -> None:
        """What is put into a stream from now on comes after kiln's work."""
        for queue in self._at_work():
            queue._order(stream, queue_first=True)

    def __repr__(self) -> str:
        return f"<kiln.Buffer of {self.size} bytes on {self.device.name}>"


class _EndOfWrapped:
    """Ends a buffer over memory of others, which lives until then; the host's until the queues on it are done. A device's
    may go when its owner's stream has come so far: that comes after the queues.
    """

    def __init__(self, queues: list[Queue], taken: d.Taken) -> None:
        self._queues, self._taken = queues, [taken]

    def __call__(self, pointer: int) -> None:
        for queue in self._queues:
            if self._taken[0].stream is None and not queue._handle.closed:
                diag = s.Diag()
                with queue._handle as opened:
                    lib.kiln_queue_finish(opened, ctypes.byref(diag))
                lib.kiln_diag_clear(ctypes.byref(diag))
        lib.kiln_buffer_destroy(pointer)
        self._taken.clear()

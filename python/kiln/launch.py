"""In-order queues, launches and their times."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from kiln import _dlpack as d
from kiln import _structs as s
from kiln._arrays import Memory
from kiln._handle import Handle, Unique
from kiln._library import encode, lib
from kiln._numbers import u32, u64
from kiln.buffer import Buffer
from kiln.errors import InvalidError, check
from kiln.program import BUFFER, LOCAL, VALUE, Param, Program

if TYPE_CHECKING:
    from kiln.runtime import Device

#: One to three numbers of work-items.
Shape = Union[int, Sequence[int]]

# What a value of a type that a backend names is packed as.
_FORMATS = {
    "char": "b", "signed char": "b", "uchar": "B", "unsigned char": "B", "bool": "?",
    "short": "h", "ushort": "H", "unsigned short": "H",
    "int": "i", "uint": "I", "unsigned int": "I", "unsigned": "I",
    "long": "q", "ulong": "Q", "unsigned long": "Q", "long long": "q", "unsigned long long": "Q",
    "size_t": "Q", "half": "e", "float": "f", "double": "d",
    "int8_t": "b", "uint8_t": "B", "int16_t": "h", "uint16_t": "H",
    "int32_t": "i", "uint32_t": "I", "int64_t": "q", "uint64_t": "Q",
}  # fmt: skip
_INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}
_FLOATS = {2: "e", 4: "f", 8: "d"}


@dataclass(frozen=True)
class Local:
    """An argument of `Queue.launch`: work-group memory of `size` bytes."""

    size: int


class Event(Unique):
    """A launch that can be waited for; made by `Queue.launch_event`."""

    def __init__(self, pointer: int, queue: Handle) -> None:
        self._handle = Handle("event", pointer, lib.kiln_event_release, queue)

    def wait(self) -> None:
        """Waits until the launch is done; raises what it failed with."""
        diag = s.Diag()
        with self._handle as event:
            status = lib.kiln_event_wait(event, ctypes.byref(diag))
        check(status, diag)

    @property
    def seconds(self) -> float:
        """How long it ran on the device, in seconds; waits for its end."""
        diag, out = s.Diag(), ctypes.c_uint64()
        with self._handle as event:
            status = lib.kiln_event_elapsed(event, ctypes.byref(out), ctypes.byref(diag))
        check(status, diag)
        return out.value / 1e9


class Queue(Unique):
    """What is put in runs in that order; made by `Device.queue`. Threads that share one agree on the order."""

    def __init__(self, device: Device, stream: Any = None) -> None:
        diag, out = s.Diag(), ctypes.c_void_p()
        with device._runtime as _:
            if stream is None:
                status = lib.kiln_queue_create(device._pointer, ctypes.byref(out), ctypes.byref(diag))
            else:
                number = u64("a stream", _stream_number(stream))
                status = lib.kiln_queue_wrap(device._pointer, number, ctypes.byref(out), ctypes.byref(diag))
        check(status, diag)
        self.device, self._owner = device, stream
        self._native: Optional[int] = None
        self._guests: dict[int, Queue] = {}
        self._handle: Handle = Handle("queue", out.value or 0, lib.kiln_queue_destroy, device._runtime)

    @property
    def stream(self) -> int:
        """What the device's own interface calls it: a ``CUstream``.

        Raises
        ------
        UnsupportedError
            The backend's queues are nobody else's: all but cuda.
        """
        if self._native is None:
            diag, out = s.Diag(), ctypes.c_uint64()
            with self._handle as queue:
                status = lib.kiln_queue_native(queue, ctypes.byref(out), ctypes.byref(diag))
            check(status, diag)
            self._native = out.value
        return self._native

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol of cuda.core and PyTorch: a version, and the stream."""
        return 0, self.stream

    def write(self, buffer: Buffer, data: Any, offset: int = 0) -> None:
        """Copies an array of the host into a buffer; returns when it has been taken.

        Parameters
        ----------
        buffer : Buffer
            Where to.
        data : array
            Any object with the buffer protocol, or DLPack's on the host, whose elements lie one after the other.
        offset : int, optional
            Where in the buffer to begin, in bytes.

        Raises
        ------
        InvalidError
            The array, or its range in the buffer.
        """
        diag, offset = s.Diag(), u64("offset", offset)
        self._before([buffer])
        with Memory(data) as memory, self._handle as queue, buffer._handle as target:
            status = lib.kiln_queue_write(queue, target, offset, memory.address, memory.size, ctypes.byref(diag))
        check(status, diag)
        self._after([buffer])

    def read(self, buffer: Buffer, data: Any, offset: int = 0) -> None:
        """Copies from a buffer into a writable array of the host, as many bytes as that has; arguments as of `write`."""
        diag, offset = s.Diag(), u64("offset", offset)
        self._before([buffer])
        with Memory(data, writable=True) as memory, self._handle as queue, buffer._handle as origin:
            status = lib.kiln_queue_read(queue, origin, offset, memory.address, memory.size, ctypes.byref(diag))
        check(status, diag)

    def fill(self, buffer: Buffer, pattern: bytes, offset: int = 0, size: Optional[int] = None) -> None:
        """Repeats a pattern of 1, 2, 4, 8 or 16 bytes over `size` bytes (default: to the end)."""
        diag, offset = s.Diag(), u64("offset", offset)
        length = u64("size", buffer.size - offset if size is None else size)
        self._before([buffer])
        with self._handle as queue, buffer._handle as target:
            status = lib.kiln_queue_fill(queue, target, offset, pattern, len(pattern), length, ctypes.byref(diag))
        check(status, diag)
        self._after([buffer])

    def copy(self, origin: Buffer, target: Buffer, size: int, from_offset: int = 0, to_offset: int = 0) -> None:
        """Copies between two buffers of the device, in queue order; sizes and offsets in bytes."""
        diag, size = s.Diag(), u64("size", size)
        from_offset, to_offset = u64("from_offset", from_offset), u64("to_offset", to_offset)
        self._before([origin, target])
        with self._handle as queue, origin._handle as first, target._handle as second:
            status = lib.kiln_queue_copy(queue, first, from_offset, second, to_offset, size, ctypes.byref(diag))
        check(status, diag)
        self._after([origin, target])

    def launch(
        self,
        program: Program,
        entry: str,
        shape: Shape,
        *args: Any,
        local: Shape = (),
        offset: Shape = (),
        shared_bytes: int = 0,
        cooperative: bool = False,
        cluster: Sequence[int] = (),
    ) -> None:
        """Launches a kernel.

        Parameters
        ----------
        program : Program
            Built for the queue's device.
        entry : str
            The kernel.
        shape : int or sequence of int
            Work-items (not groups) in one to three dimensions, each a multiple of `local`'s.
        *args : Buffer, array on a CUDA device, number, array scalar, ctypes object, Local
            One a parameter. An array on the device (PyTorch's, CuPy's: DLPack or ``__cuda_array_interface__``) is passed
            by its address; the kernel comes after what its owner has put into its stream, and what the owner puts there
            next comes after the kernel. A Python number becomes what the parameter is declared as; where the backend
            cannot tell, give a scalar of NumPy or ctypes.
        local : int or sequence of int, optional
            Work-items of a group. Default: the backend chooses.
        offset : int or sequence of int, optional
            The first work-item of each dimension.
        shared_bytes : int, optional
            Dynamic work-group memory (CUDA), in bytes.
        cooperative : bool, optional
            All groups run at once and may wait for each other (CUDA).
        cluster : sequence of int, optional
            Groups in a cluster (CUDA).

        Raises
        ------
        InvalidError
            An unknown kernel; the count, kind or size of arguments; the shape.
        DeviceLostError, OutOfMemoryError
            The device.
        """
        self._launch(
            program, entry, shape, args, None,
            local=local, offset=offset, shared_bytes=shared_bytes, cooperative=cooperative, cluster=cluster,
        )  # fmt: skip

    def launch_event(
        self,
        program: Program,
        entry: str,
        shape: Shape,
        *args: Any,
        local: Shape = (),
        offset: Shape = (),
        shared_bytes: int = 0,
        cooperative: bool = False,
        cluster: Sequence[int] = (),
    ) -> Event:
        """`launch` that gives an `Event` to wait for, and to measure by."""
        out = ctypes.c_void_p()
        self._launch(
            program, entry, shape, args, out,
            local=local, offset=offset, shared_bytes=shared_bytes, cooperative=cooperative, cluster=cluster,
        )  # fmt: skip
        return Event(out.value or 0, self._handle)

    def _launch(
        self,
        program: Program,
        entry: str,
        shape: Shape,
        args: Sequence[Any],
        out: Optional[ctypes.c_void_p],
        *,
        local: Shape = (),
        offset: Shape = (),
        shared_bytes: int = 0,
        cooperative: bool = False,
        cluster: Sequence[int] = (),
    ) -> None:
        params = program.params(entry)
        taken = {i: self._take(value) for i, value in enumerate(args) if self._is_foreign(value)}
        args = [taken.get(i, value) for i, value in enumerate(args)]
        touched = [value for value in args if isinstance(value, Buffer)]
        # Their owners put them before this queue's next work when they handed them over.
        self._before([buffer for buffer in touched if buffer not in taken.values()])
        buffers = [buffer._handle for buffer in touched]
        packed = [_pack(value, params[i] if i < len(params) else None, entry, i) for i, value in enumerate(args)]
        sizes = _sizes(shape)
        launch = s.Launch(ctypes.sizeof(s.Launch), len(sizes))
        launch.global_[: len(sizes)] = sizes
        groups = [u32("cluster", length) for length in _sizes(cluster)]
        for array, wanted in ((launch.local, _sizes(local)), (launch.offset, _sizes(offset)), (launch.cluster, groups)):
            array[: len(wanted)] = wanted
        launch.args = (s.Arg * len(packed))(*(arg for arg, _ in packed))
        launch.arg_count = len(packed)
        launch.shared_bytes, launch.cooperative = u32("shared_bytes", shared_bytes), cooperative
        diag = s.Diag()
        with contextlib.ExitStack() as held:
            queue, loaded, *_ = [held.enter_context(one) for one in (self._handle, program._handle, *buffers)]
            status = lib.kiln_queue_launch(
                queue,
                loaded,
                encode(entry),
                ctypes.byref(launch),
                ctypes.byref(out) if out is not None else None,
                ctypes.byref(diag),
            )
        check(status, diag)
        self._after(touched)

    # --- order -----------------------------------------------------------------------------------------------------

    def _is_foreign(self, value: Any) -> bool:
        if isinstance(value, (int, float, Buffer, Local)) or self.device.backend != "cuda":
            return False
        return d.is_device_array(value)

    def _take(self, array: Any) -> Buffer:
        """A buffer over an array, whose owner's work so far comes before what is put in here next."""
        taken = d.take(array, self.device.backend, self.stream or d.LEGACY)
        if d.device_of(array) is None and taken.stream is not None:  # nobody has put this queue behind it
            self._order(taken.stream, queue_first=False)
        return Buffer(self.device, taken.size, taken.dtype, taken.shape, taken)

    def _order(self, stream: int, *, queue_first: bool) -> None:
        """Puts a stream's next work after this queue's so far, or this queue's next after the stream's."""
        if stream == (self.stream or d.LEGACY):
            return
        guest = self._guests.get(stream)
        if guest is None:
            guest = self._guests[stream] = Queue(self.device, stream)
        if queue_first:
            guest._wait_for(self)
        else:
            self._wait_for(guest)

    def _wait_for(self, before: Queue) -> None:
        diag = s.Diag()
        with self._handle as queue, before._handle as first:
            status = lib.kiln_queue_wait_queue(queue, first, ctypes.byref(diag))
        check(status, diag)

    def _before(self, buffers: Sequence[Buffer]) -> None:
        """The owners of wrapped memory first."""
        for buffer in buffers:
            if buffer._foreign is not None:
                self._order(d.stream_of(buffer._foreign), queue_first=False)

    def _after(self, buffers: Sequence[Buffer]) -> None:
        """And next again."""
        for buffer in buffers:
            if self not in buffer._queues:
                buffer._queues.append(self)
        for stream in {d.stream_of(buffer._foreign) for buffer in buffers if buffer._foreign is not None}:
            self._order(stream, queue_first=True)

    def finish(self) -> None:
        """Waits until everything in the queue is done; raises the first failure."""
        diag = s.Diag()
        with self._handle as queue:
            status = lib.kiln_queue_finish(queue, ctypes.byref(diag))
        check(status, diag)


def _stream_number(stream: Any) -> int:
    """A ``CUstream`` by its number, or of an object that has one: cuda.core's protocol, PyTorch's, CuPy's."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr"):
        if isinstance(getattr(stream, name, None), int):
            return int(getattr(stream, name))
    raise InvalidError("make a queue of a stream", f"{stream!r} is not one", "give its number, or an object that has it")


def _sizes(shape: Shape) -> list[int]:
    sizes = list(shape) if isinstance(shape, Sequence) else [shape]
    if len(sizes) > 3:
        raise InvalidError("launch a kernel", f"its shape has {len(sizes)} dimensions", "give one to three")
    return [u64("a shape", length) for length in sizes]


def _pack(value: Any, param: Optional[Param], entry: str, index: int) -> tuple[s.Arg, Any]:
    """The argument as C takes it, and what must live as long."""
    if isinstance(value, Buffer):
        return s.Arg(BUFFER, value._handle._pointer, 0, None, 0), value
    if isinstance(value, Local):
        return s.Arg(LOCAL, None, 0, None, u64("the size of a Local", value.size)), value
    data = _value_bytes(value, param, entry, index)
    kept = ctypes.create_string_buffer(data, len(data))
    return s.Arg(VALUE, None, 0, ctypes.addressof(kept), len(data)), kept


def _value_bytes(value: Any, param: Optional[Param], entry: str, index: int) -> bytes:
    form = _format(value, param)
    if form is not None:
        number = value.item() if hasattr(value, "item") else value
        try:
            return struct.pack(form, number)
        except (struct.error, OverflowError) as error:
            raise InvalidError(f"launch {entry}", f"argument {index + 1}, {value!r}: {error}") from None
    if isinstance(value, (int, float)):
        raise InvalidError(
            f"launch {entry}",
            f"argument {index + 1} is the number {value!r}, and the backend cannot tell the type of the parameter",
            "give a scalar of NumPy or ctypes",
        )
    with Memory(value) as memory:
        return ctypes.string_at(memory.address, memory.size)


def _format(value: Any, param: Optional[Param]) -> Optional[str]:
    scalar = isinstance(value, (int, float)) or (hasattr(value, "item") and getattr(value, "shape", None) == ())
    if not scalar or param is None:
        return None
    declared = " ".join(word for word in param.type.split() if word not in ("const", "volatile"))
    form = _FORMATS.get(declared)
    if form is None and isinstance(value, (int, float)):
        form = (_FLOATS if isinstance(value, float) else _INTEGERS).get(param.size)
    return form

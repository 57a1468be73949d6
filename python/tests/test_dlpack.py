"""Memory shared with others: DLPack on the processor with NumPy, and both protocols on the fake CUDA driver."""

from __future__ import annotations

import array
import ctypes
import gc
import os
import threading
from pathlib import Path
from typing import Any, Callable

import pytest
from test_runtime import C

import kiln
from kiln import _dlpack as d

numpy = pytest.importorskip("numpy")


@pytest.fixture
def device(cache: kiln.Cache) -> Any:
    with kiln.Runtime(backend="cpu", cache=cache) as opened:
        yield opened.select()


def scale(device: kiln.Device, buffer: kiln.Buffer, by: int = 2) -> kiln.Queue:
    queue = device.queue()
    queue.launch(device.build(kiln.Source("c", C)), "scale", buffer.size // 4, by, buffer)
    return queue


# --- out ----------------------------------------------------------------------------------------------------------


def test_numpy_sees_the_memory(device: kiln.Device) -> None:
    x = numpy.arange(64, dtype=numpy.int32).reshape(8, 8)
    buffer = device.buffer(x)
    seen = numpy.from_dlpack(buffer)
    assert seen.dtype == x.dtype and seen.shape == (8, 8) and (seen == x).all()
    queue = scale(device, buffer)  # not waited for: the hand-over does
    again = numpy.from_dlpack(buffer)
    assert (again == 2 * x).all() and again.ctypes.data == seen.ctypes.data == buffer.address
    queue.finish()


@pytest.mark.parametrize("typestr", ["|b1", "|i1", "<u2", "<i8", "<f2", "<f4", "<f8", "<c8"])
def test_elements_are_what_was_said(device: kiln.Device, typestr: str) -> None:
    dtype = numpy.dtype(typestr)
    buffer = device.buffer(24 * dtype.itemsize, dtype, (2, 3, 4))
    assert buffer.dtype.typestr == typestr and buffer.dtype == device.buffer(dtype.itemsize, typestr).dtype
    if typestr != "|b1":  # older NumPys have no bool in DLPack
        assert numpy.from_dlpack(buffer).dtype == dtype and numpy.from_dlpack(buffer).shape == (2, 3, 4)


def test_what_is_not_an_array_is_refused(device: kiln.Device) -> None:
    for dtype, shape in (("<f4", (5,)), ("<M8[s]", None), ("V8", None), ("<f4", (-2, -2)), (object, None), ("<f8", None)):
        with pytest.raises(kiln.InvalidError):
            device.buffer(12, dtype, shape)


def test_arrays_keep_their_elements(device: kiln.Device) -> None:
    assert device.buffer(array.array("d", [1, 2])).dtype.typestr == "<f8"
    assert device.buffer(b"1234").shape == (4,)
    assert device.buffer(numpy.zeros(3, ">i4")).dtype.typestr == "|u1"  # the other byte order is nobody's element
    assert device.buffer(numpy.float64(3)).shape == ()


def test_memory_lives_as_long_as_it_is_seen(device: kiln.Device) -> None:
    buffer = device.buffer(numpy.arange(16, dtype=numpy.int32))
    handle, seen = buffer._handle, numpy.from_dlpack(buffer)
    buffer.close()
    with pytest.raises(BufferError, match="closed"):
        buffer.__dlpack__()
    assert handle._pointer and (seen == numpy.arange(16)).all()
    del seen
    d._drain()  # or a little later, by itself
    assert handle._pointer == 0 and not d._records


def test_it_ends_by_itself(device: kiln.Device) -> None:
    """Nobody calls kiln again: the interpreter is asked for a call."""
    seen = numpy.from_dlpack(device.buffer(64))
    gc.collect()
    assert len(d._records) == 1
    del seen
    for _ in range(1000):  # a pending call runs between steps of the main thread
        if not d._records:
            break
    assert not d._records


def test_a_capsule_that_nobody_takes_ends(device: kiln.Device) -> None:
    buffer = device.buffer(64)
    capsule = buffer.__dlpack__()
    d.sweep()
    assert len(d._records) == 1  # it is held yet
    del capsule
    d.sweep()
    assert not d._records
    with pytest.raises((BufferError, RuntimeError)):
        numpy.from_dlpack(Elsewhere(buffer))  # the consumer throws the capsule away, in an error of its own
    d.sweep()
    assert not d._records


class Elsewhere:
    """A buffer that says it lies on another device."""

    def __init__(self, buffer: kiln.Buffer) -> None:
        self._buffer = buffer

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **how: Any) -> Any:
        capsule = self._buffer.__dlpack__()
        pointer = d._capsule_pointer(capsule, b"dltensor")
        d._Managed.from_address(pointer).tensor.device_type = 2
        return capsule


def consume(capsule: Any, versioned: bool = False) -> int:
    """Takes a tensor as a consumer in C does, and gives its address."""
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = b"dltensor_versioned" if versioned else b"dltensor"
    pointer: int = d._capsule_pointer(capsule, name)
    rename(capsule, USED[versioned])
    return pointer


USED = {False: b"used_dltensor", True: b"used_dltensor_versioned"}


def test_both_forms_of_dlpack(device: kiln.Device) -> None:
    buffer = device.buffer(24, "<f4", (3, 2))
    managed: Any
    for versioned, struct in ((False, d._Managed), (True, d._Versioned)):
        pointer = consume(buffer.__dlpack__(max_version=(1, 1) if versioned else (0, 8)), versioned)
        managed = struct.from_address(pointer)
        if versioned:
            assert (managed.major, managed.minor, managed.flags) == (1, 0, 0)
        tensor = managed.tensor
        assert (tensor.data, tensor.byte_offset, tensor.ndim) == (buffer.address, 0, 2)
        assert (tensor.code, tensor.bits, tensor.lanes, tensor.device_type) == (2, 32, 1, 1)
        assert tensor.shape[:2] == [3, 2] and tensor.strides[:2] == [2, 1]
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(pointer)
    d._drain()
    assert not d._records


def test_a_deleter_on_any_thread_in_the_middle_of_an_error(device: kiln.Device) -> None:
    """ctypes would lose the error if a function of Python's ran there."""
    buffer = device.buffer(64)
    pointers = [consume(buffer.__dlpack__()) for _ in range(64)]
    end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(d._Managed.from_address(pointers[0]).deleter)
    threads = [threading.Thread(target=lambda mine=pointers[i::4]: [end(one) for one in mine]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    d._drain()
    assert not d._records and not buffer._handle._users


def test_an_error_survives_the_end_of_what_it_unwinds(device: kiln.Device) -> None:
    """A value on the stack is freed with the error set."""
    buffer = device.buffer(64)

    def both(seen: Any, other: Any) -> None: ...

    with pytest.raises(ZeroDivisionError):
        both(numpy.from_dlpack(buffer), 1 // 0)
    with pytest.raises(ZeroDivisionError):
        both(buffer.__dlpack__(), 1 // 0)
    gc.collect()
    d.sweep()
    assert not d._records


def test_what_others_may_ask_for(device: kiln.Device) -> None:
    buffer = device.buffer(16)
    assert buffer.__dlpack_device__() == (1, 0)
    assert not hasattr(buffer, "__cuda_array_interface__")
    buffer.__dlpack__(dl_device=(1, 0), copy=False)
    for how in ({"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError, match="not copied"):
            buffer.__dlpack__(**how)
    with pytest.raises(kiln.UnsupportedError, match="cpu"):
        _ = device.queue().stream
    with pytest.raises(kiln.UnsupportedError):
        device.queue(1)


def test_other_backends_say_so(cache: kiln.Cache) -> None:
    with kiln.Runtime(backend="opencl", cache=cache) as runtime:
        if not runtime.devices:
            pytest.skip("no OpenCL device")
        found = runtime.select()
        buffer = found.buffer(16)
        with pytest.raises(BufferError, match="opencl"):
            numpy.from_dlpack(buffer)
        with pytest.raises(kiln.UnsupportedError):
            _ = buffer.address
        with pytest.raises(kiln.UnsupportedError):
            found.wrap(numpy.zeros(4))


def test_the_interpreter_ends_with_memory_in_use(python: Callable[..., str], cache: kiln.Cache) -> None:
    program = """
import sys, kiln, numpy
device = kiln.Runtime(backend="cpu", cache=kiln.Cache(sys.argv[1])).select()
sys.kept = [numpy.from_dlpack(device.buffer(4096)) for _ in range(8)]
class Late:
    def __init__(self): self.seen = numpy.from_dlpack(device.buffer(64))
numpy.kept = Late()
print("end")
"""
    assert python(program, cache.root) == "end\n"


# --- in -----------------------------------------------------------------------------------------------------------


def test_an_array_of_the_host_is_wrapped(device: kiln.Device) -> None:
    x = numpy.arange(64, dtype=numpy.int32)
    buffer = device.wrap(x)
    assert buffer.address == x.ctypes.data and buffer.shape == (64,) and buffer.size == 256
    scale(device, buffer, 3).finish()
    assert (x == 3 * numpy.arange(64)).all()
    queue = scale(device, buffer)
    del buffer, x  # and the queue's work is waited for before the memory goes
    gc.collect()
    queue.finish()


def test_what_cannot_be_wrapped(device: kiln.Device) -> None:
    x = numpy.zeros((8, 8), numpy.int32)
    for wrong, match in (
        (x[:, ::2], "one after the other"),
        (x.T[:, 1:], "one after the other"),
        ([1, 2], "no DLPack"),
        (bytearray(4), "no DLPack"),
        (numpy.zeros(0), "no 0 bytes"),
        (OnDevice(x, 2), "device 2"),
    ):
        with pytest.raises(kiln.InvalidError, match=match):
            device.wrap(wrong)
    unaligned = numpy.zeros(65, numpy.int8)[1:].view(numpy.int32)
    queue, program = device.queue(), device.build(kiln.Source("c", C))
    with pytest.raises(kiln.InvalidError, match="aligned"):
        queue.launch(program, "scale", 16, 2, device.wrap(unaligned))


class OnDevice:
    """An array that says where it lies."""

    def __init__(self, array: Any, kind: int) -> None:
        self._array, self._kind = array, kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__()


# --- CUDA: a fake driver, and a library next to kiln that speaks to it ---------------------------------------------

KERNEL = 'extern "C" __global__ void scale(int *x, int by) { x[blockIdx.x * blockDim.x + threadIdx.x] *= by; }'

NEIGHBOUR = """
import ctypes, os, sys
import kiln
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
cuda.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]
cuda.cuMemFree_v2.argtypes = [ctypes.c_uint64]
context = ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxPushCurrent_v2(context)

def stream():
    made = ctypes.c_void_p()
    cuda.cuStreamCreate(ctypes.byref(made), 1)
    return made.value

class Array:
    '''A library's array on the device: the fake driver's memory is the host's.'''

    def __init__(self, count, stream=None, **more):
        out = ctypes.c_uint64()
        cuda.cuMemAlloc_v2(ctypes.byref(out), 4 * count)
        self.pointer, self.count = out.value, count
        self.values = (ctypes.c_int32 * count).from_address(out.value)
        self.values[:] = range(count)
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<i4", "data": (out.value, False), "version": 3,
                                         "stream": stream, **more}

runtime = kiln.Runtime(backend="cuda", strict=True, cache=kiln.Cache(sys.argv[1]))
device = runtime.select()
source = kiln.Source("cuda", sys.argv[2])
program = device.build(source)
queue = device.queue()
INT = ctypes.c_int
order = os.environ["FAKECUDA_ORDER"]

def events():
    '''What was ordered since the last look: ("record", stream), ("wait", stream), ("launch", stream).'''
    lines = open(order).read().split("\\n") if os.path.exists(order) else []
    open(order, "w").close()
    return [(line.split()[0], int(line.split()[2 if line[0] == "r" else 1], 16)) for line in lines if line]
"""


@pytest.fixture
def cuda(python: Callable[..., str], cache: kiln.Cache, tmp_path: Path) -> Callable[[str], str]:
    """Runs a program after `NEIGHBOUR`, on the fake driver."""
    toolkit = os.environ.get("KILN_TEST_TOOLKIT", "")
    driver = Path(toolkit).parent / "good"
    if not (driver / "libcuda.so.1").exists():
        pytest.skip("no fake driver was built (KILN_TEST_TOOLKIT)")

    def run(program: str) -> str:
        paths = f"{driver}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        order = str(tmp_path / "order.log")
        return python(NEIGHBOUR + program, cache.root, KERNEL, LD_LIBRARY_PATH=paths, CUDA_PATH=toolkit, FAKECUDA_ORDER=order)

    return run


def test_arrays_on_the_device_are_arguments(cuda: Callable[[str], str]) -> None:
    program = """
events()
x, theirs = Array(64), stream()
queue.launch(program, "scale", 64, x, INT(3))
assert list(x.values) == [3 * i for i in range(64)]
# They named no stream: the legacy default one. kiln's comes after it, and it comes after kiln's.
own = queue.stream
assert events() == [("record", 1), ("wait", own), ("launch", own), ("record", own), ("wait", 1)], events()
x = Array(64, theirs)
queue.launch(program, "scale", 64, x, INT(3))
assert events() == [("record", theirs), ("wait", own), ("launch", own), ("record", own), ("wait", theirs)]
# A queue in their stream needs no events.
guest = device.queue(theirs)
guest.launch(program, "scale", 64, x, INT(2))
assert events() == [("launch", theirs)] and x.values[5] == 30
del guest
queue.finish()
"""
    cuda(program)


def test_wrapped_memory_is_ordered_each_time(cuda: Callable[[str], str]) -> None:
    program = """
theirs = stream()
x = Array(64, theirs)
buffer = device.wrap(x)
own = queue.stream
events()
queue.launch(program, "scale", 64, buffer, INT(3))
assert events() == [("record", theirs), ("wait", own), ("launch", own), ("record", own), ("wait", theirs)]
queue.fill(buffer, b"\\1\\0\\0\\0")
assert x.values[63] == 1 and ("wait", theirs) in events()
host = (ctypes.c_int32 * 64)()
queue.read(buffer, host)
assert list(host) == [1] * 64
buffer.close()
assert x.values[0] == 1
"""
    cuda(program)


def test_a_buffer_is_an_array_on_the_device(cuda: Callable[[str], str]) -> None:
    program = """
theirs = stream()
buffer = device.buffer(256, "<i4", (8, 8))
told = buffer.__cuda_array_interface__
assert told == {"shape": (8, 8), "typestr": "<i4", "data": (buffer.address, False), "version": 3, "strides": None,
                "stream": None}, told
assert buffer.__dlpack_device__() == (2, 0)
queue.fill(buffer, b"\\2\\0\\0\\0")
own = queue.stream
assert buffer.__cuda_array_interface__["stream"] == own
second = device.queue()
second.launch(program, "scale", 64, buffer, INT(3))
events()
assert buffer.__cuda_array_interface__["stream"] == own
assert events() == [("record", second.stream), ("wait", own)]
buffer.__dlpack__(stream=theirs)
assert events() == [("record", own), ("wait", theirs), ("record", second.stream), ("wait", theirs)]
buffer.__dlpack__(stream=None)
assert [event for event in events() if event[0] == "wait"] == [("wait", 1), ("wait", 1)]
buffer.__dlpack__(stream=-1)
assert events() == []
try:
    buffer.__dlpack__(stream=0)
except BufferError as error:
    assert "ambiguous" in str(error)
else:
    raise AssertionError("stream 0 was taken")
# kiln takes its own as any other's.
class Only:
    def __init__(self, of): self.__dlpack__, self.__dlpack_device__ = of.__dlpack__, of.__dlpack_device__
third = device.queue()
third.launch(program, "scale", 64, Only(buffer), INT(7))
waits = [event for event in events() if event[0] != "record"]
assert waits[:3] == [("wait", third.stream), ("wait", third.stream), ("launch", third.stream)], waits
host = (ctypes.c_int32 * 64)()
queue._wait_for(third)
queue.read(buffer, host)
assert list(host) == [42] * 64
import kiln._dlpack as d
d.sweep()
assert not d._records
"""
    cuda(program)


def test_what_is_refused_on_the_device(cuda: Callable[[str], str]) -> None:
    program = """
def refused(array, why):
    try:
        queue.launch(program, "scale", 64, array, INT(3))
    except kiln.InvalidError as error:
        assert why in str(error), error
    else:
        raise AssertionError(why)
refused(Array(64, strides=(8,)), "one after the other")
refused(Array(64, mask=object()), "mask")
refused(Array(64, typestr="<M8[ns]"), "<M8[ns]")
host = (ctypes.c_int32 * 64)()
refused(Array(64, data=(ctypes.addressof(host), False)), "knows no memory")
refused(Array(64, data=(0, False)), "address 0x0")
other = ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(other), 1)
cuda.cuCtxPushCurrent_v2(other)
refused(Array(64), "device 1")
class Stream:
    def __cuda_stream__(self): return 0, 2
assert device.queue(Stream()).stream == 2 and device.queue(queue).stream == queue.stream
try:
    device.queue("2")
except kiln.InvalidError:
    pass
else:
    raise AssertionError("a text was taken for a stream")
"""
    cuda(program)

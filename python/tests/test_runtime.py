"""Level 3 and the drop-in calls, on the processor and on PoCL."""

from __future__ import annotations

import inspect
import array
import ctypes
from pathlib import Path
from typing import Any

import pytest

import kiln
from kiln.runtime import Local

C = """#include <kiln_kernel.h>
KILN_KERNEL(scale, KILN_VALUE(int, by), KILN_INOUT(int, x)) { KILN_ITEMS_X(i) { x[i] *= by; } }
"""
OPENCL = "kernel void scale(int by, global int *x) { x[get_global_id(0)] *= by; }"


@pytest.fixture
def runtime(cache: kiln.Cache) -> Any:
    with kiln.Runtime(backend="cpu", cache=cache) as opened:
        yield opened


def scaled(runtime: kiln.Runtime, by: Any, data: Any) -> Any:
    device = runtime.select(kiln.Source("c", C))
    program, queue, buffer = device.build(kiln.Source("c", C)), device.queue(), device.buffer(data)
    queue.launch(program, "scale", len(data), by, buffer)
    queue.read(buffer, data)
    return data


@pytest.mark.parametrize("by", [2, True, ctypes.c_int(2), ctypes.c_int32(-1)])
def test_a_kernel_computes(runtime: kiln.Runtime, by: Any) -> None:
    number = int(getattr(by, "value", by))
    assert list(scaled(runtime, by, array.array("i", range(64)))) == [number * i for i in range(64)]


def test_a_fallback_runs_until_the_compile_is_done(runtime: kiln.Runtime) -> None:
    device, data = runtime.select(), array.array("i", [1])
    fallback = kiln.Source("c", C.replace("*= by", "+= 10"))
    device.build(fallback)
    program, queue, buffer = device.build(kiln.Source("c", C), background=True, fallback=[fallback]), device.queue(), device.buffer(data)
    program.wait()
    queue.launch(program, "scale", 1, 3, buffer)
    queue.read(buffer, data)
    assert data[0] == 3


def test_numpy_arrays_and_scalars(runtime: kiln.Runtime) -> None:
    numpy = pytest.importorskip("numpy")
    x = numpy.arange(64, dtype=numpy.int32)
    assert (scaled(runtime, numpy.int64(3), x.copy()) == 3 * x).all()
    with pytest.raises(kiln.InvalidError, match="contiguous"):
        runtime.select().buffer(numpy.zeros((8, 8))[:, ::2])
    frozen = numpy.zeros(4)
    frozen.flags.writeable = False
    device = runtime.select()
    with pytest.raises(kiln.InvalidError):
        device.queue().read(device.buffer(frozen), frozen)


class OnlyDlpack:
    """An array that has DLPack and no buffer protocol, as PyTorch's do."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self._array, self._device = array, device

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


def test_dlpack_of_the_host(runtime: kiln.Runtime) -> None:
    numpy = pytest.importorskip("numpy")
    x, device = numpy.arange(64, dtype=numpy.int32), runtime.select()
    buffer, out = device.buffer(OnlyDlpack(x[8:])), numpy.zeros(56, numpy.int32)
    device.queue().read(buffer, out)
    assert (out == x[8:]).all()
    with pytest.raises(kiln.InvalidError, match="one after the other"):
        device.buffer(OnlyDlpack(x.reshape(8, 8)[:, ::2]))
    with pytest.raises(kiln.InvalidError, match="on a device"):
        device.buffer(OnlyDlpack(x, 2))


def test_wrong_launches_are_refused(runtime: kiln.Runtime) -> None:
    device = runtime.select(kiln.Source("c", C))
    program, queue, buffer = device.build(kiln.Source("c", C)), device.queue(), device.buffer(64)
    for shape, args in ((4, (2,)), (4, (buffer, 2)), ((1, 1, 1, 1), (2, buffer)), (4, (1 << 40, buffer)), (4, (Local(4), buffer))):
        with pytest.raises(kiln.InvalidError):
            queue.launch(program, "scale", shape, *args)
    with pytest.raises(kiln.InvalidError, match="scale"):
        queue.launch(program, "scales", 4, 2, buffer)
    buffer.close()
    with pytest.raises(kiln.InvalidError, match="closed"):
        queue.launch(program, "scale", 4, 2, buffer)


def test_the_second_process_compiles_nothing(runtime: kiln.Runtime, cache: kiln.Cache, python: Any) -> None:
    first = runtime.select(kiln.Source("c", C)).build(kiln.Source("c", C)).info
    assert (first.origin, first.compiles) == ("compiled", 1) and first.compile_seconds > 0
    program = """
import sys, kiln
with kiln.Runtime(backend="cpu", cache=kiln.Cache(sys.argv[1])) as runtime:
    source = kiln.Source("c", sys.argv[2])
    info = runtime.select(source).build(source).info
    print(info.origin, info.compiles, info.key)
"""
    assert python(program, cache.root, C).split() == ["disk", "0", str(first.key)]


def test_what_does_not_compile(runtime: kiln.Runtime) -> None:
    source = kiln.Source("c", C.replace("*=", "*=="))
    with pytest.raises(kiln.CompileError) as caught:
        runtime.select(source).build(source)
    assert "error" in caught.value.log
    with pytest.raises(kiln.InvalidError):
        kiln.Source("fortran", "")._struct()


def test_events_and_devices(runtime: kiln.Runtime) -> None:
    device = runtime.select(kiln.Source("c", C))
    program, buffer = device.build(kiln.Source("c", C)), device.buffer(array.array("i", [1] * 64))
    queue = device.queue()
    event = queue.launch_event(program, "scale", 64, 5, buffer)
    event.wait()
    assert event.seconds >= 0
    queue.fill(buffer, b"\1\0\0\0", size=128)
    half = device.buffer(128)
    queue.copy(buffer, half, 128)
    queue.finish()
    out = array.array("i", [0] * 32)
    queue.read(half, out)
    assert list(out) == [1] * 32
    assert device.backend == "cpu" and device.kind == "software" and device.address_bits == 64
    assert [param.kind for param in program.params("scale")] == ["value", "buffer"]
    assert program.entries == ["scale"]
    assert [probe.backend for probe in runtime.probes if probe.outcome == "ready"] == ["cpu"]
    assert "selected=cpu:0" in runtime.summary


def test_compile_explain_headers(runtime: kiln.Runtime, tmp_path: Path) -> None:
    (tmp_path / "by.h").write_text("#define BY 2\n")
    (tmp_path / "scale.c").write_text('#include "by.h"\n' + C)
    source = kiln.Source.read(tmp_path / "scale.c", defines={"UNUSED": None, "N": 4})
    assert str(tmp_path / "by.h") in runtime.headers("cpu:native", source)
    assert not runtime.explain("cpu:native", source)[0].hit
    made = runtime.compile("cpu:native", source)
    assert made.origin == "compiled" and bytes(made.data[:4]) == b"\x7fELF"
    assert runtime.explain("cpu:native", source)[0].hit
    (tmp_path / "by.h").write_text("#define BY 3\n")
    assert runtime.explain("cpu:native", source)[0].why == "header changed"
    with pytest.raises(kiln.InvalidError):
        kiln.Source.read(tmp_path / "scale")


def test_objects_outlive_their_runtime_in_any_order(cache: kiln.Cache) -> None:
    runtime = kiln.Runtime(backend="cpu", cache=cache)
    device = runtime.select()
    queue, buffer = device.queue(), device.buffer(16)
    del runtime, device
    queue.fill(buffer, b"\0")
    del queue, buffer


# --- pyopencl -----------------------------------------------------------------------------------------------------


def pocl() -> Any:
    cl = pytest.importorskip("pyopencl")
    try:
        return cl, cl.Context([cl.get_platforms()[0].get_devices()[0]])
    except (cl.Error, IndexError) as error:
        pytest.skip(f"no OpenCL device: {error}")


def test_pyopencl_takes_and_gives_its_own(cache: kiln.Cache) -> None:
    numpy = pytest.importorskip("numpy")
    cl, context = pocl()
    queue = cl.CommandQueue(context)
    x = numpy.arange(64, dtype=numpy.int32)
    buffer = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    program = kiln.opencl.build_program(context, context.devices[0], OPENCL, ["-cl-std=CL1.2", "-DN=4"], cache=cache)
    assert isinstance(program, cl.Program)
    program.scale(queue, (64,), None, numpy.int32(3), buffer)
    out = numpy.empty_like(x)
    cl.enqueue_copy(queue, out, buffer)
    assert (out == 3 * x).all()
    assert cache.stats()["compiles"] + cache.stats()["bypassed"] == 1


def test_pyopencl_errors(cache: kiln.Cache) -> None:
    _, context = pocl()
    with pytest.raises(kiln.CompileError) as caught:
        kiln.opencl.build_program(context, context.devices[0], "kernel void broken( {", cache=cache)
    assert "error" in caught.value.log


def test_a_failed_compile_shows_the_compilers_log(runtime: kiln.Runtime) -> None:
    """A traceback prints str(error) alone."""
    with pytest.raises(kiln.CompileError) as caught:
        source = kiln.Source("c", C.replace("*=", "*=="))
        runtime.select(source).build(source)
    assert caught.value.log.strip() and caught.value.log.strip() in str(caught.value)
    long = kiln.CompileError("what", "why", log="x" * 100_000)
    assert len(str(long)) < 10_000 and "100000 characters" in str(long)


def test_an_unknown_backend_or_language_raises() -> None:
    for wrong in ("cud", "cud,nothing"):
        with pytest.raises(kiln.InvalidError, match="cud"):
            kiln.Runtime(backend=wrong)
    with pytest.raises(kiln.Error):
        kiln.Runtime(backend="cpu", device="cpu:99").select()
    with kiln.Runtime(backend="cud", strict=False) as runtime:  # as KILN_BACKEND does
        assert runtime.devices
    for wrong in ("opencl", "OpenCL-C", "", None, 3):
        with pytest.raises(kiln.InvalidError, match="not a language"):
            kiln.Source(wrong, "text")
    with pytest.raises(kiln.InvalidError, match="did you mean 'opencl-c'"):
        kiln.Source("opencl", "text")


def test_devices_are_equal_by_what_they_are() -> None:
    with kiln.Runtime(backend="cpu") as runtime, kiln.Runtime(backend="cpu") as other:
        assert runtime.devices == runtime.devices and len({*runtime.devices, *runtime.devices}) == len(runtime.devices)
        assert runtime.devices[0] != other.devices[0] and runtime.devices[0] != "cpu:0"


def test_launch_says_what_it_takes() -> None:
    names = set(inspect.signature(kiln.Queue.launch).parameters)
    assert {"local", "offset", "shared_bytes", "cooperative", "cluster"} <= names
    assert names == set(inspect.signature(kiln.Queue.launch_event).parameters)

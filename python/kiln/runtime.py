"""Devices, and programs that are built for them through the cache."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Union

from kiln import _structs as s
from kiln._dlpack import BYTES, LEGACY, REACHED, described, parse_dtype, take
from kiln._handle import Closable, Handle
from kiln._library import decode, encode, lib
from kiln.blob import Blob
from kiln.buffer import Buffer
from kiln.cache import Cache, default_cache
from kiln.errors import MISS, UnsupportedError, check
from kiln.explain import Explanation, collect
from kiln.launch import Event, Local, Queue
from kiln.program import BuildInfo, Param, Program
from kiln.source import Source, structs

__all__ = ["Buffer", "BuildInfo", "Device", "Event", "Local", "Param", "Probe", "Program", "Queue", "Runtime", "Source"]


@dataclass(frozen=True)
class Probe:
    """What one backend said when it was asked whether it can work.

    Attributes
    ----------
    backend, outcome : str
        ``"cuda"``; ``"ready"``, ``"library missing"``, ``"no device"``, ...
    library, version : str
        The file that was opened or looked for, and its version.
    why, fix : str
        What is wrong, and what to do about it.
    devices : int
        How many it has.
    """

    backend: str
    outcome: str
    library: str
    version: str
    why: str
    fix: str
    devices: int


class Device:
    """A device of a `Runtime`, described in plain attributes.

    Attributes
    ----------
    backend, name, vendor, driver, version, platform, target, uuid : str
        As the driver says; ``target`` is what code is made for (``"sm_90"``).
    kind : str
        ``"discrete"``, ``"integrated"``, ``"virtual"`` or ``"software"``.
    index : int
        Within its backend.
    memory_bytes, max_buffer_bytes, local_bytes : int
        In bytes.
    compute_units, max_group_size, subgroup_size : int
        0 where unknown.
    fp16, fp64, int8_dot, timestamps : bool
        What it can do.
    """

    backend: str
    name: str
    vendor: str
    driver: str
    version: str
    platform: str
    target: str
    uuid: str
    index: int
    memory_bytes: int
    max_buffer_bytes: int
    local_bytes: int
    compute_units: int
    max_group_size: int
    subgroup_size: int
    fp16: bool
    fp64: bool
    int8_dot: bool
    timestamps: bool

    def __init__(self, runtime: Handle, pointer: int) -> None:
        self._runtime, self._pointer = runtime, pointer
        told = lib.kiln_device_get_info(pointer).contents
        for name, _ in s.DeviceInfo._fields_:
            value = getattr(told, name)
            if isinstance(value, (bytes, bool, int)) and name != "struct_size":
                setattr(self, name, decode(value) if isinstance(value, bytes) else value)
        self.kind = decode(lib.kiln_device_class_name(told.device_class))

    def build(
        self, *sources: Source, cache_only: bool = False, background: bool = False, fallback: Sequence[Source] = ()
    ) -> Program:
        """Builds the first of `sources` whose language the device takes, from the cache when it can.

        Parameters
        ----------
        *sources : Source
            The same kernels, in different languages perhaps.
        cache_only : bool, optional
            Never compile.
        background : bool, optional
            Do not wait for a compile: run a fallback until it has finished. Without one the build waits.
        fallback : sequence of Source, optional
            What runs meanwhile: the first of them whose language the device takes.

        Returns
        -------
        Program
            Loaded on the device.

        Raises
        ------
        CompileError
            The source does not compile.
        UnsupportedError
            No source is of a language of this device.
        UnavailableError
            The compiler is missing; or, with `cache_only`, the cache has no result.
        """
        array, count = structs(sources)
        meanwhile, meanwhile_count = structs(fallback)
        options = s.BuildOptions(
            ctypes.sizeof(s.BuildOptions),
            cache_only=cache_only,
            background=background,
            fallback=meanwhile,
            fallback_count=meanwhile_count,
        )
        diag, out = s.Diag(), ctypes.c_void_p()
        with self._runtime as _:
            status = lib.kiln_program_build(
                self._pointer, array, count, ctypes.byref(options), ctypes.byref(out), ctypes.byref(diag)
            )
        check(12 if status == MISS else status, diag)
        return Program(Handle("program", out.value or 0, lib.kiln_program_release, self._runtime))

    def buffer(self, what: Union[int, Any], dtype: Any = None, shape: Optional[Sequence[int]] = None) -> Buffer:
        """Device memory: of so many bytes, contents undefined; or with a copy of an array.

        Parameters
        ----------
        what : int or array
            The size in bytes, or what `Queue.write` takes.
        dtype : str or numpy.dtype, optional
            What others are to see its elements as: ``"<f4"``. Default: as those of the array, or bytes.
        shape : sequence of int, optional
            In elements. Default: as that of the array, or one dimension.

        Raises
        ------
        OutOfMemoryError
            The device has no room for it.
        """
        given = parse_dtype(dtype) if dtype is not None else None
        if isinstance(what, int):
            return Buffer(self, what, given or BYTES, shape)
        from kiln._arrays import Memory

        seen = described(what) if given is None else None
        with Memory(what) as memory:
            own, extent = seen or (given or BYTES, None)
            buffer = Buffer(self, memory.size, own, shape if shape is not None else extent)
            self.queue().write(buffer, what)
        return buffer

    def wrap(self, array: Any) -> Buffer:
        """A buffer over an array that lies where this device reaches it; nothing is copied.

        With CUDA: PyTorch's, CuPy's and others' arrays on the device. On the processor: NumPy's. The array lives as long as
        the buffer. Work on it is put between its owner's: after what is in its stream, and before what comes there next.

        Parameters
        ----------
        array : object
            With DLPack or ``__cuda_array_interface__``, its elements one after the other.

        Raises
        ------
        InvalidError
            It lies elsewhere, or not so.
        UnsupportedError
            The backend has no memory that others know.
        """
        if self.backend not in REACHED:
            why = f"memory of {self.backend} has no address"
            raise UnsupportedError("wrap an array", why, "use a device of cuda or cpu")
        taken = take(array, self.backend, LEGACY)
        return Buffer(self, taken.size, taken.dtype, taken.shape, taken)

    def queue(self, stream: Any = None) -> Queue:
        """A queue of its own; or one that puts its work into a CUDA stream of others', between theirs.

        Parameters
        ----------
        stream : int or object, optional
            A ``CUstream``, or what has one: ``torch.cuda.current_stream()``, a stream of CuPy's or cuda.core's.
        """
        return Queue(self, stream)

    def __eq__(self, other: object) -> bool:
        """Whether both are one device of one runtime."""
        return isinstance(other, Device) and (self._runtime, self._pointer) == (other._runtime, other._pointer)

    def __hash__(self) -> int:
        return hash((id(self._runtime), self._pointer))

    def __repr__(self) -> str:
        return f"<kiln.Device {self.backend}:{self.index} {self.name!r}>"


class Runtime(Closable):
    r"""Lists devices, builds programs through the cache, and launches kernels.

    Parameters
    ----------
    backend : str, optional
        Only this one (``"opencl"``), or several with commas between them, in order.
    device : str, optional
        ``"opencl:1"``, an index, or part of a name.
    strict : bool, optional
        What was asked for and is not there is an error. Default: true where `backend` or `device` is given.
    compile_only : bool, optional
        For `compile` alone: a backend that compiles without a device need not have one.
    cache : Cache, optional
        Default: `default_cache`.

    Raises
    ------
    InvalidError
        An option, a variable of the environment, or a `backend` that kiln does not have.
    UnavailableError
        With `strict`: what was asked for is not there.

    Examples
    --------
    >>> import array, kiln
    >>> text = "KILN_KERNEL(twice, KILN_INOUT(int, x)) { KILN_ITEMS_X(i) { x[i] *= 2; } }"
    >>> source = kiln.Source("c", "#include <kiln_kernel.h>\n" + text)
    >>> x = array.array("i", [21] * 1024)
    >>> with kiln.Runtime(backend="cpu") as runtime:
    ...     device = runtime.select(source)
    ...     program = device.build(source)
    ...     buffer, queue = device.buffer(x), device.queue()
    ...     queue.launch(program, "twice", len(x), buffer)
    ...     queue.read(buffer, x)
    >>> x[7]
    42
    """

    def __init__(
        self,
        *,
        backend: Optional[str] = None,
        device: Optional[str] = None,
        strict: Optional[bool] = None,
        compile_only: bool = False,
        cache: Optional[Cache] = None,
    ) -> None:
        diag, options, out = s.Diag(), s.RuntimeOptions(), ctypes.c_void_p()
        size = ctypes.sizeof(options)
        check(lib.kiln_runtime_options_init_sized(ctypes.byref(options), size, ctypes.byref(diag)), diag)
        options.backend = encode(backend) if backend is not None else options.backend
        options.device = encode(device) if device is not None else options.device
        asked = backend is not None or device is not None
        options.strict = (options.strict or asked) if strict is None else strict
        options.compile_only = compile_only
        self.cache = cache or default_cache()
        with self.cache._handle as opened:
            options.cache = opened
            status = lib.kiln_runtime_create(ctypes.byref(options), ctypes.byref(out), ctypes.byref(diag))
        check(status, diag)
        self._handle = Handle("runtime", out.value or 0, lib.kiln_runtime_destroy, self.cache._handle)

    def close(self) -> None:
        """Closes the runtime as soon as nothing that was made with it is left."""
        super().close()

    @property
    def devices(self) -> list[Device]:
        """The devices found, best first."""
        with self._handle as runtime:
            count = lib.kiln_runtime_device_count(runtime)
            return [Device(self._handle, lib.kiln_runtime_device(runtime, index)) for index in range(count)]

    @property
    def probes(self) -> list[Probe]:
        """What each backend said."""
        with self._handle as runtime:
            told = [
                lib.kiln_runtime_get_report(runtime, index).contents
                for index in range(lib.kiln_runtime_report_count(runtime))
            ]
            return [
                Probe(
                    decode(one.backend),
                    decode(lib.kiln_probe_outcome_name(one.outcome)),
                    decode(one.library),
                    decode(one.version),
                    decode(one.why),
                    decode(one.fix),
                    one.device_count,
                )
                for one in told
            ]

    @property
    def summary(self) -> str:
        """One line: what was asked for, detected and selected."""
        with self._handle as runtime:
            return decode(lib.kiln_runtime_summary(runtime))

    def select(self, *sources: Source) -> Device:
        """The best device that one of `sources` can run on; of any, without sources.

        Raises
        ------
        UnavailableError
            There is none; the message has what was asked for and what there is.
        """
        array, count = structs(sources)
        diag, out = s.Diag(), ctypes.c_void_p()
        with self._handle as runtime:
            status = lib.kiln_runtime_select(runtime, array, count, ctypes.byref(out), ctypes.byref(diag))
            check(status, diag)
            return Device(self._handle, out.value or 0)

    def compile(self, target: str, source: Source) -> Blob:
        """Compiles for a named target without a device.

        Parameters
        ----------
        target : str
            ``"cuda:sm_90"``, ``"cpu:x86-64-v3"``, ``"opencl:0"``, ...
        source : Source
            What to compile.

        Returns
        -------
        Blob
            The last stage's artifact.

        Raises
        ------
        CompileError, UnavailableError, UnsupportedError
            As `Device.build`; or the backend needs a device to compile, and has none.
        """
        diag, out, origin, struct = s.Diag(), ctypes.c_void_p(), ctypes.c_int(), source._struct()
        with self._handle as runtime:
            status = lib.kiln_compile(
                runtime,
                encode(target),
                ctypes.byref(struct),
                ctypes.byref(out),
                ctypes.byref(origin),
                ctypes.byref(diag),
            )
        check(status, diag)
        return Blob._of(out.value or 0, origin.value)

    def explain(self, target: str, source: Source) -> list[Explanation]:
        """Why `compile` would compile, stage by stage; nothing is compiled. Arguments as of `compile`."""
        struct = source._struct()
        with self._handle as runtime:
            return collect(
                lambda visit, diag: lib.kiln_explain(runtime, encode(target), ctypes.byref(struct), visit, None, diag)
            )

    def headers(self, target: str, source: Source) -> list[str]:
        """The files that a compile of `source` reaches through ``#include``, in branches that are taken or not.

        Raises
        ------
        UnsupportedError
            They cannot be known; the message says why.
        """
        found: list[str] = []

        def visit(user: Any, path: bytes) -> int:
            try:
                found.append(decode(path))
                return 0
            except BaseException:
                return 60

        diag, struct = s.Diag(), source._struct()
        with self._handle as runtime:
            status = lib.kiln_compile_headers(
                runtime, encode(target), ctypes.byref(struct), s.HeaderFn(visit), None, ctypes.byref(diag)
            )
        check(status, diag)
        return found

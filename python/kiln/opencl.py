"""OpenCL programs through the cache, for a program that uses pyopencl."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, Optional, Union

from kiln import _structs as s
from kiln._library import encode, lib
from kiln.cache import Cache, default_cache
from kiln.errors import check


def build_program(
    context: Any,
    device: Any,
    source: Union[str, bytes],
    options: Union[str, Iterable[str]] = "",
    *,
    cache: Optional[Cache] = None,
) -> Any:
    """Builds a program for one device of a context: ``cl.Program(context, source).build(options, [device])``.

    Parameters
    ----------
    context : pyopencl.Context
        The context.
    device : pyopencl.Device
        One of its devices.
    source : str or bytes
        OpenCL C.
    options : str or iterable of str, optional
        What ``Program.build`` takes; ``-I`` directories are followed.
    cache : Cache, optional
        Default: `default_cache`.

    Returns
    -------
    pyopencl.Program
        Built: from the cache through ``clCreateProgramWithBinary``, or from source, and then stored. One from a binary has
        an empty build log and an empty source.

    Raises
    ------
    CompileError
        The source does not compile; `Error.log` has the build log.
    UnavailableError
        There is no OpenCL library.

    Notes
    -----
    PoCL makes the final code of a kernel at its first launch, and gives a binary only after it has compiled every kernel. With
    it the binary is read when the cache is closed, or the process ends, if that takes a fiftieth of the process's time, or with
    ``KILN_CAPTURE=1`` in the environment.

    Examples
    --------
    .. code-block:: python

        program = kiln.opencl.build_program(queue.context, queue.device, source, "-DN=16")
        program.twice(queue, (1024,), None, buffer)
    """
    import pyopencl

    joined = options if isinstance(options, str) else " ".join(options)
    diag, out = s.Diag(), ctypes.c_void_p()
    with (cache or default_cache())._handle as handle:
        status = lib.kiln_opencl_build_program(
            handle,
            context.int_ptr,
            device.int_ptr,
            encode(source),
            encode(joined),
            ctypes.byref(out),
            ctypes.byref(diag),
        )
    check(status, diag)
    return pyopencl.Program.from_int_ptr(out.value, retain=False)

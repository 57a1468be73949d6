"""The compile cache: bytes in, bytes out, compiled once however many threads, processes and machines ask."""

from __future__ import annotations

import contextvars
import ctypes
import math
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Iterable, Iterator, Optional, Union

from kiln import _flight
from kiln import _structs as s
from kiln._handle import Closable, Handle
from kiln._library import decode, encode, lib
from kiln._numbers import U64_MAX, limit32, limit64, u32_units, u64, u64_units
from kiln.blob import Blob, blob_of
from kiln.errors import MISS, InvalidError, check
from kiln.recipe import Key, Recipe, RecipeLike, key_of, recipe_of

if TYPE_CHECKING:
    import asyncio

    from kiln._walk import Entry
    from kiln.claim import Claim
    from kiln.explain import Explanation
    from kiln.stats import Pruned

# Adapters import this module at every start of a program: what people ask for is imported when they do.

#: The keys whose compiles this code is a part of.
_inside: contextvars.ContextVar[tuple[bytes, ...]] = contextvars.ContextVar("kiln.inside", default=())

_DISABLED, _RECACHE, _READONLY, _NO_DISK = 1, 2, 4, 8
_NO_FLOOR = _NO_LIMIT = U64_MAX
_LONGEST = 0xFFFFFFFF / 1000  # seconds, in milliseconds of 32 bits


class Cache(Closable):
    """A cache of compiled code, in memory and on disk, behind packs and in front of remotes.

    A problem of the cache never fails a compile: a full, read-only, damaged or slow store is logged, counted, and worked
    around.

    Parameters
    ----------
    root : path, optional
        The directory of the disk tier. Default: ``$KILN_CACHE_DIR``, else the user's directory for caches.
    disabled, recache, readonly : bool, optional
        Always compile and store nothing; always compile and store; read every tier, and write memory alone.
    disk : bool, optional
        Whether there is a disk tier.
    disk_max_bytes, disk_max_files, memory_max_bytes, memory_max_count : int, optional
        Limits, in bytes and in entries; ``math.inf``: none. Default: 2 GiB, 100,000, 256 MiB, 4,096.
    disk_min_free : int, optional
        Bytes that stay free on the file system; 0: no such floor. Default: 5 % of it, at most 1 GiB.
    max_age : float, optional
        Seconds after which an entry that was not used is evicted; ``math.inf``: never, which is the default.
    wait : float, optional
        The longest wait for another process's compile, in seconds; ``math.inf``: 49 days. Default: 600.
    fsync : bool, optional
        Whether compiled entries are written to the disk at once; no call waits for that.
    packs : iterable of paths, optional
        Read-only packs, in order.
    remotes : iterable of str, optional
        URLs of remotes, in order.
    record : path, optional
        A directory in which every program that goes through the cache is recorded, with its source and headers.
    record_max_bytes : int, optional
        The size at which a recording stops growing; ``math.inf``: never. Default: 1 GiB.
    namespace : str, optional
        The part of the root that is used, with limits and counters of its own; ``""``: the root itself.

    Raises
    ------
    InvalidError
        An option, or a variable of the environment.

    Notes
    -----
    What is not given is as the environment (``KILN_CACHE_DIR``, ``KILN_REMOTE``, ...) says. Any thread may use a cache, and a
    child after ``fork()``. While it waits or reads the GIL is free. On the main thread a signal whose handler raises ends a
    wait for another thread's, process's or machine's compile; `wait` limits it.

    Examples
    --------
    >>> import kiln, tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> with kiln.Cache(directory.name) as cache:
    ...     recipe = kiln.Recipe("example.upper", 1, source="saxpy")
    ...     first = cache.get_or_compile(recipe, lambda: b"SAXPY")
    ...     again = cache.get_or_compile(recipe, lambda: b"not called")
    ...     print(first.origin, again.origin, bytes(again))
    compiled memory b'SAXPY'
    """

    def __init__(
        self,
        root: Union[str, os.PathLike[str], None] = None,
        *,
        disabled: Optional[bool] = None,
        recache: Optional[bool] = None,
        readonly: Optional[bool] = None,
        disk: bool = True,
        disk_max_bytes: Union[int, float, None] = None,
        disk_max_files: Union[int, float, None] = None,
        memory_max_bytes: Union[int, float, None] = None,
        memory_max_count: Union[int, float, None] = None,
        disk_min_free: Optional[int] = None,
        max_age: Optional[float] = None,
        wait: Optional[float] = None,
        fsync: Optional[bool] = None,
        packs: Optional[Iterable[Union[str, os.PathLike[str]]]] = None,
        remotes: Optional[Iterable[str]] = None,
        record: Union[str, os.PathLike[str], None] = None,
        record_max_bytes: Union[int, float, None] = None,
        namespace: Optional[str] = None,
    ) -> None:
        diag, options, out = s.Diag(), s.CacheOptions(), ctypes.c_void_p()
        size = ctypes.sizeof(options)
        check(lib.kiln_cache_options_init_sized(ctypes.byref(options), size, ctypes.byref(diag)), diag)
        if root is not None:
            options.root = encode(os.path.abspath(root))
        for flag, wanted in ((_DISABLED, disabled), (_RECACHE, recache), (_READONLY, readonly), (_NO_DISK, not disk or None)):
            if wanted is not None:
                options.flags = options.flags | flag if wanted else options.flags & ~flag
        options.disk_max_bytes = limit64("disk_max_bytes", disk_max_bytes) or options.disk_max_bytes
        options.disk_max_files = limit64("disk_max_files", disk_max_files)
        options.memory_max_bytes = limit64("memory_max_bytes", memory_max_bytes)
        options.memory_max_count = limit32("memory_max_count", memory_max_count)
        if disk_min_free is not None:
            options.disk_min_free = u64("disk_min_free", disk_min_free) or _NO_FLOOR
        if max_age == math.inf:
            options.disk_max_age_s = 0
        elif max_age is not None:
            options.disk_max_age_s = u64_units("max_age", max_age, 1) or options.disk_max_age_s
        if wait is not None:
            options.wait_ms = u32_units("wait", min(wait, _LONGEST) if wait == math.inf else wait, 1000)
        if fsync is not None:
            options.no_fsync = not fsync
        if packs is not None:
            options.packs = _joined("packs", [os.fsencode(os.path.abspath(pack)) for pack in packs], os.pathsep.encode())
        if remotes is not None:
            options.remote = _joined("remotes", [remote.encode() for remote in remotes], b" ")
        if record is not None:
            options.record = encode(os.path.abspath(record))
        options.record_max_bytes = limit64("record_max_bytes", record_max_bytes) or options.record_max_bytes
        if namespace is not None:
            options.name_space = encode(namespace)
        check(lib.kiln_cache_create(ctypes.byref(options), ctypes.byref(out), ctypes.byref(diag)), diag)
        self._handle = Handle("cache", out.value or 0, lib.kiln_cache_destroy)
        self._awaited: dict[tuple[int, asyncio.AbstractEventLoop, bytes], asyncio.Future[Blob]] = {}

    # --- lifetime ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the cache; waits for uploads to remotes. Blobs stay valid. Calls that are under way, and
        runtimes that use it, end first."""
        self._handle.close()

    def __repr__(self) -> str:
        return "<kiln.Cache, closed>" if self._handle.closed else f"<kiln.Cache at {self.root!r}>"

    @property
    def root(self) -> str:
        """The directory of the disk tier, ``""`` if there is none."""
        with self._handle as cache:
            return decode(lib.kiln_cache_root(cache))

    @property
    def disk_reason(self) -> str:
        """Why there is no disk tier, or why nothing is written to it; ``""`` if all is well."""
        with self._handle as cache:
            return decode(lib.kiln_cache_disk_reason(cache))

    # --- lookups ----------------------------------------------------------------------------------------------

    def get(self, what: Union[RecipeLike, Key, str, bytes]) -> Optional[Blob]:
        """Looks an entry up, verified.

        Parameters
        ----------
        what : Recipe, mapping, Key, or a key's text or bytes
            What to look for.

        Returns
        -------
        Blob or None
            None on a miss; damage and errors of the store are misses too, counted.
        """
        key, out, origin, diag = key_of(what), ctypes.c_void_p(), ctypes.c_int(), s.Diag()
        with self._handle as cache:
            status = lib.kiln_cache_get(
                cache, ctypes.byref(key._struct), ctypes.byref(out), ctypes.byref(origin), ctypes.byref(diag)
            )
        if status == MISS:
            return None
        check(status, diag)
        return Blob._of(out.value or 0, origin.value)

    def put(self, recipe: RecipeLike, data: Any, facts: Any = b"", *, compile_seconds: float = 0) -> Blob:
        """Stores a payload under its recipe, in memory and on disk in place of what is there, and in remotes that lack it.

        Put only what the recipe decides. What a remote, a pack or another process has under the recipe stays what it is:
        a payload that changes under one recipe is read in its old and in its new form.

        Parameters
        ----------
        recipe : Recipe or mapping
            What it was made of; a mapping as of `get_or_compile`.
        data : bytes-like or Blob
            The payload, not empty: a failure is never stored.
        facts : bytes-like, optional
            What a hit has to bring along besides.
        compile_seconds : float, optional
            How long the compile took, in seconds, for statistics.

        Returns
        -------
        Blob
            What was stored. Errors of the store are counted and logged, and raise nothing.

        Raises
        ------
        InvalidError
            The payload is empty, or a field could not be added to the recipe.
        """
        took = u64_units("compile_seconds", compile_seconds, 1_000_000_000)
        whole = recipe_of(recipe)
        blob = blob_of(data, facts)
        diag = s.Diag()
        with self._handle as cache:
            status = lib.kiln_cache_put(
                cache, whole._pointer, blob._pointer, took, ctypes.byref(diag)
            )
        check(status, diag)
        return blob

    def get_or_compile(self, recipe: RecipeLike, compile: _flight.Compile) -> Blob:
        """A hit, or one compile however many threads and processes ask.

        Parameters
        ----------
        recipe : Recipe or mapping
            All that decides the result. A mapping has the fields by name, and may have ``stage``, ``revision`` and ``target``
            as `Recipe` takes them: ``{"stage": "my-engine.spirv", "source": text}``. Equal mappings have one key.
        compile : callable
            Called without arguments on this thread if nobody has the result; returns the payload (bytes-like), or the
            payload and its facts as a pair, or a blob. It may use the cache for other recipes.

        Returns
        -------
        Blob
            The result; `Blob.origin` says where it came from.

        Raises
        ------
        Exception
            What `compile` raised. It is never stored; threads that waited for it get a `CompileError` that says the same.
        KeyboardInterrupt
            Or what else a handler of a signal raised during a wait for another thread, process or machine.
        """
        whole = recipe_of(recipe)
        flight, out, origin, diag = _flight.Flight(compile), ctypes.c_void_p(), ctypes.c_int(), s.Diag()
        number = _flight.depart(flight)
        try:
            with self._handle as cache:
                status = lib.kiln_cache_get_or_compile_interruptible(
                    cache,
                    whole._pointer,
                    _flight.run,
                    _flight.question(flight),
                    number,
                    ctypes.byref(out),
                    ctypes.byref(origin),
                    ctypes.byref(diag),
                )
        finally:
            _flight.arrive(number)
        if status != 0:
            _flight.finish(flight, status, diag)
        return Blob._of(out.value or 0, origin.value)

    def claim(self, recipe: Recipe, *, wait: float = 0) -> Claim:
        """The entry, or a claim to make it, for a program that compiles between two calls of its cache.

        Other processes of this machine that claim the same wait: until the claim is fulfilled or abandoned, or its process
        ends. Threads of the same process, and its child processes, never wait for it, and a thread that has a claim waits
        for nobody: they get a claim, too, and compile.

        Parameters
        ----------
        recipe : Recipe
            All that decides the result.
        wait : float, optional
            The longest wait for another process, in seconds. Default: the cache's.

        Returns
        -------
        Claim
            With its `Claim.blob`, or None there: compile then, and `Claim.fulfil`. A context manager, which abandons what
            was not fulfilled.

        Raises
        ------
        KeyboardInterrupt
            Or what else a handler of a signal raised during the wait.

        Examples
        --------
        >>> import kiln, tempfile
        >>> directory = tempfile.TemporaryDirectory()
        >>> cache, recipe = kiln.Cache(directory.name), kiln.Recipe("example.upper", 1, source="saxpy")
        >>> with cache.claim(recipe) as claim:
        ...     if claim.blob is None:
        ...         claim.fulfil(b"SAXPY")
        ...     print(bytes(claim.blob))
        <kiln.Blob...>
        b'SAXPY'
        """
        from kiln.claim import take  # a start that only finds entries needs none

        return take(self._handle, recipe, wait)

    async def get_or_compile_async(
        self, recipe: RecipeLike, compile: Callable[[], Union[Any, Awaitable[Any]]]
    ) -> Blob:
        """`get_or_compile` that is awaited: it waits, reads and compiles on a thread, one for all of a loop that await a key.

        Parameters
        ----------
        recipe : Recipe or mapping
            All that decides the result; it must not change meanwhile.
        compile : callable or coroutine function
            A function runs on that thread; a coroutine function runs in the loop that awaits. Either sees the context
            variables of its caller.

        Returns
        -------
        Blob
            As of `get_or_compile`.

        Raises
        ------
        Exception
            What `compile` raised.

        Notes
        -----
        To cancel the wait does not cancel a compile that is under way: others may be waiting for it, and it is stored.
        """
        import asyncio  # those who await have it already; a start should not wait for it

        from kiln._async import awaited, on_thread

        loop = asyncio.get_running_loop()
        whole = recipe_of(recipe)
        place = (os.getpid(), loop, bytes(whole.key))

        def in_thread() -> Any:
            _inside.set((*_inside.get(), place[2]))  # in this call's own context
            result = compile()
            if isinstance(result, Awaitable):
                return asyncio.run_coroutine_threadsafe(awaited(result), loop).result()
            return result

        # A compile that awaits its own key would wait for itself.
        shares = whole._whole and place[2] not in _inside.get()
        future = self._awaited.get(place) if shares else None
        if future is not None:
            blob = (await asyncio.shield(future)).__copy__()
            blob.origin = "shared" if blob.origin == "compiled" else blob.origin
            return blob
        future = on_thread(loop, lambda: self.get_or_compile(whole, in_thread))
        if shares:
            for gone in [other for other in list(self._awaited) if other[1].is_closed()]:
                self._awaited.pop(gone, None)
            self._awaited[place] = future
            future.add_done_callback(lambda _: self._awaited.pop(place, None))
        return await asyncio.shield(future)

    async def get_async(self, what: Union[RecipeLike, Key, str, bytes]) -> Optional[Blob]:
        """`get` that is awaited: it reads on a thread of its own."""
        import asyncio

        from kiln._async import on_thread

        return await on_thread(asyncio.get_running_loop(), lambda: self.get(what))

    def contains(self, keys: Iterable[Union[RecipeLike, Key, str, bytes]]) -> list[bool]:
        """Whether a lookup would find each of `keys`, without reading, counting or compiling anything."""
        wanted = [key_of(what)._struct for what in keys]
        there = (ctypes.c_bool * len(wanted))()
        with self._handle as cache:
            lib.kiln_cache_contains(cache, (s.Key * len(wanted))(*wanted), len(wanted), there)
        return list(there)

    def __contains__(self, what: Union[RecipeLike, Key, str, bytes]) -> bool:
        return self.contains([what])[0]

    # --- upkeep -----------------------------------------------------------------------------------------------

    def remove(self, what: Union[RecipeLike, Key, str, bytes]) -> bool:
        """Drops an entry from every writable tier; False if no tier had it."""
        key, diag = key_of(what), s.Diag()
        with self._handle as cache:
            status = lib.kiln_cache_remove(cache, ctypes.byref(key._struct), ctypes.byref(diag))
        if status != MISS:
            check(status, diag)
        return bool(status != MISS)

    def trim(self, target_bytes: int = 0) -> None:
        """Evicts from memory until at most `target_bytes` are held; what is on disk stays there."""
        with self._handle as cache:
            lib.kiln_cache_trim(cache, u64("target_bytes", target_bytes))

    def pin(self, what: Union[RecipeLike, Key, str, bytes]) -> bool:
        """Keeps an entry in memory and on disk until `unpin`, or the cache's end; False if no tier has it."""
        key, diag = key_of(what), s.Diag()
        with self._handle as cache:
            status = lib.kiln_cache_pin(cache, ctypes.byref(key._struct), ctypes.byref(diag))
        if status != MISS:
            check(status, diag)
        return bool(status != MISS)

    def unpin(self, what: Union[RecipeLike, Key, str, bytes]) -> None:
        """Ends one `pin`."""
        with self._handle as cache:
            lib.kiln_cache_unpin(cache, ctypes.byref(key_of(what)._struct))

    def prune(
        self, *, max_age: float = 0, max_bytes: Optional[int] = None, target: Optional[str] = None
    ) -> Pruned:
        """Removes entries on disk.

        Parameters
        ----------
        max_age : float, optional
            Those not used for so many seconds; 0: of any age.
        max_bytes : int, optional
            The least recently used ones beyond so many bytes. Default: no limit.
        target : str, optional
            Only those of one target.

        Returns
        -------
        Pruned
            What was looked at, and what was removed.

        Raises
        ------
        UnavailableError, UnsupportedError, StorageError
            There is no disk tier; it is read-only; or it failed.
        """
        from kiln.stats import pruned

        options = s.PruneOptions(ctypes.sizeof(s.PruneOptions), u64_units("max_age", max_age, 1_000_000_000))
        options.max_bytes = _NO_LIMIT if max_bytes is None else u64("max_bytes", max_bytes)
        options.target = encode(target)
        result, diag = s.PruneResult(ctypes.sizeof(s.PruneResult)), s.Diag()
        with self._handle as cache:
            status = lib.kiln_cache_prune(cache, ctypes.byref(options), ctypes.byref(result), ctypes.byref(diag))
        check(status, diag)
        return pruned(result)

    def clear(self) -> Pruned:
        """Removes every entry on disk and in memory. Raises the same errors as `prune`."""
        from kiln.stats import pruned

        result, diag = s.PruneResult(ctypes.sizeof(s.PruneResult)), s.Diag()
        with self._handle as cache:
            status = lib.kiln_cache_clear(cache, ctypes.byref(result), ctypes.byref(diag))
        check(status, diag)
        return pruned(result)

    # --- looking at it ----------------------------------------------------------------------------------------

    def stats(self) -> dict[str, int]:
        """The counters of this object, by name (``"hits_disk"``); `kiln.stats.counters` has their units."""
        from kiln import stats

        with self._handle as cache:
            return stats.own(cache, list(stats.counter_names()))

    def totals(self) -> dict[str, int]:
        """The counters of all processes that used the directory since it was made; zeros without a disk tier."""
        from kiln import stats

        names, diag = list(stats.counter_names()), s.Diag()
        values = stats.totals_buffer(names)
        with self._handle as cache:
            status = lib.kiln_cache_get_totals(cache, values, len(names), ctypes.byref(diag))
        check(status, diag)
        return dict(zip(names, (int(value) for value in values)))

    def explain(self, what: Union[RecipeLike, Key, str, bytes]) -> Explanation:
        """Why a lookup would miss: what differs from the nearest stored recipe.

        Reads every entry of the cache: for people, not for hot paths.

        Parameters
        ----------
        what : Recipe, mapping, Key, or a key's text or bytes
            A recipe, or an entry that is or was in the cache.

        Returns
        -------
        Explanation
            Its ``why``, and the fields that differ.
        """
        from kiln.explain import collect

        with self._handle as cache:
            if isinstance(what, (Recipe, Mapping)):
                recipe = recipe_of(what)
                found = collect(lambda visit, diag: lib.kiln_cache_explain(cache, recipe._pointer, visit, None, diag))
            else:
                key = ctypes.byref(key_of(what)._struct)
                found = collect(lambda visit, diag: lib.kiln_cache_explain_key(cache, key, visit, None, diag))
        if not found:
            raise InvalidError("explain an entry", "nothing is known of it", "give its recipe")
        return found[0]

    def entries(self, target: Optional[str] = None) -> Iterator[Entry]:
        """The entries on disk, in no order; of one target only if it is given."""
        from kiln._walk import walk

        with self._handle as cache:
            return iter(walk(cache, target))


def _joined(name: str, items: list[bytes], separator: bytes) -> bytes:
    """A list as C takes it; what would be two items there is refused."""
    apart = separator.decode()
    for item in items:
        if separator in item or (apart == " " and len(item.split()) != 1):
            why = f"{os.fsdecode(item)!r} is empty or has {apart!r} in it, which separates the items of the list"
            raise InvalidError(f"take {name}", why, f"give each without {apart!r}")
    return encode(separator.join(items)) or b""


_default: Optional[Cache] = None
_default_lock = threading.Lock()


def _replace_lock() -> None:
    """In a child: the thread that held the lock is not in it."""
    global _default_lock
    _default_lock = threading.Lock()


os.register_at_fork(after_in_child=_replace_lock)


def default_cache() -> Cache:
    """The cache that the environment describes, opened once for the process and shared by all that ask for it.

    Returns
    -------
    Cache
        Do not close it.
    """
    global _default
    with _default_lock:
        if _default is None or _default._handle.closed:
            _default = Cache()
        return _default

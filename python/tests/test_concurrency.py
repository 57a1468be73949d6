"""One compile over threads and processes, a free GIL, and the awaited forms."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import PACKAGE

import kiln


def recipe(source: str) -> kiln.Recipe:
    return kiln.Recipe("test.flight", 1, source=source)


def in_threads(count: int, work: Callable[[], Any]) -> list[Any]:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_share_one_compile(cache: kiln.Cache) -> None:
    compiles: list[int] = []
    all_there = threading.Barrier(8)

    def compile() -> bytes:
        compiles.append(1)
        time.sleep(0.2)  # the others arrive meanwhile; it decides nothing
        return b"A"

    def ask() -> str:
        all_there.wait()
        return cache.get_or_compile(recipe("a"), compile).origin

    origins = in_threads(8, ask)
    assert len(compiles) == 1
    assert origins.count("compiled") == 1 and set(origins) <= {"compiled", "shared", "memory"}


def test_a_failure_reaches_all_who_wait(cache: kiln.Cache) -> None:
    asked = threading.Barrier(4)

    def compile() -> bytes:
        time.sleep(0.2)
        raise LookupError("no such thing")

    def ask() -> None:
        asked.wait()
        cache.get_or_compile(recipe("a"), compile)

    errors = in_threads(4, ask)
    assert all("no such thing" in str(error) for error in errors)
    assert all(isinstance(error, (LookupError, kiln.CompileError)) for error in errors)


def test_other_threads_run_while_one_waits(cache: kiln.Cache) -> None:
    """The leader's compile needs the GIL: were it held by the thread that waits for it, this would never end."""
    leading, waiting = threading.Event(), threading.Event()

    def compile() -> bytes:
        leading.set()
        waiting.wait()
        time.sleep(0.05)
        return b"A"

    leader = threading.Thread(target=lambda: cache.get_or_compile(recipe("a"), compile))
    leader.start()
    leading.wait()
    waiting.set()
    assert bytes(cache.get_or_compile(recipe("a"), lambda: b"B")) == b"A"
    leader.join()


COMPILES_ONCE = """
import sys, time, kiln

def compile():
    with open(sys.argv[2], "a") as log:
        log.write("compiled\\n")
    time.sleep(0.3)
    return b"A"

sys.stdin.readline()
with kiln.Cache(sys.argv[1]) as cache:
    print(bytes(cache.get_or_compile(kiln.Recipe("test.flight", 1, source="a"), compile)).decode())
"""


def test_processes_share_one_compile(tmp_path: Path, home: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", COMPILES_ONCE, str(tmp_path / "cache"), str(log)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    processes = [
        subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[0].strip() for process in processes] == ["A"] * 4
    assert log.read_text().splitlines() == ["compiled"]


def test_a_child_after_fork_goes_on(cache: kiln.Cache) -> None:
    cache.put(recipe("a"), b"A")
    child = os.fork()
    if child == 0:
        found = cache.get(recipe("a"))
        made = cache.get_or_compile(recipe("b"), lambda: b"B")
        os._exit(0 if found is not None and bytes(found) == b"A" and bytes(made) == b"B" else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork_while_another_thread_holds_a_lock(python: Callable[..., str], home: Path) -> None:
    """The child's copy of the lock was never released."""
    program = """
import os, signal, sys, threading, kiln
from kiln import _files, cache

def hold(lock, held, go_on):
    with lock:
        held.set()
        go_on.wait()

go_on = threading.Event()
threads = []
handle = kiln.Cache(sys.argv[1])
for lock in (cache._default_lock, _files._lock):
    held = threading.Event()
    threads.append(threading.Thread(target=hold, args=(lock, held, go_on)))
    threads[-1].start()
    held.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends a child that hangs
    blob = kiln.default_cache().get_or_compile(kiln.Recipe("test.fork"), lambda: b"A")
    path = _files.materialise("name", b"content")
    handle.close()
    os._exit(0 if bytes(blob) == b"A" and open(path).read() == "content" else 1)
print(os.waitpid(child, 0)[1])
go_on.set()
for thread in threads:
    thread.join()
"""
    assert python(program, home / "other").strip() == "0"


def test_closing_under_other_threads(tmp_path: Path) -> None:
    """Threads that are inside calls end them; those that come later are refused; nothing crashes."""
    cache = kiln.Cache(tmp_path)
    cache.put(recipe("a"), b"A")
    started = threading.Barrier(5)

    def ask() -> str:
        started.wait()
        for _ in range(20_000):
            try:
                cache.get(recipe("a"))
            except kiln.InvalidError:
                return "refused"
        return "done"

    threads = threading.Thread(target=lambda: results.extend(in_threads(4, ask)))
    results: list[str] = []
    threads.start()
    started.wait()
    cache.close()
    threads.join()
    assert results == ["refused"] * 4


def test_a_daemon_thread_at_exit(python: Callable[..., str], tmp_path: Path) -> None:
    program = """
import sys, threading, time, kiln
cache = kiln.Cache(sys.argv[1])
compiling = threading.Event()

def compile():
    compiling.set()
    time.sleep(60)

thread = threading.Thread(target=lambda: cache.get_or_compile(kiln.Recipe("t"), compile), daemon=True)
thread.start()
compiling.wait()
print("ends")
"""
    assert python(program, tmp_path).strip() == "ends"


# --- awaited ------------------------------------------------------------------------------------------------------


def test_awaited(cache: kiln.Cache) -> None:
    async def main() -> list[str]:
        assert await cache.get_async(recipe("a")) is None
        compiles: list[int] = []

        async def compile() -> bytes:
            compiles.append(1)
            await asyncio.sleep(0.05)
            return b"A"

        blobs = await asyncio.gather(*(cache.get_or_compile_async(recipe("a"), compile) for _ in range(20)))
        assert len(compiles) == 1
        assert {bytes(blob) for blob in blobs} == {b"A"}
        plain = await cache.get_or_compile_async(recipe("b"), lambda: b"B")
        return [plain.origin]

    assert asyncio.run(main()) == ["compiled"]


def test_awaited_failures(cache: kiln.Cache) -> None:
    async def fail() -> bytes:
        raise LookupError("no such thing")

    with pytest.raises(LookupError):
        asyncio.run(cache.get_or_compile_async(recipe("a"), fail))


def test_many_who_await_a_key_have_one_thread(cache: kiln.Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 awaits were 1,501 threads."""
    started: list[threading.Thread] = []

    class Counted(threading.Thread):
        def start(self) -> None:
            started.append(self)
            super().start()

    monkeypatch.setattr(threading, "Thread", Counted)
    may_end = threading.Event()

    def compile() -> bytes:
        may_end.wait()
        return b"A"

    async def main() -> list[kiln.Blob]:
        tasks = [asyncio.ensure_future(cache.get_or_compile_async(recipe("a"), compile)) for _ in range(1500)]
        while not started:
            await asyncio.sleep(0.001)
        tasks[7].cancel()
        await asyncio.sleep(0)
        may_end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results.pop(7), asyncio.CancelledError)
        return [blob for blob in results if isinstance(blob, kiln.Blob)]

    blobs = asyncio.run(main())
    assert len(started) == 1 and len(blobs) == 1499 and {bytes(blob) for blob in blobs} == {b"A"}
    assert sorted({blob.origin for blob in blobs}) == ["compiled", "shared"]
    assert [blob.origin for blob in blobs].count("compiled") == 1
    assert not cache._awaited


def test_a_failure_reaches_all_who_await(cache: kiln.Cache, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> bytes:
        await asyncio.sleep(0.05)
        raise LookupError("no such thing")

    async def main() -> list[Any]:
        tasks = [asyncio.ensure_future(cache.get_or_compile_async(recipe("a"), fail)) for _ in range(3)]
        alone = asyncio.ensure_future(cache.get_or_compile_async(recipe("b"), fail))
        await asyncio.sleep(0.01)
        alone.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        while cache._awaited:
            await asyncio.sleep(0.01)
        return results

    assert [type(result) for result in asyncio.run(main())] == [LookupError] * 3
    assert not caplog.records  # nobody asked what became of "b"


def test_a_recipe_that_lacks_a_field_joins_nobody(cache: kiln.Cache) -> None:
    async def main() -> None:
        whole = asyncio.ensure_future(cache.get_or_compile_async(recipe("a"), lambda: time.sleep(0.2) or b"A"))
        await asyncio.sleep(0.01)
        lacks = recipe("a")
        with pytest.raises(kiln.InvalidError):
            lacks.add("x", None)  # type: ignore[arg-type]
        with pytest.raises(kiln.InvalidError):
            await cache.get_or_compile_async(lacks, lambda: b"B")
        await whole

    asyncio.run(main())


def test_a_compile_sees_its_callers_context(cache: kiln.Cache) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="lost")

    async def later() -> bytes:
        return variable.get().encode()

    async def ask(value: str) -> list[str]:
        variable.set(value)
        plain = await cache.get_or_compile_async(recipe(f"plain {value}"), lambda: variable.get().encode())
        coroutine = await cache.get_or_compile_async(recipe(f"coroutine {value}"), later)
        return [bytes(plain).decode(), bytes(coroutine).decode()]

    async def main() -> list[list[str]]:
        return list(await asyncio.gather(ask("a"), ask("b")))

    assert asyncio.run(main()) == [["a", "a"], ["b", "b"]]


def test_a_compile_that_awaits_its_own_key_ends(tmp_path: Path) -> None:
    async def main(cache: kiln.Cache) -> bytes:
        async def outer() -> bytes:
            return bytes(await cache.get_or_compile_async(recipe("a"), lambda: b"inner")) + b" outer"

        return bytes(await cache.get_or_compile_async(recipe("a"), outer))

    with kiln.Cache(tmp_path, wait=0.2) as cache:
        assert asyncio.run(main(cache)) == b"inner outer"


def test_loops_of_several_threads(cache: kiln.Cache) -> None:
    """A future belongs to its loop."""
    all_there = threading.Barrier(4)

    def ask() -> str:
        async def main() -> str:
            all_there.wait()
            return bytes(await cache.get_or_compile_async(recipe("a"), lambda: time.sleep(0.1) or b"A")).decode()

        return asyncio.run(main())

    assert in_threads(4, ask) == ["A"] * 4
    assert cache.stats()["compiles"] == 1


def test_a_cancelled_wait_leaves_the_compile(cache: kiln.Cache) -> None:
    compiling, may_end = threading.Event(), threading.Event()

    def compile() -> bytes:
        compiling.set()
        may_end.wait()
        return b"A"

    async def main() -> None:
        task = asyncio.ensure_future(cache.get_or_compile_async(recipe("a"), compile))
        while not compiling.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()
        assert bytes(await cache.get_or_compile_async(recipe("a"), lambda: b"B")) == b"A"

    asyncio.run(main())


# --- signals -------------------------------------------------------------------------------------------------------

HOLDS = """
import sys, kiln

def compile():
    print("compiling", flush=True)
    sys.stdin.readline()
    return b"A"

with kiln.Cache(sys.argv[1]) as cache:
    cache.get_or_compile(kiln.Recipe("test.flight", 1, source="a"), compile)
"""

WAITS = """
import signal, sys, threading, kiln

signal.signal(signal.SIGINT, signal.default_int_handler)
handled = []
signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(number) or print("handled", flush=True))
with kiln.Cache(sys.argv[1]) as cache:
    recipe = kiln.Recipe("test.flight", 1, source="a")
    results = []
    if sys.argv[2] == "with a thread":
        def late():
            import time
            time.sleep(0.3)  # the main thread leads by then, most likely: either order is to work
            results.append(bytes(cache.get_or_compile(recipe, lambda: b"B")))
        thread = threading.Thread(target=late)
        thread.start()
    try:
        print("waits", flush=True)
        cache.get_or_compile(recipe, lambda: b"C")
    except KeyboardInterrupt:
        print("interrupted", *handled, flush=True)
    assert cache.stats()["compiles"] == 0
    if sys.argv[2] == "with a thread":
        thread.join()
        print(results[0].decode(), flush=True)
"""


@pytest.mark.parametrize("more", ["alone", "with a thread"])
def test_a_wait_for_another_process_ends_with_a_signal(tmp_path: Path, home: Path, more: str) -> None:
    """Ctrl-C came when the other process had ended. Other signals are handled, and the wait goes on; a thread that waits
    behind the interrupted one takes its place."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    pipes: dict[str, Any] = {"env": environment, "text": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path / "cache")], **pipes) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "compiling\n"
        with subprocess.Popen([sys.executable, "-c", WAITS, str(tmp_path / "cache"), more], **pipes) as waiter:
            try:
                assert waiter.stdout is not None and waiter.stdout.readline() == "waits\n"
                waiter.send_signal(signal.SIGUSR1)
                assert waiter.stdout.readline() == "handled\n"
                time.sleep(1)  # it is in its wait by then, most likely; sooner is as good
                waiter.send_signal(signal.SIGINT)
                assert waiter.stdout.readline() == f"interrupted {int(signal.SIGUSR1)}\n"  # while the holder holds
                holder.communicate("go\n", timeout=60)
                assert waiter.communicate(timeout=60)[0] == ("A\n" if more == "with a thread" else "")
                assert (holder.returncode, waiter.returncode) == (0, 0)
            finally:
                waiter.kill()
                holder.kill()


def test_a_wait_for_another_thread_ends_with_a_signal(python: Callable[..., str], tmp_path: Path) -> None:
    program = """
import os, signal, sys, threading, kiln
signal.signal(signal.SIGINT, signal.default_int_handler)
cache, recipe = kiln.Cache(sys.argv[1]), kiln.Recipe("test.flight", 1, source="a")
compiling, go_on = threading.Event(), threading.Event()

def compile():
    compiling.set()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    go_on.wait()
    return b"A"

thread = threading.Thread(target=lambda: cache.get_or_compile(recipe, compile))
thread.start()
try:
    compiling.wait()  # on a busy machine the signal may come here
    cache.get_or_compile(recipe, lambda: b"B")
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
go_on.set()
thread.join()
print(bytes(cache.get(recipe)).decode())
"""
    assert python(program, tmp_path).split() == ["interrupted", "A"]

"""Calls that a loop of asyncio awaits, each on a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any, Awaitable, Callable, Optional, TypeVar

_T = TypeVar("_T")


async def awaited(result: Awaitable[Any]) -> Any:
    return await result


def on_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], _T]) -> asyncio.Future[_T]:
    """What a call gives, which runs on a thread of its own and in this context."""
    # Not the loop's executor: a compile may itself await the cache, and threads that wait for it must never be as many
    # as there are.
    future: asyncio.Future[_T] = loop.create_future()
    # Nobody may be left to ask what went wrong.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def settle(result: Any, error: Optional[BaseException]) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except BaseException as error:  # goes to who awaits
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:  # the loop was closed meanwhile: nobody awaits any more
            pass

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="kiln", daemon=True).start()
    return future

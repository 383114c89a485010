"""The event loop of a consumer whose handlers are coroutine functions.

One loop in one thread for all partitions, so that handlers may share a client: one of
asyncio belongs to the loop in which it was made.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Final

from walstream.telemetry import runtime

_END_S: Final = 5.0


class EventLoop:
    """Starts with the first coroutine; `close` cancels those that still run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: Future[asyncio.AbstractEventLoop] | None = None
        self._ended = threading.Event()
        self._stop: asyncio.Event | None = None

    def result_of(self, returned: object) -> object:
        """Return what a handler returned; of an awaitable, its result."""
        if not inspect.isawaitable(returned):
            return returned
        loop = self._running()
        return asyncio.run_coroutine_threadsafe(_awaited(returned), loop).result()

    def close(self) -> None:
        """End the loop. Its coroutines are cancelled, and waited for a moment."""
        with self._lock:
            started = self._started
        if started is None or self._ended.is_set():
            return
        started.result().call_soon_threadsafe(self._set_stop)
        self._ended.wait(_END_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._started is None:
                self._started = Future()
                runtime.start_thread(self._run, "consumer-asyncio")
        return self._started.result()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ended.set()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        if self._started is not None:
            self._started.set_result(asyncio.get_running_loop())
        await self._stop.wait()

    def _set_stop(self) -> None:
        if self._stop is not None:
            self._stop.set()


async def _awaited(awaitable: Awaitable[object]) -> object:
    try:
        return await awaitable
    except (SystemExit, KeyboardInterrupt) as error:
        # asyncio would end the loop, under all other partitions
        raise RuntimeError(f"a handler raised {type(error).__name__}") from error

"""The event loop of a consumer whose handlers are coroutine functions.

One loop in one thread for all partitions, so that handlers may share a client: one of
asyncio belongs to the loop in which it was made.
"""

import asyncio
import contextlib
import inspect
import logging
import threading
from collections.abc import Awaitable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Final

from walstream.telemetry import runtime

_END_S: Final = 5.0
_log = logging.getLogger(__name__)


class EventLoop:
    """Starts with the first coroutine; `close` cancels those that still run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: Future[asyncio.AbstractEventLoop] | None = None
        self._running: set[Future[object]] = set()
        self._closed = False  # a coroutine that came now would not be run
        self._ended = threading.Event()
        self._stop: asyncio.Event | None = None

    def result_of(self, returned: object) -> object:
        """Return what a handler returned; of an awaitable, its result.

        Raise asyncio.CancelledError where it was cancelled, also where it returned in
        spite of that: no Exception, so that nobody takes it for one of the handler's
        and calls it again. A SystemExit of a coroutine comes as that, too.
        """
        if not inspect.isawaitable(returned):
            return returned
        try:
            running = self._submit(returned, self._loop())
        except BaseException:
            _drop(returned)
            raise
        try:
            result = running.result()
        except CancelledError:
            _drop(returned)  # it may never have begun
            raise asyncio.CancelledError("the coroutine was cancelled") from None
        finally:
            with self._lock:
                self._running.discard(running)
        if isinstance(result, _Exit):
            raise result.error
        return result

    def close(self) -> None:
        """End the loop. Its coroutines are cancelled, and waited for a moment."""
        with self._lock:
            self._closed = True
            started = self._started
        if started is None or started.exception() is not None or self._ended.is_set():
            return
        with contextlib.suppress(RuntimeError):  # an exit of a task closed it just now
            started.result().call_soon_threadsafe(self._set_stop)
        self._ended.wait(_END_S)

    def _submit(
        self, awaitable: Awaitable[object], loop: asyncio.AbstractEventLoop
    ) -> Future[object]:
        with self._lock:
            if self._closed:
                raise asyncio.CancelledError("the event loop has ended")
            awaited = _awaited(awaitable)
            try:
                running = asyncio.run_coroutine_threadsafe(awaited, loop)
            except RuntimeError:  # it was closed a moment ago
                awaited.close()
                raise asyncio.CancelledError("the event loop has ended") from None
            self._running.add(running)
            return running

    def _loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop; raise what it could not start for."""
        with self._lock:
            started = self._started
            if started is None:
                started = self._started = Future()
                try:
                    runtime.start_thread(self._run, "consumer-asyncio")
                except BaseException as error:  # noqa: BLE001 - raised to all who wait
                    started.set_exception(error)
        return started.result()

    def _run(self) -> None:
        started = self._started
        try:
            with asyncio.Runner() as runner:
                runner.get_loop()  # before there is a coroutine that nobody would run
                runner.run(self._serve())
        except BaseException as error:
            if started is not None and not started.done():
                started.set_exception(error)
            elif isinstance(error, SystemExit | KeyboardInterrupt):
                _log.error(
                    "a task that a handler started raised %s, which ended the event"
                    " loop of all handlers",
                    type(error).__name__,
                )
            else:
                raise
        finally:
            self._end()

    def _end(self) -> None:
        """Cancel what came too late for the loop to see it."""
        with self._lock:
            self._closed = True
            left = list(self._running)
        for running in left:
            running.cancel()
        self._ended.set()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        if self._started is not None:
            self._started.set_result(asyncio.get_running_loop())
        await self._stop.wait()

    def _set_stop(self) -> None:
        if self._stop is not None:
            self._stop.set()


@dataclass(frozen=True, slots=True)
class _Exit:
    """The exit that a coroutine raised."""

    error: SystemExit | KeyboardInterrupt


async def _awaited(awaitable: Awaitable[object]) -> object:
    try:
        result = await awaitable
    except (SystemExit, KeyboardInterrupt) as error:
        # raised here, asyncio would end the loop, under all other partitions
        return _Exit(error)
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError("the coroutine was cancelled, but continued")
    return result


def _drop(awaitable: Awaitable[object]) -> None:
    """Close a coroutine that is not run: Python would warn that nobody awaited it."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()

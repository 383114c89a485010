"""Coroutines of handlers, in one loop."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

from consumer.group.event_loop import EventLoop
from tests.support.deadline import wait_until
from walstream.telemetry import runtime


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.close()


def test_what_is_no_coroutine_is_returned_and_starts_no_thread(loop: EventLoop) -> None:
    before = threading.active_count()
    assert loop.result_of(7) == 7
    assert threading.active_count() == before


def test_coroutines_of_several_threads_share_a_loop(loop: EventLoop) -> None:
    async def met(barrier: asyncio.Barrier) -> int:
        await barrier.wait()  # nobody passes alone
        return id(asyncio.get_running_loop())

    async def barrier() -> asyncio.Barrier:
        return asyncio.Barrier(2)

    shared = loop.result_of(barrier())
    assert isinstance(shared, asyncio.Barrier)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: loop.result_of(met(shared)), range(2)))
    assert found[0] == found[1]


def test_an_error_comes_to_the_caller(loop: EventLoop) -> None:
    async def fail(error: BaseException) -> None:
        raise error

    with pytest.raises(ValueError, match="mine"):
        loop.result_of(fail(ValueError("mine")))
    with pytest.raises(SystemExit) as exit_of:
        loop.result_of(fail(SystemExit(3)))
    assert exit_of.value.code == 3

    async def fine() -> int:
        return 1

    assert loop.result_of(fine()) == 1  # the loop is still there


def test_closing_cancels_what_runs() -> None:
    loop, begun = EventLoop(), threading.Event()
    ends: list[BaseException] = []

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    def run() -> None:
        try:
            loop.result_of(wait())
        except asyncio.CancelledError as error:
            ends.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(20)
    loop.close()
    thread.join(20)
    assert len(ends) == 1
    wait_until(
        lambda: all(one.name != "consumer-asyncio" for one in threading.enumerate()),
        20,
        "the loop's thread ended",
    )
    loop.close()  # a second one does nothing


def test_a_cancelled_coroutine_is_no_exception_of_its_handler(loop: EventLoop) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        loop.result_of(cancelled())


def test_a_coroutine_that_swallows_its_cancellation_did_not_return(
    loop: EventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    """A task that a handler started ends the loop, and with it all other coroutines."""
    begun = threading.Event()

    async def swallow() -> str:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "handled"

    async def leave() -> None:
        async def work() -> None:
            raise SystemExit

        task = asyncio.create_task(work())
        try:
            await asyncio.sleep(60)
        finally:
            task.exception()

    with ThreadPoolExecutor(2) as pool:
        swallowing = pool.submit(loop.result_of, swallow())
        assert begun.wait(20)
        leaving = pool.submit(loop.result_of, leave())
        assert isinstance(leaving.exception(20), asyncio.CancelledError)
        assert isinstance(swallowing.exception(20), asyncio.CancelledError)
    loop.close()
    assert "raised SystemExit, which ended the event loop" in caplog.text


def test_a_time_limit_that_a_handler_met_by_itself_is_no_cancellation(
    loop: EventLoop,
) -> None:
    async def patient() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "later"
        return "met"

    assert loop.result_of(patient()) == "later"


def test_what_comes_after_the_end_is_cancelled_at_once(loop: EventLoop) -> None:
    async def fine() -> int:
        return 1

    assert loop.result_of(fine()) == 1
    loop.close()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(loop.result_of, fine())
        assert isinstance(asked.exception(20), asyncio.CancelledError)


def test_a_loop_that_cannot_start_tells_all_who_need_it(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> asyncio.AbstractEventLoop:
        raise OSError("too many open files")

    async def fine() -> int:
        return 1

    monkeypatch.setattr(asyncio.events, "new_event_loop", refuse)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(loop.result_of, fine()) for _ in range(2)]
        for one in asked:
            assert isinstance(one.exception(20), OSError)


def test_a_thread_that_cannot_start_is_an_error_of_all_who_need_it(
    loop: EventLoop,
) -> None:
    class Exhausted(runtime.SystemRuntime):
        def start_thread(self, *_: object) -> NoReturn:
            raise RuntimeError("can't start new thread")

    async def fine() -> int:
        return 1

    with runtime.use(Exhausted()):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="new thread"):
                loop.result_of(fine())
    loop.close()

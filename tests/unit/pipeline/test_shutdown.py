"""The wish to stop, and what wakes the loop up for it."""

import select
import threading
import time

import pytest

from walstream.pipeline.shutdown import Stop, Waker


def is_awake(waker: Waker) -> bool:
    return bool(select.select([waker], [], [], 0)[0])


@pytest.fixture
def waker() -> Waker:
    return Waker()


def test_waker_wakes_until_it_rests(waker: Waker) -> None:
    assert not is_awake(waker)
    waker.wake()
    waker.wake()
    assert is_awake(waker)
    waker.rest()
    assert not is_awake(waker)


def test_resting_while_nobody_woke_returns(waker: Waker) -> None:
    waker.rest()


def test_waking_more_often_than_a_pipe_holds_returns(waker: Waker) -> None:
    for _ in range(100_000):
        waker.wake()
    assert is_awake(waker)


def test_thread_ends_the_loops_waiting(waker: Waker) -> None:
    thread = threading.Thread(target=waker.wake)
    thread.start()
    woken, _, _ = select.select([waker], [], [], 10)
    thread.join()
    assert woken == [waker]


def test_request_wakes_and_sets_the_deadline(waker: Waker) -> None:
    stop = Stop(waker, timeout_s=60)
    assert not stop.event.is_set()
    assert stop.deadline == float("inf")
    before = time.monotonic()
    stop.request()
    assert stop.requested
    assert is_awake(waker)
    assert before + 60 <= stop.deadline <= time.monotonic() + 60
    assert not stop.expired


def test_asking_again_moves_no_deadline(waker: Waker) -> None:
    stop = Stop(waker, timeout_s=60)
    stop.request()
    deadline = stop.deadline
    stop.request()
    assert stop.deadline == deadline


def test_deadline_in_the_past_has_expired(waker: Waker) -> None:
    stop = Stop(waker, timeout_s=0)
    assert not stop.expired
    stop.request()
    assert stop.expired

"""The signals that came to a supervisor."""

import os
import pty
import selectors
import signal
from collections.abc import Iterator

import pytest

from walstream.service.signal_inbox import SignalInbox


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as made:
        yield made


def receive(number: int) -> None:
    """Run the handler: a signal that is sent would end this run of the tests."""
    handler = signal.getsignal(number)
    assert callable(handler)
    handler(number, None)


def woken(selector: selectors.BaseSelector) -> bool:
    """Return whether something is to be read, and read it."""
    ready = selector.select(0)
    for key, _ in ready:
        key.data()
    return bool(ready)


def test_a_signal_is_counted_and_wakes_the_loop_once(
    selector: selectors.BaseSelector,
) -> None:
    inbox = SignalInbox(selector)
    before = signal.getsignal(signal.SIGTERM)
    assert not woken(selector)
    with inbox.held():
        receive(signal.SIGTERM)
        receive(signal.SIGINT)
        assert inbox.stops == 2
    assert [woken(selector), woken(selector)] == [True, False]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_hangup_is_taken_once_and_stops_nothing(
    selector: selectors.BaseSelector,
) -> None:
    inbox = SignalInbox(selector)
    with inbox.held():
        receive(signal.SIGHUP)
    assert [inbox.take_hangup(), inbox.take_hangup()] == [True, False]
    assert inbox.stops == 0


def test_a_hangup_of_a_terminal_that_was_closed_is_a_stop(
    selector: selectors.BaseSelector,
) -> None:
    master, terminal = pty.openpty()
    inbox = SignalInbox(selector, terminal)
    os.close(master)
    with inbox.held():
        receive(signal.SIGHUP)
    os.close(terminal)
    assert (inbox.take_hangup(), inbox.stops) == (False, 1)


def test_a_hangup_at_a_terminal_that_is_open_is_no_stop(
    selector: selectors.BaseSelector,
) -> None:
    master, terminal = pty.openpty()
    inbox = SignalInbox(selector, terminal)
    with inbox.held():
        receive(signal.SIGHUP)
    os.close(terminal)
    os.close(master)
    assert (inbox.take_hangup(), inbox.stops) == (True, 0)


def test_a_loop_that_is_woken_and_does_not_turn_blocks_nobody(
    selector: selectors.BaseSelector,
) -> None:
    inbox = SignalInbox(selector)
    for _ in range(70_000):  # more than a pipe holds
        inbox.wake()
    assert woken(selector)

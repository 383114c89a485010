"""Scripted faults happen in turn, and then no more."""

import threading

import pytest

from walstream.errors import Transient
from walstream.testing import (
    FailAfterWrite,
    HoldResponse,
    MemoryStore,
    Reject,
    faulty,
)

LOST = Transient("lost")


def test_script_is_followed_in_turn() -> None:
    target = MemoryStore()
    positions = faulty(target, write=[None, Reject(LOST), FailAfterWrite(LOST)])
    positions.write({"a": 1})
    with pytest.raises(Transient):
        positions.write({"a": 2})
    assert positions.read("a") == 1
    with pytest.raises(Transient):
        positions.write({"a": 3})
    assert target.read("a") == 3
    positions.write({"a": 4})
    assert positions.read("a") == 4


def test_held_response_comes_when_it_is_released() -> None:
    target, hold = MemoryStore(), HoldResponse()
    positions = faulty(target, write=[hold])
    thread = threading.Thread(target=positions.write, args=({"a": 1},))
    thread.start()
    assert hold.done.wait(10)
    assert target.read("a") == 1
    assert thread.is_alive()
    hold.released.set()
    thread.join(10)
    assert not thread.is_alive()

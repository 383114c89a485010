"""Positions are stored beside the loop, in order, and errors are told."""

import threading

import pytest

from tests.waiting import wait_until
from walstream.errors import Transient
from walstream.pipeline.checkpoint_writer import PositionWriter
from walstream.pipeline.ports import Position
from walstream.testing import HoldResponse, MemoryPositions, Reject, faulty


def position(resume: int) -> Position:
    return Position(resume, 1, 1, "d", "s")


def seen(writer: PositionWriter) -> tuple[bool, Position | None]:
    return writer.busy, writer.stored


@pytest.fixture
def woken() -> threading.Semaphore:
    return threading.Semaphore(0)


def test_stored_is_what_is_durable(woken: threading.Semaphore) -> None:
    hold = HoldResponse()
    positions = faulty(MemoryPositions(), store=[hold])
    writer = PositionWriter(positions.store, woken.release)
    assert seen(writer) == (False, None)
    writer.submit(position(1))
    assert hold.done.wait(10)
    assert seen(writer) == (True, None)
    hold.released.set()
    assert woken.acquire(timeout=10)
    assert seen(writer) == (False, position(1))
    writer.close()


def test_error_is_kept_until_a_write_goes_well(woken: threading.Semaphore) -> None:
    full = Transient("disk full")
    positions = faulty(MemoryPositions(), store=[Reject(full)])
    writer = PositionWriter(positions.store, woken.release)
    writer.submit(position(1))
    assert woken.acquire(timeout=10)
    assert writer.error is full
    assert seen(writer) == (False, None)
    writer.submit(position(1))
    assert woken.acquire(timeout=10)
    assert seen(writer) == (False, position(1))
    writer.close()
    assert writer.error is None


def test_close_stores_first_what_was_submitted() -> None:
    positions = MemoryPositions()
    for resume in range(1, 50):
        writer = PositionWriter(positions.store, lambda: None)
        writer.submit(position(resume))
        writer.close()
        assert positions.position() == position(resume)


def test_close_without_work_returns() -> None:
    writer = PositionWriter(MemoryPositions().store, lambda: None)
    writer.close()
    wait_until(lambda: not writer.busy, 1, "it is idle")

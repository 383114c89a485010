"""Delivered, then stored with what belongs to it, then confirmed: in this order."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from tests.support.runtime import altered
from walstream.errors import Transient, WalstreamError
from walstream.pipeline.checkpoint import Checkpointer, StartPoint, StoredBeside
from walstream.pipeline.commit_times import CommitTimes, TimeIndex
from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import Given, Reach
from walstream.testing import (
    FailAfterWrite,
    HoldResponse,
    MemorySource,
    MemoryStore,
    Reject,
    faulty,
)

START = 1000


def position(resume: int) -> Position:
    return Position(resume, 1, 1, "d", "s")


class Kept:
    """A checkpointer whose source and positions are in memory."""

    def __init__(
        self, positions: MemoryStore, beside: StoredBeside | None, **start: int
    ) -> None:
        self.source = MemorySource([])
        self.woken = threading.Semaphore(0)
        self.checkpointer = Checkpointer(
            StartPoint(position(START), **start),
            positions,
            self.source,
            self.woken.release,
            beside or StoredBeside(),
        )

    def reach(self, resume: int) -> None:
        """Deliver all below, by a commit that ended there; wait until it is tried."""
        self.checkpointer.hurry()
        self.checkpointer.advance(resume, resume)
        assert self.woken.acquire(timeout=10)
        self.checkpointer.advance(resume, resume)


def stands(made: Kept) -> tuple[bool, int, list[int]]:
    """Return whether one is on its way, and what was confirmed."""
    checkpointer = made.checkpointer
    return checkpointer.busy, checkpointer.confirmed, list(made.source.confirmed)


@contextmanager
def kept(
    positions: MemoryStore | None = None,
    beside: StoredBeside | None = None,
    hold: HoldResponse | None = None,
    **start: int,
) -> Iterator[Kept]:
    """Let go at the end of a write that `hold` holds: what ends joins its thread."""
    if hold is not None:
        positions = faulty(positions or MemoryStore(), store=[hold])
    made = Kept(positions or MemoryStore(), beside, **start)
    try:
        yield made
    finally:
        if hold is not None:
            hold.released.set()
        made.checkpointer.close()
        made.source.close()


def test_only_what_is_durable_is_confirmed() -> None:
    hold = HoldResponse()
    with kept(hold=hold) as made:
        checkpointer = made.checkpointer
        checkpointer.advance(2000, 2000)
        assert hold.done.wait(10)
        checkpointer.advance(2000, 2000)
        assert stands(made) == (True, 0, [])
        hold.released.set()
        assert made.woken.acquire(timeout=10)
        checkpointer.advance(2000, 2000)
        assert stands(made) == (False, 2000, [2000])


def test_what_is_on_its_way_is_not_overtaken() -> None:
    hold, positions = HoldResponse(), MemoryStore()
    with kept(positions, hold=hold) as made:
        made.checkpointer.advance(2000, 2000)
        assert hold.done.wait(10)
        made.checkpointer.hurry()
        made.checkpointer.advance(3000, 3000)  # it waits for its turn
        hold.released.set()
        assert made.woken.acquire(timeout=10)
        made.reach(3000)
    assert [one.resume for one in positions.stored] == [2000, 3000]


@pytest.mark.parametrize("fault", [Reject, FailAfterWrite])
def test_an_error_is_kept_until_a_write_goes_well(fault: Any) -> None:
    full = Transient("disk full")
    with kept(faulty(MemoryStore(), store=[fault(full)])) as made:
        made.reach(2000)
        assert made.checkpointer.error is full
        assert made.source.confirmed == []
        made.checkpointer.hurry()
        made.checkpointer.advance(2000, 2000)  # tried again
        assert made.woken.acquire(timeout=10)
        made.checkpointer.advance(2000, 2000)
        assert stands(made) == (False, 2000, [2000])
    assert made.checkpointer.error is None


def test_an_error_of_any_kind_reaches_the_loop() -> None:
    scripted = faulty(MemoryStore(), store=[Reject(OSError("gone"))])
    with kept(scripted) as made, pytest.raises(WalstreamError, match="gone"):
        made.reach(2000)


def test_close_stores_first_what_was_handed_over() -> None:
    positions = MemoryStore()
    for resume in range(START + 1, START + 50):
        with kept(positions) as made:
            made.checkpointer.advance(resume, resume)
        assert positions.position() == position(resume)


def test_what_only_keepalives_moved_can_wait() -> None:
    with kept() as made:
        made.reach(2000)
        made.checkpointer.advance(2100, 2000)
        assert not made.checkpointer.busy
        assert 0.5 < made.checkpointer.due_s(2100) <= 1.0
        assert made.checkpointer.due_s(2000) == float("inf")


def times() -> CommitTimes:
    return CommitTimes(None, resume=START, retain=0, slot_start=START)


def test_what_belongs_to_a_position_is_stored_with_it() -> None:
    written: list[Mapping[str, Any]] = []

    class Positions(MemoryStore):
        def write(self, documents: Mapping[str, Any]) -> None:
            written.append(dict(documents))
            super().write(documents)

    reach = Reach(Given(1, 0, 1 << 40), 1)
    beside = StoredBeside(lambda: {"figures": {"ops": 7}}, times(), reach)
    with kept(Positions(), beside) as made:
        made.checkpointer.note(1900, 42)
        assert made.checkpointer.admits(1900)
        made.reach(2000)
        (together,) = written
        assert together["position"]["resume"] == 2000
        assert together["figures"] == {"ops": 7}
        assert together["given"]["lsn"] == 1900
        index = TimeIndex.of(MemoryStore(together))
        assert index is not None
        assert index.open.latest == 42
    assert written[1:] == [{"given": {"timeline": 1, "lsn": 1900, "below": 1 << 40}}]


def test_a_commit_is_admitted_once_it_is_on_disk_that_it_may_be_given() -> None:
    hold = HoldResponse()
    beside = StoredBeside(reach=Reach(None, 1))
    with kept(beside=beside, hold=hold) as made:
        assert not made.checkpointer.admits(1900)  # and that is stored now
        assert hold.done.wait(10)
        assert not made.checkpointer.admits(1900)
        hold.released.set()
        wait_until(lambda: not made.checkpointer.busy, 10, "it is stored")
        assert made.checkpointer.admits(1900)
        assert made.source.confirmed == []


def test_what_is_retained_is_not_confirmed() -> None:
    with kept(retain_bytes=100, slot_start=500) as made:
        made.checkpointer.begin()
        made.reach(2000)
        assert made.source.confirmed == [900, 1900]
        assert made.checkpointer.confirmed == 2000


def test_transactions_that_come_together_share_a_write() -> None:
    now = [1000.0]
    positions = MemoryStore()
    with altered(monotonic=lambda: now[0]), kept(positions) as made:
        checkpointer = made.checkpointer
        assert checkpointer.due_s(START) == float("inf")
        assert checkpointer.due_s(2000) == 0.0
        made.reach(2000)
        checkpointer.advance(2000, 2000)
        assert not checkpointer.busy  # it is stored already
        now[0] += 0.01
        checkpointer.advance(3000, 3000)
        assert not checkpointer.busy
        assert checkpointer.due_s(3000) == pytest.approx(0.04)
        now[0] = 1000.05
        checkpointer.advance(4000, 4000)
        assert made.woken.acquire(timeout=10)
        checkpointer.advance(4500, 4000)  # by a keepalive
        assert checkpointer.due_s(4500) == pytest.approx(1.0)
        now[0] = 1001.05
        checkpointer.advance(4500, 4000)
        assert made.woken.acquire(timeout=10)
    assert [one.resume for one in positions.stored] == [2000, 4000, 4500]


def test_what_is_being_written_is_due_when_it_may_be_over() -> None:
    hold = HoldResponse()
    with kept(hold=hold) as made:
        made.checkpointer.advance(2000, 2000)
        assert hold.done.wait(10)
        assert made.checkpointer.due_s(3000) == pytest.approx(0.05)


def test_a_failed_write_is_tried_again_each_second_and_told_twice() -> None:
    now = [1000.0]
    full = Transient("disk full")
    scripted = faulty(MemoryStore(), store=[Reject(full), Reject(full)])
    beside = StoredBeside(reach=Reach(None, 1))
    with (
        altered(monotonic=lambda: now[0]),
        capture_logs() as logs,
        kept(scripted, beside) as made,
    ):
        checkpointer = made.checkpointer
        made.reach(2000)
        assert not checkpointer.admits(1900)  # no write for that: it would fail, too
        now[0] += 0.9
        checkpointer.advance(2000, 2000)
        assert not checkpointer.busy
        now[0] += 0.1
        checkpointer.advance(2000, 2000)
        assert made.woken.acquire(timeout=10)
        checkpointer.advance(2000, 2000)
        now[0] += 1.0
        checkpointer.advance(2000, 2000)
        assert made.woken.acquire(timeout=10)
        checkpointer.advance(2000, 2000)
        checkpointer.advance(2000, 2000)
        assert stands(made) == (False, 2000, [2000])
    told = [(line["event"], line.get("error")) for line in logs]
    assert told == [
        ("positions cannot be stored", str(full)),
        ("positions are stored again", None),
    ]


def test_who_hears_of_confirmations_hears_each_once() -> None:
    heard: list[int] = []
    with kept(beside=StoredBeside(confirmed=heard.append)) as made:
        made.checkpointer.begin()
        made.reach(2000)
        made.checkpointer.advance(2000, 2000)
    assert heard == [START, 2000]
    assert StartPoint(position(1)) == StartPoint(position(1), 0, 0)


def test_a_confirmation_is_above_the_slots_start() -> None:
    with kept(slot_start=2000) as made:
        made.reach(2000)
        assert made.source.confirmed == []
        made.reach(2001)
        assert made.source.confirmed == [2001]


class Index:
    """Stands for the commit times that are stored with a position."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def documents(self, resume: int) -> dict[str, object]:
        self.done.append(f"written with {resume}")
        return {}

    def stored(self) -> None:
        self.done.append("stored")


def test_an_index_hears_when_it_is_on_disk_and_only_then() -> None:
    index = Index()
    scripted = faulty(MemoryStore(), store=[Reject(Transient("disk full"))])
    with kept(scripted, StoredBeside(times=cast("CommitTimes", index))) as made:
        made.reach(2000)
        assert index.done == ["written with 2000"]
        made.reach(2001)
        assert index.done[1:] == ["written with 2001", "stored"]

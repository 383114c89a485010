"""A heartbeat waits for nothing, and what it meets is said once."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from structlog.testing import capture_logs

from walstream.errors import PermissionLacking, Repair, Transient
from walstream.lsn import Lsn
from walstream.postgres.heartbeat import Heartbeat


class Beating:
    """A heartbeat every 10 s, by a clock and a thread of the test's own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.told: list[Lsn] = []
        self.under_way: list[Future[Lsn]] = []
        self._heartbeat = Heartbeat("", 10.0, self.told.append, lambda: self.now)

    def _start(self, _task: Callable[[], Lsn]) -> Future[Any]:
        self.under_way.append(Future())
        return self.under_way[-1]

    def tick(self, *, paused: bool = False) -> int:
        """Give how many were begun so far."""
        self._heartbeat.tick(self._start, paused=paused)
        return len(self.under_way)

    def ends(self, outcome: Lsn | Exception) -> None:
        self.now += 10
        assert self.tick() > 0
        if isinstance(outcome, Exception):
            self.under_way[-1].set_exception(outcome)
        else:
            self.under_way[-1].set_result(outcome)
        self.tick()


def test_one_is_written_at_each_interval_unless_one_is_under_way_or_all_is_paused() -> (
    None
):
    beating = Beating()
    assert beating.tick(paused=True) == 0
    assert [beating.tick(), beating.tick()] == [1, 1]
    beating.now += 25
    assert beating.tick() == 1
    beating.under_way[0].set_result(7)
    beating.tick()
    assert beating.told == [7]
    assert beating.tick(paused=True) == 1
    assert beating.tick() == 2
    beating.under_way[1].set_result(8)
    beating.now += 9
    assert [beating.tick(), beating.tick()] == [2, 2]
    assert beating.told == [7, 8]


def test_a_refusal_is_said_once_with_its_cure_and_its_end() -> None:
    beating = Beating()
    denied = PermissionLacking("denied", repair=Repair(sql="GRANT x;"))
    with capture_logs() as logs:
        for outcome in (Transient("away"), denied, denied, Transient("away"), 9, 10):
            beating.ends(outcome)
    assert [(entry["event"], entry.get("repair")) for entry in logs] == [
        ("heartbeats cannot be written", "GRANT x;"),
        ("heartbeats are written again", None),
    ]
    assert beating.told == [9, 10]

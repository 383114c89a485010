"""Table after table, and what becomes of those that fail."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.unit.sources.postgres.incremental.test_table_run import PLACE, Rows, at_once
from walstream.errors import (
    PermissionLacking,
    RecordRefused,
    Repair,
    Restart,
    TopicLost,
    Transient,
)
from walstream.op import ReplicationOp, Table
from walstream.pipeline.ledger import Shares, Transaction
from walstream.sources.postgres.backfill.condition import UnfitCondition
from walstream.sources.postgres.incremental.chunk import KeyChunk
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.sources.postgres.incremental.queue import IncrementalBackfill
from walstream.sources.report import IncrementalReport
from walstream.spark.outcome import ChunkFailed
from walstream.testing import MemoryStore


class AtOnce:
    read = write = staticmethod(at_once)


class Beside:
    """A backfill whose rows are delivered when told, on a clock of its own."""

    def __init__(self) -> None:
        self.reader = Rows()
        self.failing: Exception | None = None
        self.unusable: Exception | None = None  # the topic
        self.progress = IncrementalProgress(MemoryStore())
        self.now = 0.0
        self.asked = 0
        self.sent: list[Transaction] = []
        self.backfill = IncrementalBackfill(
            self, self.progress, AtOnce(), self._ask, lambda: self.now
        )
        self.mark, self.seen = self.reader.mark, self.reader.seen
        self.table = self.reader.table

    def _ask(self) -> None:
        self.asked += 1

    def blockers(self) -> str:
        return "pid 7"

    def read(self, *arguments: Any) -> KeyChunk:
        if self.failing is not None:
            raise self.failing
        return self.reader.read(*arguments)

    def known(self, _: Table) -> bool:
        if self.unusable is not None:
            raise self.unusable
        return True

    def turn(self, place: int = PLACE) -> list[ReplicationOp]:
        ops = self.backfill.rows(place, self.known)
        if ops:
            transaction = Transaction(place - 1)
            transaction.end_lsn, transaction.undelivered = place, 1
            self.sent.append(transaction)
            self.backfill.sent(Shares([transaction]))
        return ops

    def turns(self, count: int = 10, place: int = PLACE) -> list[ReplicationOp]:
        return [op for _ in range(count) for op in self.turn(place)]

    def deliver(self) -> None:
        for transaction in self.sent:
            transaction.undelivered = 0

    def states(self) -> dict[str, str]:
        return {name: how.state for name, how in self.progress.report().items()}


@pytest.fixture
def beside() -> Beside:
    return Beside()


def test_nothing_is_noted_while_nothing_is_asked_for(beside: Beside) -> None:
    assert beside.turns() == []
    assert beside.backfill.note is None
    beside.progress.ask(["public.t"])
    beside.turn()
    assert beside.backfill.note is not None


def test_a_table_is_done_when_its_last_row_is_delivered(beside: Beside) -> None:
    beside.progress.ask(["public.t", "public.u"])
    assert len(beside.turns()) == 3
    assert beside.states() == {"public.t": "reading", "public.u": "waiting"}
    beside.deliver()
    with capture_logs() as logs:
        assert len(beside.turns()) == 3
    assert beside.states() == {"public.t": "done", "public.u": "reading"}
    assert [(e["event"], e["table"], e["rows"]) for e in logs] == [
        ("table backfilled", "public.t", 3)
    ]
    beside.deliver()
    beside.turns()
    assert beside.states() == {"public.t": "done", "public.u": "done"}
    assert beside.backfill.note is None


def test_what_is_delivered_is_kept_while_the_rest_goes_on(beside: Beside) -> None:
    beside.reader.count = 1200
    beside.progress.ask(["public.t"])
    assert len(beside.turn()) == 500
    beside.deliver()
    beside.turns(3)
    kept = beside.progress.wishes()["public.t"]
    assert (kept.after, kept.rows) == (("499",), 500)


def test_a_failure_is_said_once_and_other_tables_go_on(beside: Beside) -> None:
    beside.failing = PermissionLacking("no right", hint="h", repair=Repair(sql="G;"))
    beside.progress.ask(["public.t", "public.u"])
    with capture_logs() as logs:
        for _ in range(4):
            beside.turns()
            beside.now += 1000
    told = beside.progress.report()["public.t"]
    assert told == IncrementalReport(0, "error", "no right")
    said = [(e["table"], e["error"], e["hint"], e["repair"]) for e in logs]
    assert said == [(name, "no right", "h", "G;") for name in ("public.t", "public.u")]
    beside.failing = None
    beside.now += 1000
    assert len(beside.turns()) == 3
    beside.deliver()
    beside.turns()
    assert beside.states()["public.t"] == "done"


@pytest.mark.parametrize(
    ("error", "wait_s"), [(Transient("away"), 1.0), (PermissionLacking("no"), 60.0)]
)
def test_what_passes_is_tried_again_soon(
    beside: Beside, error: Exception, wait_s: float
) -> None:
    beside.failing = error
    beside.progress.ask(["public.t"])
    beside.turns()
    beside.failing = None
    beside.now += wait_s * 0.7
    assert beside.turns() == []
    beside.now += wait_s * 0.3
    assert len(beside.turns()) == 3


def test_a_table_that_is_asked_for_anew_is_tried_at_once(beside: Beside) -> None:
    beside.failing = PermissionLacking("no right")
    beside.progress.ask(["public.t"])
    beside.turns()
    beside.failing = None
    beside.progress.ask(["public.t"])
    assert len(beside.turns()) == 3


def test_a_defect_in_reading_does_not_end_the_stream(beside: Beside) -> None:
    beside.failing = KeyError("secret value")
    beside.progress.ask(["public.t"])
    beside.turns()
    assert beside.progress.report()["public.t"].error == "KeyError: a defect"


def test_a_row_that_a_sink_refuses_stops_its_table_alone(beside: Beside) -> None:
    beside.progress.ask(["public.t", "public.u"])
    assert len(beside.turn()) == 3
    beside.backfill.refused(RecordRefused("too large"))
    beside.deliver()
    beside.turns()
    assert beside.states()["public.t"] == "error"


def test_a_topic_that_cannot_be_used_stops_its_table_alone(beside: Beside) -> None:
    beside.progress.ask(["public.t", "public.u"])
    beside.unusable = TopicLost("there is no topic")
    assert beside.turn() == []
    beside.unusable = None
    assert len(beside.turns()) == 3
    assert beside.states() == {"public.t": "error", "public.u": "reading"}


def test_a_topic_that_asks_for_another_producer_has_the_stream_begin_again(
    beside: Beside,
) -> None:
    beside.progress.ask(["public.t"])
    beside.unusable = Restart("limits")
    with pytest.raises(Restart):
        beside.turns()


def test_a_table_that_is_to_be_replaced_meanwhile_begins_anew(beside: Beside) -> None:
    beside.reader.count = 1200
    beside.progress.ask(["public.t"])
    beside.turn()
    beside.progress.ask(["public.t"], replace=True)
    ops = beside.turns()
    assert [op.kind.value for op in ops[:2]] == ["Truncate", "Insert"]
    beside.deliver()
    beside.turns()
    assert beside.states() == {"public.t": "done"}


def test_it_is_said_for_whom_it_waits_for_long(beside: Beside) -> None:
    beside.reader.oldest = [39]
    beside.progress.ask(["public.t"])
    with capture_logs() as logs:
        beside.turns()
        assert logs == []
        beside.now += 11
        beside.turns()
        beside.now += 100
        beside.turns()
    assert [entry["sessions"] for entry in logs] == ["pid 7"]


def test_the_server_is_asked_where_it_is_while_the_stream_is_behind(
    beside: Beside,
) -> None:
    beside.progress.ask(["public.t"])
    beside.turns(place=PLACE - 1)
    assert beside.asked == 1
    beside.now += 2
    beside.turns(place=PLACE - 1)
    assert beside.asked == 2


def test_tables_that_wait_are_not_gone_through_at_every_transaction(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside.failing = PermissionLacking("no right")
    beside.progress.ask(["public.t", "public.u"])
    beside.turns()
    looks: list[int] = []
    first = beside.progress.first

    def counted(wanted: Any) -> Any:
        looks.append(1)
        return first(wanted)

    monkeypatch.setattr(beside.progress, "first", counted)
    beside.turns(100)
    assert looks == []
    beside.failing = None
    beside.now += 1000
    assert len(beside.turns()) == 3


def test_a_table_has_rows_left_until_they_are_kept_as_sent_or_it_failed(
    beside: Beside,
) -> None:
    assert beside.backfill.pending(5) == []
    beside.progress.ask(["public.t", "public.u"])
    assert beside.backfill.pending(1) == ["public.t"]
    beside.turns()
    assert beside.backfill.pending(5) == ["public.t", "public.u"]
    beside.deliver()
    beside.failing = PermissionLacking("denied")
    beside.turns()
    assert beside.states() == {"public.t": "done", "public.u": "error"}
    assert beside.backfill.pending(5) == []
    with pytest.raises(ChunkFailed, match=r"not sent: public\.u \(denied\)"):
        beside.progress.check_complete()
    beside.failing = None
    beside.progress.ask(["public.u"])  # anew
    assert beside.backfill.pending(5) == ["public.u"]
    beside.turns()
    beside.deliver()
    beside.turns()
    assert beside.backfill.pending(5) == []
    beside.progress.check_complete()


def test_a_table_that_is_asked_for_meanwhile_comes_once_more_behind_the_others(
    beside: Beside,
) -> None:
    beside.progress.ask(["public.t", "public.u"])
    assert len(beside.turns()) == 3
    beside.progress.ask(["public.t"])
    for table in "public.u", "public.t":
        beside.deliver()
        assert len(beside.turns()) == 3
        assert beside.states()[table] == "reading"
    beside.deliver()
    beside.turns()
    assert beside.states() == {"public.t": "done", "public.u": "done"}


def test_a_condition_that_cannot_be_read_by_gives_way_to_the_next(
    beside: Beside,
) -> None:
    beside.progress.ask(["public.t"], where="gone > 1")
    beside.failing = UnfitCondition("no column")
    beside.turns()
    assert beside.states() == {"public.t": "error"}
    beside.failing = None
    beside.progress.ask(["public.t"], where="id > 1")
    assert beside.progress.report()["public.t"].where == "id > 1"
    assert len(beside.turns()) == 3

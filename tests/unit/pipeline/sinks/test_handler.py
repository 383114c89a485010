"""A sink behind handlers: in order, all of a batch or nothing, and never blocking."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from walstream.errors import ConfigError, HistoryError, Transient, WalstreamError
from walstream.op import Kind, MessageOp, ReplicationOp, Table
from walstream.pipeline.ledger import Ledger, Transaction
from walstream.pipeline.sinks.handler import Batching, HandlerSink
from walstream.records.handlers import HANDLERS, Out, ProducerRecord
from walstream.records.handlers.chain import Chain, Spec
from walstream.telemetry.tally import Tally

TABLE = Table("public", "t", ("id", "v"), (0,))
SHY: set[str] = set()  # values that a handler cannot take now


class Target:
    """A sink that delivers nothing by itself."""

    name = "target"
    waiting = False
    handler_waits = False
    outage = None
    in_flight = 0

    def __init__(self) -> None:
        self.tally = Tally()
        self.topics: Mapping[str, Any] = {}
        self.room = True
        self.sent: list[object] = []
        self.closed = False
        self.flushed = False
        self.refused = ""
        self.error: WalstreamError = HistoryError("too large")

    def ready(self) -> bool:
        return self.room

    def flush(self) -> None:
        self.flushed = True

    def knows(self, table: Table) -> bool:
        return table is TABLE

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        value = (op.new or ())[1]
        if value == self.refused:
            raise self.error
        self.sent.append(value)
        transaction.undelivered += 1
        return False

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        if message.content.decode() == self.refused:
            raise HistoryError("too large")
        self.sent.append(message.content)
        transaction.undelivered += 1
        return False

    def put(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        self.sent.append((record.key, record.value, op.seq_id))
        transaction.undelivered += 1

    def close(self) -> None:
        self.closed = True


class Moody:
    def __init__(self, _: Table, __: Mapping[str, Any]) -> None: ...

    def handle(self, op: ReplicationOp) -> Iterator[Out]:
        value = str((op.new or ())[1])
        if value in SHY:
            raise Transient("not now")
        if value == "bad":
            raise ValueError("s3cret")
        if value == "config":
            raise ConfigError("no such thing")
        if value == "stop":
            raise HistoryError("no further")
        if value == "record":
            yield ProducerRecord(b"k", b"v")
        elif value != "nothing":
            yield op


class Rig:
    """One sink, and the time that it sees."""

    def __init__(self, batching: Batching | None = None) -> None:
        self.now = 0.0
        self.stopping = False
        self.target = Target()
        self.transaction = Transaction(8)
        chain = Chain([Spec("moody", ("*",), {})])
        self.sink = HandlerSink(self.target, chain, batching, clock=lambda: self.now)

    def send(self, *values: str) -> bool:
        return [
            self.sink.send(
                ReplicationOp(Kind.INSERT, TABLE, 8, number, new=["1", value]),
                self.transaction,
            )
            for number, value in enumerate(values)
        ][-1]


@pytest.fixture(autouse=True)
def moody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(HANDLERS, "moody", Moody)
    yield
    SHY.clear()


def test_what_a_turn_carries_is_handled_in_the_next() -> None:
    rig = Rig()
    assert rig.send("a", "record", "b")
    assert rig.target.sent == []
    assert rig.transaction.undelivered == rig.sink.in_flight == 3
    assert rig.sink.ready()
    assert rig.target.sent == ["a", (b"k", b"v", 1), "b"]
    assert rig.transaction.undelivered == 3  # what the target has not delivered
    assert rig.sink.in_flight == 0


def test_what_a_turn_carries_is_handled_where_nothing_else_came() -> None:
    """The loop flushes then, and rests: its next turn may be far."""
    rig = Rig()
    rig.send("a", "record")
    rig.sink.flush()
    assert rig.target.sent == ["a", (b"k", b"v", 1)]
    assert rig.target.flushed
    rig = Rig(Batching(interval_s=5.0))
    rig.send("a")
    rig.sink.flush()
    assert rig.target.sent == []
    rig.now = 5.0
    rig.sink.flush()
    assert rig.target.sent == ["a"]


def message(content: bytes) -> MessageOp:
    return MessageOp("p", content, 8, 7, 1, 0)


def test_a_message_waits_for_the_ops_before_it() -> None:
    rig = Rig()
    assert not rig.sink.send_message(message(b"first"), rig.transaction)
    assert rig.target.sent == [b"first"]  # which has no room left
    rig.send("a")
    assert rig.sink.send_message(message(b"between"), rig.transaction)
    rig.send("b")
    assert rig.target.sent == [b"first"]
    assert rig.transaction.undelivered == 4
    assert rig.sink.in_flight == 3
    assert rig.sink.ready()
    assert rig.target.sent == [b"first", "a", b"between", "b"]
    assert rig.transaction.undelivered == 4
    assert not rig.sink.tally


def test_a_message_waits_with_the_ops_that_a_handler_cannot_take() -> None:
    rig = Rig()
    SHY.add("a")
    rig.send("a")
    rig.sink.send_message(message(b"m"), rig.transaction)
    rig.sink.ready()
    assert not rig.sink.send_message(message(b"n"), rig.transaction)
    assert rig.target.sent == []
    SHY.clear()
    rig.now = 100.0
    rig.sink.ready()
    assert rig.target.sent == ["a", b"m", b"n"]


def test_a_message_that_is_refused_stays() -> None:
    rig = Rig()
    rig.target.refused = "m"
    rig.send("a")
    rig.sink.send_message(message(b"m"), rig.transaction)
    for _ in range(2):
        with pytest.raises(HistoryError):
            rig.sink.ready()
    assert rig.transaction.undelivered == 2


def test_messages_fill_a_batch() -> None:
    rig = Rig(Batching(size=10))
    rig.send("a")
    assert not rig.sink.send_message(message(b"0123456789"), rig.transaction)


def test_no_more_than_a_batch_is_taken() -> None:
    rig = Rig(Batching(rows=2, interval_s=60))
    assert rig.send("a")
    assert not rig.send("b")
    assert rig.sink.ready()
    assert rig.target.sent == ["a", "b"]


def test_a_batch_is_full_when_its_texts_take_what_they_may() -> None:
    rig = Rig(Batching(interval_s=60, size=1000))
    assert rig.send("x" * 990)
    assert not rig.send("y" * 20)
    assert rig.sink.ready()  # it was due, and is gone
    assert len(rig.target.sent) == 2
    assert not rig.send("z" * 2000)  # taken all the same
    assert rig.sink.ready()
    assert len(rig.target.sent) == 3
    assert rig.send("x" * 990)  # nothing is left over
    assert len(rig.target.sent) == 3


def test_ops_wait_for_others_as_long_as_was_said() -> None:
    rig = Rig(Batching(interval_s=5))
    rig.send("a")
    assert rig.sink.ready()
    rig.now = 4.9
    assert rig.sink.ready()
    assert rig.target.sent == []
    rig.now = 5
    rig.sink.ready()
    assert rig.target.sent == ["a"]


def test_at_a_stop_none_waits() -> None:
    stopping: list[bool] = []
    rig = Rig(Batching(interval_s=60, stopping=lambda: bool(stopping)))
    rig.send("a")
    rig.sink.ready()
    stopping.append(True)
    rig.sink.ready()
    assert rig.target.sent == ["a"]


def test_without_room_nothing_is_handled() -> None:
    rig = Rig()
    rig.send("a")
    rig.target.room = False
    assert not rig.sink.ready()
    assert rig.target.sent == []


def test_nothing_of_a_batch_is_sent_before_all_of_it_is_handled() -> None:
    rig = Rig()
    SHY.add("b")
    rig.send("a", "nothing", "bad", "b", "c")
    assert not rig.sink.ready()
    assert rig.sink.waiting
    assert rig.sink.handler_waits
    assert rig.target.sent == []
    assert not rig.send("d")  # it is taken, and waits behind
    SHY.clear()
    assert not rig.sink.ready()  # the wait is not over
    rig.now = 10
    with capture_logs() as said:
        assert rig.sink.ready()
    assert rig.target.sent == ["a", "b", "c", "d"]
    # what was tried in vain counts once
    assert rig.target.tally.document() == {"public.t": {"skipped": 1, "failed": 1}}
    assert [line["event"] for line in said].count(
        "op is skipped: a handler does not take it"
    ) == 1


def test_what_keeps_a_handler_waiting_is_said_once() -> None:
    rig = Rig()
    SHY.add("b")
    rig.send("b")
    with capture_logs() as said:
        for rig.now in (0, 10, 20):
            rig.sink.ready()
    assert [line["error"] for line in said] == ["not now"]


def test_what_is_never_taken_is_skipped_counted_and_named() -> None:
    rig = Rig()
    rig.send("a", "bad", "b")
    with capture_logs() as said:
        rig.sink.ready()
    assert rig.target.sent == ["a", "b"]
    assert rig.target.tally.failed == {"public.t": 1}
    (line,) = said
    assert (line["table"], line["lsn"], line["seq_id"]) == ("public.t", "0/8", 1)
    assert "s3cret" not in str(line)


def test_an_op_that_nothing_came_of_is_delivered() -> None:
    rig = Rig()
    rig.send("nothing")
    rig.sink.ready()
    assert rig.transaction.undelivered == 0
    assert rig.target.tally.skipped == {"public.t": 1}


def test_a_row_beside_the_stream_is_refused_where_it_was_sent() -> None:
    rig = Rig(Batching(interval_s=60))
    rig.send("a")
    row = ReplicationOp(Kind.INSERT, TABLE, 7, 0, new=["1", "b"], snapshot=True)
    rig.sink.send(row, rig.transaction)
    assert rig.target.sent == ["a", "b"]  # in order
    rig.target.refused = "c"
    row.new = ["1", "c"]
    with pytest.raises(HistoryError):
        rig.sink.send(row, rig.transaction)
    assert rig.transaction.undelivered == 2
    assert rig.sink.in_flight == 0
    assert rig.sink.ready()


def test_a_row_of_the_stream_that_is_refused_is_not_passed_by() -> None:
    rig = Rig()
    rig.target.refused = "b"
    rig.send("a", "b", "c")
    for _ in range(2):
        with pytest.raises(HistoryError):
            rig.sink.ready()
    assert rig.target.sent == ["a"]
    assert rig.transaction.undelivered == 3


def test_a_handler_stops_the_sink_at_an_op_behind_those_before_it() -> None:
    rig = Rig()
    rig.send("a", "stop", "b")
    for _ in range(2):
        with pytest.raises(HistoryError, match="no further"):
            rig.sink.ready()
    assert rig.target.sent == ["a"]
    assert rig.transaction.undelivered == 3
    assert not rig.sink.tally.failed


def test_the_rest_is_the_targets() -> None:
    rig = Rig()
    sink = rig.sink
    assert sink.name == "target"
    assert sink.tally is rig.target.tally
    assert sink.topics == {}
    assert sink.knows(TABLE)
    assert not sink.waiting
    op = ReplicationOp(Kind.INSERT, TABLE, 8, 0)
    sink.put(ProducerRecord(b"k", b"v"), op, rig.transaction)
    assert rig.target.sent == [(b"k", b"v", 0)]
    sink.close()
    assert rig.target.closed


def test_slow_handlers_leave_the_loop_its_turns_and_send_when_all_are_done() -> None:
    rig = Rig()
    slow = Slow(rig)
    rig.sink = HandlerSink(
        rig.target, cast("Chain", slow), Batching(), clock=lambda: rig.now
    )
    rig.send("a", "b", "c")
    handled, sent = [], []
    for _ in range(3):
        rig.sink.ready()
        handled.append(len(slow.handled))
        sent.append(len(rig.target.sent))
    assert handled == [1, 2, 3]
    assert sent == [0, 0, 3]
    assert slow.handled == ["a", "b", "c"]


class Slow:
    """Handlers that take a second an op."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.handled: list[str] = []

    def handle(self, op: ReplicationOp) -> list[Out]:
        self._rig.now += 1.0
        self.handled.append(str((op.new or ())[1]))
        return [op]


class Long:
    """Waits for a service that does not answer, the longer the larger the value."""

    rig: Rig

    def __init__(self, _: Table, __: Mapping[str, Any]) -> None: ...

    def handle(self, op: ReplicationOp) -> list[Out]:
        self.rig.now += float(str((op.new or ())[1]))
        raise Transient("no answer")


def test_a_call_that_takes_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may end the connection for it, and its error names no handler."""
    monkeypatch.setitem(HANDLERS, "long", Long)
    rig = Long.rig = Rig()
    specs = [Spec("moody", ("other.*",), {}), Spec("long", ("public.*",), {})]
    rig.sink = HandlerSink(rig.target, Chain(specs), clock=lambda: rig.now)
    rig.send("9.9")
    with capture_logs() as said:
        rig.sink.ready()
    assert [one["event"][:20] for one in said] == ["a handler cannot wor"]
    rig = Long.rig = Rig()
    rig.sink = HandlerSink(rig.target, Chain(specs), clock=lambda: rig.now)
    rig.send("75.04")
    with capture_logs() as said:
        rig.sink.ready()
        rig.sink.ready()
    long, waits = said
    assert waits["error"] == "no answer"
    assert (long["handlers"], long["seconds"], long["seq_id"]) == (["long"], 75.0, 0)
    assert (long["table"], long["lsn"]) == ("public.t", "0/8")
    assert "wal_sender_timeout" in long["hint"]


def test_a_row_beside_the_stream_is_not_blamed_for_an_op_that_is_refused() -> None:
    rig = Rig()
    rig.target.refused = "large"
    rig.send("large")
    row = ReplicationOp(Kind.INSERT, TABLE, 8, 0, new=["1", "row"], snapshot=True)
    assert not rig.sink.send(row, rig.transaction)
    with pytest.raises(HistoryError):
        rig.sink.ready()
    assert rig.transaction.undelivered == 2  # neither is forgotten
    alone = Rig()
    alone.target.refused = "row"
    with pytest.raises(HistoryError):
        alone.sink.send(row, alone.transaction)
    assert alone.transaction.undelivered == 0


@pytest.mark.parametrize("name", ["row", "large"])
def test_a_row_that_is_refused_by_a_defect_is_forgotten_alone(name: str) -> None:
    rig = Rig()
    rig.target.error = WalstreamError("a value does not fit the column's type")
    rig.target.refused = name
    row = ReplicationOp(Kind.INSERT, TABLE, 8, 0, new=["1", "row"], snapshot=True)
    if name == "large":
        rig.send("large")
        assert not rig.sink.send(row, rig.transaction)
    else:
        with pytest.raises(WalstreamError):
            rig.sink.send(row, rig.transaction)
    assert rig.transaction.undelivered == (2 if name == "large" else 0)


def test_a_row_that_may_go_later_is_kept() -> None:
    rig = Rig()
    rig.target.error = Transient("not now")
    rig.target.refused = "row"
    row = ReplicationOp(Kind.INSERT, TABLE, 8, 0, new=["1", "row"], snapshot=True)
    with pytest.raises(Transient):
        rig.sink.send(row, rig.transaction)
    assert rig.transaction.undelivered == 1


@pytest.mark.parametrize("committed_after", [0, 1, 2, 3])
def test_a_transaction_ends_once_behind_all_that_was_handled(
    committed_after: int,
) -> None:
    rig = Rig(Batching(rows=1))
    told: list[object] = []
    send = rig.target.send

    def tells(op: ReplicationOp, transaction: Transaction) -> bool:
        if not told:
            transaction.at_end += (lambda _, end: told.append(("end", end)),)
        told.append(op.seq_id)
        return send(op, transaction)

    rig.target.send = tells  # type: ignore[method-assign]
    ledger = Ledger(8)
    transaction = rig.transaction = ledger.begin(8)
    for turn, value in enumerate(("a", "b", "nothing")):
        if turn == committed_after:
            break
        rig.send(value)
        if turn < 2:
            rig.sink.ready()
    left = ("a", "b", "nothing")[committed_after:]
    if left:
        rig.send(*left)
    ledger.commit(9)
    for _ in range(4):
        rig.sink.ready()
    assert told.count(("end", 9)) == 1
    assert told[-1] == ("end", 9)
    assert transaction.undelivered == 2  # what the target has not delivered


def test_what_is_known_is_asked_of_the_shape_that_handlers_make() -> None:
    """A registry is asked for that, and for no column that a handler leaves out."""
    asked = []

    class Asked(Target):
        def knows(self, table: Table) -> bool:
            asked.append(table.columns)
            return True

    chain = Chain([Spec("drop_columns", ("*",), {"columns": ["v"]})])
    assert HandlerSink(Asked(), chain, None).knows(TABLE)
    assert asked == [("id",)]

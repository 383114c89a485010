"""The loop, driven in memory: delivered, then stored, then confirmed."""

import select
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.runtime import altered
from walstream.errors import StateDamaged, Transient, WalstreamError
from walstream.formats.column_type import ARRAY
from walstream.lsn import NEVER
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.checkpoint import Checkpointer, StartPoint, StoredBeside
from walstream.pipeline.ledger import Shares
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.pgoutput import (
    Begin,
    Column,
    Commit,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    Relation,
    Truncate,
    Type,
    Update,
)
from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import Given, Reach
from walstream.pipeline.shutdown import Stop, Waker
from walstream.row import UNCHANGED
from walstream.telemetry.meter import Meter
from walstream.testing import (
    Delivery,
    FailAfterWrite,
    HoldResponse,
    MemoryCompanion,
    MemorySink,
    MemorySource,
    MemoryStore,
    Reject,
    encode,
    faulty,
    keepalive,
    transaction,
    wal_data,
)

TABLE = Relation(
    1, "public", "t", "d", [Column(True, "id", 20, -1), Column(False, "v", 25, -1)]
)
START = 1000


def insert(key: str) -> Insert:
    return Insert(1, [key, "x"], toasted=False)


def rows(lsn: int, *keys: str) -> list[bytes]:
    """Frame one transaction, which ends 48 bytes behind its LSN."""
    return transaction(lsn, TABLE, *map(insert, keys))


class Running:
    """A pipeline in a thread of its own."""

    def __init__(
        self,
        source: MemorySource,
        sink: MemorySink,
        positions: MemoryStore | None = None,
        patience: int = 0,
        reach: Reach | None = None,
        **confirming: Any,
    ) -> None:
        self.positions = positions or MemoryStore()
        self.stop = Stop(Waker(), 10.0)
        self.reach = reach or Reach(Given(1, 0, 1 << 40), 1)
        self.source = source
        self.sink = sink
        self.companion = MemoryCompanion(patience=patience, wake=self.stop.waker.wake)
        position = Position(START, 1, 1, "d", "s")
        self.checkpointer = Checkpointer(
            StartPoint(position, **confirming),
            self.positions,
            source,
            self.stop.waker.wake,
            StoredBeside(reach=self.reach),
        )
        self.pipeline = Pipeline(source, [sink], self.companion, self.checkpointer)
        self.limit = NEVER
        self.drained: bool | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.drained = self.pipeline.run(self.stop, self.limit)
        except Exception as error:  # noqa: BLE001 - shown by who waits
            self.error = error

    def start(self) -> None:
        self._thread.start()

    def until(self, predicate: Callable[[], object], what: str) -> None:
        wait_until(lambda: predicate() or not self._thread.is_alive(), 10, what)
        assert predicate(), f"{what}: {self.error!r}"

    def finish(self) -> bool | None:
        self.stop.request()
        self._thread.join()
        self.checkpointer.close()
        self.source.close()
        return self.drained

    @property
    def confirmed(self) -> list[int]:
        return self.source.confirmed


@contextmanager
def running(
    frames: Iterable[bytes], sink: MemorySink | None = None, **parts: Any
) -> Iterator[Running]:
    """Stream these frames, and drain at the end unless it ended by an error."""
    live = Running(MemorySource(frames), sink or MemorySink(), **parts)
    live.start()
    try:
        yield live
    finally:
        live.finish()


def on_command() -> MemorySink:
    return MemorySink(delivery=Delivery.ON_COMMAND)


def test_held_delivery_stops_confirmation() -> None:
    sink = on_command()
    with running([*rows(2000, "1", "2"), keepalive(9000)], sink) as live:
        live.until(lambda: sink.in_flight == 2, "both are sent")
        sink.deliver(0)
        live.until(lambda: live.source.unread == 0, "all is read")
        assert live.confirmed == [START]
        assert live.positions.stored == []
        sink.deliver(0)
        live.until(lambda: live.confirmed[-1] == 2048, "the transaction is confirmed")
        assert [stored.resume for stored in live.positions.stored] == [2048]


def test_nothing_is_confirmed_before_it_is_stored() -> None:
    hold = HoldResponse()
    positions = MemoryStore()
    with running(rows(2000, "1"), positions=faulty(positions, store=[hold])) as live:
        assert hold.done.wait(10)
        assert live.confirmed == [START]
        hold.released.set()
        live.until(lambda: live.confirmed == [START, 2048], "it is confirmed")


def test_a_commit_is_given_when_it_is_on_disk_that_it_may_have_been() -> None:
    hold, full = HoldResponse(), Reject(Transient("disk full"))
    positions = faulty(MemoryStore(), store=[full, hold])
    frames = [*rows(2000, "1"), *rows(3000, "2")]
    with running(frames, positions=positions, reach=Reach(None, 1)) as live:
        assert hold.done.wait(10)
        sent = list(live.sink.sent)
        hold.released.set()
        assert sent == []
        live.until(lambda: live.confirmed[-1] == 3048, "both are given")
        assert live.reach.exact() == Given(1, 3000, 3001)


def test_position_found_in_the_state_is_confirmed_again() -> None:
    with running([]) as live:
        live.until(lambda: live.confirmed == [START], "the slot hears of it")


@pytest.mark.parametrize("fault", [Reject, FailAfterWrite])
def test_failed_write_is_tried_again_and_confirms_nothing_meanwhile(
    fault: Callable[[Exception], Any],
) -> None:
    positions = MemoryStore()
    scripted = faulty(positions, store=[fault(Transient("disk full"))])
    with running(rows(2000, "1"), positions=scripted) as live:
        live.until(lambda: live.checkpointer.error is not None, "it failed")
        assert live.confirmed == [START]
        live.until(lambda: live.confirmed == [START, 2048], "it is stored after all")


def test_damaged_state_ends_the_stream() -> None:
    scripted = faulty(MemoryStore(), store=[Reject(StateDamaged("broken"))])
    with running(rows(2000, "1"), positions=scripted) as live:
        live.until(lambda: live.error is not None, "it ends")
    assert isinstance(live.error, StateDamaged)
    assert live.confirmed == [START]


def test_failed_delivery_ends_the_stream_unconfirmed() -> None:
    sink = on_command()
    with running(rows(2000, "1"), sink) as live:
        live.until(lambda: sink.in_flight == 1, "it is sent")
        sink.fail(Transient("lost"))
        live.until(lambda: live.error is not None, "it ends")
    assert live.confirmed == [START]


def test_sink_without_room_pauses_reading() -> None:
    sink = on_command()
    sink.refuse()
    with running(rows(2000, "1"), sink) as live:
        live.until(lambda: live.companion.pauses > 1, "it is paused")
        live.until(lambda: live.source.paused > 1, "the source hears of it")
        assert live.source.unread > 0
        assert sink.sent == []
        sink.release()
        live.until(lambda: len(sink.sent) == 1, "it goes on")
        sink.deliver_all()


def test_idle_keepalive_is_stored_and_confirmed() -> None:
    with running([keepalive(5000)]) as live:
        live.until(lambda: live.confirmed == [START, 5000], "it moves the position")
        assert [stored.resume for stored in live.positions.stored] == [5000]


def test_keepalive_within_a_transaction_confirms_nothing() -> None:
    whole = rows(2000, "1")
    with running([*whole[:2], keepalive(5000)]) as live:
        live.until(lambda: live.source.unread == 0, "all is read")
        live.source.feed(*whole[2:])
        live.until(lambda: live.confirmed[-1] == 2048, "its commit counts")
    assert 5000 not in live.confirmed


def test_wish_for_a_reply_is_answered_at_once() -> None:
    with running([keepalive(START, reply=True)]) as live:
        live.until(lambda: live.source.status_updates == 1, "it is answered")


class SeenStop(Stop):
    """A stop that tells whether the loop has seen it."""

    seen = False

    @property
    def requested(self) -> bool:
        self.seen = super().requested
        return self.seen


def test_drain_reads_the_open_transaction_to_its_end() -> None:
    whole = rows(2000, "1", "2")
    sink = MemorySink()
    live = Running(MemorySource(whole[:3]), sink)
    live.stop = stop = SeenStop(Waker(), 10.0)
    live.start()
    live.until(lambda: len(sink.sent) == 1, "it is open")
    stop.request()
    live.until(lambda: stop.seen, "it drains")
    live.source.feed(*whole[3:], *rows(3000, "3"))
    assert live.finish()
    assert [record.key for record in sink.sent] == [b'["1"]', b'["2"]']
    assert live.confirmed[-1] == live.positions.stored[-1].resume == 2048


def test_drain_that_its_deadline_cuts_short_says_so() -> None:
    sink = on_command()
    live = Running(MemorySource(rows(2000, "1")), sink)
    live.stop = Stop(Waker(), 0.2)
    live.start()
    live.until(lambda: sink.in_flight == 1, "it is sent")
    assert live.finish() is False
    assert live.pipeline.fanout.undelivered == 1
    assert live.confirmed == [START]


def test_drain_of_an_idle_stream_ends_at_once() -> None:
    with running([]) as live:
        live.until(lambda: live.confirmed, "it runs")
    assert live.drained


def up_to(limit: int, *frames: bytes) -> Running:
    live = Running(MemorySource(frames), MemorySink())
    live.limit = limit
    live.start()
    return live


def test_a_limit_ends_it_before_the_first_transaction_that_reaches_it() -> None:
    live = up_to(3000, *rows(2000, "1"), *rows(3000, "2"), *rows(4000, "3"))
    live.until(lambda: live.drained, "it ends by itself")
    assert live.pipeline.reached
    assert [record.key for record in live.sink.sent] == [b'["1"]']
    assert live.positions.stored[-1].resume == live.confirmed[-1] == 2048
    live.finish()


def test_a_limit_is_reached_by_a_keepalive_too() -> None:
    live = up_to(3000, *rows(2000, "1"), keepalive(2999), keepalive(3000))
    live.until(lambda: live.drained, "it ends by itself")
    assert live.pipeline.reached
    live.finish()


def test_a_stop_below_the_limit_does_not_reach_it() -> None:
    live = up_to(3000, *rows(2000, "1"), keepalive(2999))
    live.until(lambda: len(live.confirmed) > 1, "the row is confirmed")
    assert live.finish()
    assert not live.pipeline.reached


class LateCheckpointer(Checkpointer):
    """Is found busy for the last time in the moment in which it is done."""

    _late: Position | None = None
    _looks = 0

    @property
    def busy(self) -> bool:
        late = self._late
        self._looks += 1
        if late is not None and self._looks > 1:
            self._positions.store(late)
            self._stored, self._late = late.resume, None
        return late is not None

    def _hand_over(self, position: Position) -> None:
        self._late, self._looks = position, 0


def test_drain_never_ends_between_two_writes() -> None:
    positions = MemoryStore()
    stop = Stop(Waker(), 10.0)
    with MemorySource(rows(2000, "1")) as source:

        def read_on(sink: MemorySink) -> None:
            if sink.delivered and not stop.requested:
                source.feed(*rows(3000, "2"))
                stop.request()

        sink = MemorySink(on_ready=read_on)
        position = Position(START, 1, 1, "d", "s")
        late = LateCheckpointer(StartPoint(position), positions, source, lambda: None)
        assert Pipeline(source, [sink], MemoryCompanion(), late).run(stop)
        assert sink.sent[-1].lsn == 3000
        assert source.confirmed[-1] == positions.stored[-1].resume == 3048
        late.close()


def test_retained_wal_stays_behind_the_position() -> None:
    with running(rows(2000, "1"), retain_bytes=100) as live:
        live.until(lambda: live.confirmed[-1:] == [1948], "it is confirmed, less 100")
    assert live.confirmed == [900, 1948]


def test_retained_wal_never_reaches_below_the_slots_start() -> None:
    with running(rows(2000, "1"), retain_bytes=10_000, slot_start=500) as live:
        live.until(lambda: live.positions.stored, "it is stored")
    assert live.drained
    assert live.confirmed == []


def test_messages_without_rows_move_nothing_but_the_position() -> None:
    messages: list[Message] = [
        Origin(1, "up"),
        Type(9, "public", "mood"),
        LogicalMessage(True, 1, "p", b"c"),
    ]
    sink = MemorySink()
    with running(transaction(2000, *messages, TABLE, insert("1")), sink) as live:
        live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    assert [record.name for record in sink.sent] == [(2000, 0)]


def test_message_outside_of_a_transaction_is_let_pass() -> None:
    alone = wal_data(encode(LogicalMessage(False, 1500, "p", b"")), 1500)
    with running([alone, *rows(2000, "1")]) as live:
        live.until(lambda: live.confirmed[-1] == 2048, "it goes on")


def test_keys_that_are_looked_up_hold_the_stream_not_the_loop() -> None:
    sink = MemorySink()
    with running([*rows(2000, "1"), *rows(3000, "2")], sink, patience=3) as live:
        live.until(lambda: live.confirmed[-1] == 3048, "it is confirmed")
    assert [record.name for record in sink.sent] == [(2000, 0), (3000, 0)]


def test_toast_that_a_key_change_would_lose_is_filled_in_order() -> None:
    moved = Update(1, ["1", None], False, ["2", UNCHANGED], toasted=True)
    frames = transaction(2000, TABLE, insert("1"), moved, insert("3"))
    sink = MemorySink()
    with running(frames, sink, patience=2) as live:
        live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    assert [record.name for record in sink.sent] == [(2000, n) for n in range(4)]
    assert b'"op":{"Insert":["2","read"]}' in sink.sent[2].value
    assert b"absent" not in sink.sent[2].value
    assert [op.kind for op in live.companion.completed] == [Kind.UPDATE]


def test_truncate_waits_for_room_between_two_tables() -> None:
    others = [Relation(oid, "public", f"t{oid}", "d", TABLE.columns) for oid in (2, 3)]
    frames = transaction(2000, TABLE, *others, Truncate(0, (1, 2, 3)), insert("1"))
    sink = MemorySink(
        delivery=Delivery.ON_COMMAND, limit=1, on_ready=MemorySink.deliver_all
    )
    with running(frames, sink) as live:
        live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    assert [record.topic for record in sink.sent] == [
        "public.t",
        "public.t2",
        "public.t3",
        "public.t",
    ]
    assert [record.name for record in sink.sent] == [(2000, n) for n in range(4)]


@pytest.mark.parametrize("sent", [slice(1, 3), slice(-1, None)])
def test_row_or_commit_outside_of_a_transaction_is_an_error(sent: slice) -> None:
    with running(rows(2000, "1")[sent]) as live:
        live.until(lambda: live.error is not None, "it ends")
    assert "outside of a transaction" in str(live.error)


def test_error_of_the_companion_ends_the_stream() -> None:
    lost = Transient("the publication is gone")
    with running([]) as live:
        live.companion.error = lost
        live.until(lambda: live.error is lost, "it ends")


def test_ended_stream_confirms_nothing_more() -> None:
    ended = Transient("the server ended the stream")
    source = MemorySource(rows(2000, "1"), ending=ended)
    sink = on_command()
    live = Running(source, sink)
    live.start()
    live.until(lambda: live.error is ended, "it ends")
    sink.deliver_all()
    live.finish()
    assert live.confirmed == [START]


def test_two_sinks_move_together() -> None:
    fast, slow = MemorySink(), on_command()
    live = Running(MemorySource(rows(2000, "1")), fast)
    live.pipeline = Pipeline(
        live.source, [fast, slow], live.companion, live.checkpointer
    )
    live.start()
    live.until(lambda: slow.in_flight == 1 and fast.delivered, "both have it")
    assert live.confirmed == [START]
    slow.deliver_all()
    live.until(lambda: live.confirmed == [START, 2048], "both delivered it")
    live.finish()


class OldRows:
    """Rows that may go in from a place on, and what is heard meanwhile."""

    def __init__(self, place: int, *keys: str) -> None:
        self._place = place
        self._keys = list(keys)
        self.heard: list[str] = []
        self.places: list[int] = []

    def note(self, op: ReplicationOp) -> None:
        self.heard.append(str((op.new or [""])[0]))

    def pending(self, most: int) -> list[str]:
        return ["public.t"][:most] if self._keys else []

    def rows(self, place: int, known: Callable[[Table], bool]) -> list[ReplicationOp]:
        self.places.append(place)
        if place < self._place:
            return []
        table = Table("public", "t", ("id", "v"), key=(0,))
        keys, self._keys = self._keys, []
        assert known(table)
        return [
            ReplicationOp(
                Kind.INSERT, table, place - 1, index, new=[key, "x"], snapshot=True
            )
            for index, key in enumerate(keys)
        ]

    def sent(self, transaction: Shares) -> None:
        self.heard.append(f"sent at {transaction.end_lsn}")

    def refused(self, error: WalstreamError) -> None:
        raise error


def test_old_rows_come_in_between_transactions_and_every_op_is_heard() -> None:
    sink = MemorySink()
    frames = [*rows(1000, "1", "2"), *rows(1100, "3"), *rows(1200, "4")]
    live = Running(MemorySource(frames), sink)
    beside = OldRows(1100, "7", "8")
    live.pipeline.let_in(lambda: beside)
    live.start()
    live.until(lambda: len(sink.delivered) == 6, "all is delivered")
    assert live.finish()
    # once a turn: the first asks where the stream begins, the next behind all
    assert [record.lsn for record in sink.delivered] == [
        *(1000, 1000, 1100, 1200),
        *(1247, 1247),
    ]
    assert beside.heard == ["1", "2", "3", "4", "sent at 1248"]
    assert beside.places[0] == START
    assert live.confirmed[-1] == 1248


def test_a_limit_waits_for_old_rows_behind_it() -> None:
    """Their chunk was read when the stream was not yet as far as the limit is."""
    live = Running(
        MemorySource([*rows(1000, "1"), *rows(1100, "2"), keepalive(1200)]),
        MemorySink(),
    )
    live.limit = 1100
    live.pipeline.let_in(lambda: OldRows(1200, "7"))
    live.start()
    live.until(lambda: live.drained, "it ends by itself")
    assert live.pipeline.reached
    assert [record.key for record in live.sink.delivered] == [
        b'["1"]',
        b'["2"]',
        b'["7"]',
    ]
    live.finish()


def test_old_rows_wait_for_the_end_of_an_open_transaction() -> None:
    sink = MemorySink(delivery=Delivery.ON_COMMAND, limit=1, on_ready=_deliver_all)
    frames = [*rows(1000, "1"), *rows(1100, "2", "3")]
    live = Running(MemorySource(frames, batches=[3, 1, 1, 1, 1, 1, 1, 1]), sink)
    live.pipeline.let_in(lambda: OldRows(1000, "7", "8"))
    live.start()
    live.until(lambda: len(sink.delivered) == 5, "all is delivered")
    assert live.finish()
    found = [record.lsn for record in sink.delivered]
    first = next(index for index, lsn in enumerate(found) if lsn not in {1000, 1100})
    assert found[first] == found[first + 1]  # the old rows stand together
    assert found[:first] in ([], [1000], [1000, 1100, 1100])


def _deliver_all(sink: MemorySink) -> None:
    sink.deliver_all()


class Watched(MemorySource):
    """Counts how often its connection was kept alive."""

    kept = 0

    def keep_alive(self, *, now: bool = False) -> None:
        self.kept += 1
        super().keep_alive(now=now)


def test_a_drain_goes_on_serving_sinks_and_server() -> None:
    """Its last deliveries may take long."""
    seen: list[tuple[float, ...]] = []

    def deliver_late(sink: MemorySink) -> None:
        if live.stop.requested:
            counts = (live.companion.pauses, source.paused, source.kept)
            seen.append((*counts, live.pipeline.turned_at))
            if len(seen) > 5:
                sink.deliver_all()

    source = Watched(rows(2000, "1"))
    live = Running(
        source, MemorySink(delivery=Delivery.ON_COMMAND, on_ready=deliver_late)
    )
    live.start()
    live.until(lambda: live.sink.in_flight == 1, "it is sent")
    assert live.finish()
    assert live.confirmed[-1] == 2048
    pairs = zip(seen[1], seen[-1], strict=True)
    assert all(before < after for before, after in pairs)


def test_a_drain_waits_for_no_rows_beside_the_stream() -> None:
    """They are read again at the next start."""

    def deliver_late(sink: MemorySink) -> None:
        if live.stop.requested:
            sink.deliver_all()

    sink = MemorySink(delivery=Delivery.ON_COMMAND, limit=1, on_ready=deliver_late)
    live = Running(MemorySource([]), sink)
    beside = OldRows(START, "7", "8", "9")
    live.pipeline.let_in(lambda: beside)
    live.start()
    live.until(lambda: sink.in_flight == 1, "one is sent")
    assert live.finish()
    assert len(sink.sent) == 1
    assert beside.heard == []


class Seen(MemorySink):
    """Keeps the ops that it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[ReplicationOp] = []

    def send(self, op: ReplicationOp, transaction: Any) -> bool:
        self.ops.append(op)
        return super().send(op, transaction)


def timed(*messages: Message) -> list[bytes]:
    """Frame a transaction of 2000, each message behind the one before it."""
    whole = [Begin(2000, 99, 7), *messages, Commit(0, 2000, 2048, 99)]
    return [wal_data(encode(one), 1900 + at) for at, one in enumerate(whole)]


def test_an_op_knows_its_transaction_and_its_own_place() -> None:
    sink = Seen()
    with running(timed(TABLE, insert("1"), Truncate(0, (1,))), sink) as live:
        live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    assert [op.row_lsn for op in sink.ops] == [1902, 1903]
    assert {(op.lsn, op.xid, op.commit_time) for op in sink.ops} == {(2000, 7, 99)}


def test_a_type_that_is_described_is_written_as_what_it_is() -> None:
    mood = Column(False, "mood", 99_999, -1)
    table = Relation(1, "public", "t", "d", [TABLE.columns[0], mood])
    named = Type(99_999, "public", "_mood")
    sink = Seen()
    with running(transaction(2000, named, table, insert("1")), sink) as live:
        live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    assert [op.table.type_oids for op in sink.ops] == [(20, ARRAY)]


def test_ops_and_the_time_of_their_transactions_are_counted() -> None:
    meter = Meter()
    live = Running(
        MemorySource([*rows(2000, "1", "2"), *rows(3000, "3"), *transaction(4000)]),
        MemorySink(),
    )
    live.pipeline.measure(meter)
    live.start()
    live.until(lambda: live.confirmed[-1] == 4048, "all is confirmed")
    open_one = rows(5000, "4", "5")
    live.source.feed(*open_one[:3])
    live.until(lambda: live.pipeline.ops_read == 4, "the open one counts")
    live.source.feed(*open_one[3:])
    live.until(lambda: live.confirmed[-1] == 5048, "it is confirmed")
    assert live.finish()
    assert live.pipeline.ops_read == 5
    counted = meter.tables.of("public.t").seconds.report()
    assert sum(counted.counts) == 3
    assert 0 <= counted.sum < 60


def test_the_time_of_each_transaction_is_noted_before_its_rows() -> None:
    live = Running(MemorySource(timed(TABLE, insert("1"))), MemorySink())
    noted: list[tuple[int, int, int]] = []
    live.checkpointer.note = (  # type: ignore[method-assign]  # heard
        lambda lsn, commit_time: noted.append((lsn, commit_time, len(live.sink.sent)))
    )
    live.start()
    live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    assert live.finish()
    assert noted == [(2000, 99, 0)]


def test_a_value_that_did_not_change_is_left_out_where_no_key_changed() -> None:
    same = Update(1, None, False, ["1", UNCHANGED], toasted=True)
    sink = MemorySink()
    with running(transaction(2000, TABLE, same), sink) as live:
        live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    assert b'"absent":{"new":["v"]}' in sink.sent[0].value
    assert live.companion.completed == []


class LettingWait(MemorySink):
    """Sink whose records wait until it is flushed."""

    def __init__(self) -> None:
        super().__init__(delivery=Delivery.ON_COMMAND)
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1
        self.deliver_all()


def test_a_sink_is_flushed_where_the_source_has_no_more() -> None:
    sink, source = LettingWait(), MemorySource()
    source.drained = True
    live = Running(source, sink)
    live.start()
    try:
        source.feed(*rows(2000, "1"))
        live.until(lambda: live.confirmed[-1:] == [2048], "it is delivered")
        assert sink.flushes
    finally:
        live.finish()


def test_the_stream_does_not_rest_where_rows_of_before_may_go_in() -> None:
    """The keepalive that lets them in is read behind where they were asked for."""
    events: list[object] = []

    class Poll:
        def __init__(self) -> None:
            self._real = select.poll()
            self.register = self._real.register

        def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
            events.append("rest")
            return self._real.poll(timeout_ms)

    class Asked(OldRows):
        def rows(
            self, place: int, known: Callable[[Table], bool]
        ) -> list[ReplicationOp]:
            events.append(place)
            return super().rows(place, known)

    sink, source = MemorySink(), MemorySource()
    source.drained = True
    with altered(poller=Poll):
        live = Running(source, sink)
    live.pipeline.let_in(lambda: Asked(1100, "7"))
    live.start()
    live.until(lambda: "rest" in events, "it rests")
    source.feed(keepalive(1200))
    live.until(lambda: len(sink.delivered) == 1, "the row is there")
    assert live.finish()
    assert events[events.index(1200) - 1] != "rest"


def test_what_a_flush_raises_ends_the_stream() -> None:
    class Failing(LettingWait):
        def flush(self) -> None:
            raise Transient("it is away")

    source = MemorySource(rows(2000, "1"))
    source.drained = True
    live = Running(source, Failing())
    live.start()
    live.until(lambda: live.error is not None, "it ends")
    assert "it is away" in str(live.error)
    live.finish()

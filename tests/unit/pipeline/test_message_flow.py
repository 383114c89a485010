"""Logical messages in the loop: counted in their transaction, or alone."""

from tests.unit.pipeline.test_loop import START, TABLE, Running, insert, rows, up_to
from walstream.op import MessageOp, ReplicationOp
from walstream.pipeline.fanout import Fanout
from walstream.pipeline.ledger import NO_ORIGIN, Transaction
from walstream.pipeline.message_flow import MessageFlow
from walstream.pipeline.pgoutput import LogicalMessage, Origin
from walstream.telemetry import runtime
from walstream.testing import MemorySink, MemorySource, encode, transaction, wal_data


class Hearing(MemorySink):
    """Takes messages, and remembers what it was told; delivers on command."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[MessageOp | str] = []
        self.origins: list[tuple[str, int]] = []
        self.open: list[Transaction] = []

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        self.told.append(op.table.full_name)
        self.origins.append(transaction.origin)
        return super().send(op, transaction)

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        transaction.undelivered += 1
        self.told.append(message)
        self.open.append(transaction)
        return self._has_room

    def deliver_message(self) -> None:
        self.open.pop(0).undelivered -= 1


def within(lsn: int, prefix: str = "p", content: bytes = b"c") -> LogicalMessage:
    return LogicalMessage(True, lsn, prefix, content)


def alone(lsn: int, prefix: str = "p", content: bytes = b"c") -> bytes:
    return wal_data(encode(LogicalMessage(False, lsn, prefix, content)), lsn)


def started(*frames: bytes) -> tuple[Running, Hearing]:
    sink = Hearing()
    live = Running(MemorySource(frames), sink)
    live.start()
    return live, sink


def test_one_in_a_transaction_keeps_its_place_and_holds_the_position() -> None:
    frames = transaction(2000, TABLE, insert("1"), within(1900), insert("2"), xid=7)
    live, sink = started(*frames)
    live.until(lambda: live.source.unread == 0 and len(sink.told) == 3, "it is sent")
    assert sink.told == [
        "public.t",
        MessageOp("p", b"c", 2000, 1900, 7, 0),
        "public.t",
    ]
    assert [record.seq_id for record in sink.sent] == [0, 1]
    assert live.confirmed == [START]
    sink.deliver_message()
    live.until(lambda: live.confirmed[-1] == 2048, "it is confirmed")
    live.finish()


def test_one_outside_of_a_transaction_is_delivered_before_the_position_passes() -> None:
    live, sink = started(*rows(2000, "1"), alone(3000))
    live.until(lambda: len(sink.told) == 2, "it is sent")
    live.until(lambda: live.confirmed[-1] == 2048, "what is before it is confirmed")
    message = sink.told[1]
    assert isinstance(message, MessageOp)
    assert (message.lsn, message.row_lsn, message.xid) == (3000, 3000, None)
    assert message.commit_time > 0
    sink.deliver_message()
    live.until(lambda: live.confirmed[-1] == 3001, "the message is confirmed")
    live.finish()


def test_without_room_the_next_frame_waits() -> None:
    sink = Hearing()
    sink.refuse()
    live = Running(MemorySource([alone(3000), alone(3100)]), sink)
    live.start()
    live.until(lambda: live.companion.pauses > 1, "it is paused")
    assert sink.told == []
    sink.release()
    live.until(lambda: len(sink.told) == 2, "both are sent")
    sink.deliver_message()
    sink.deliver_message()
    live.finish()


def test_a_limit_ends_the_stream_before_one_that_reaches_it() -> None:
    live = up_to(3000, *rows(2000, "1"), alone(3000))
    live.until(lambda: live.drained, "it ends by itself")
    assert live.pipeline.reached
    assert live.confirmed[-1] == 2048
    live.finish()


def test_an_origin_is_of_its_transaction_alone() -> None:
    replicated = transaction(2000, Origin(77, "east"), TABLE, insert("1"))
    live, sink = started(*replicated, *rows(3000, "2"))
    live.until(lambda: live.confirmed[-1] == 3048, "all is confirmed")
    assert sink.origins == [("east", 77), NO_ORIGIN]
    live.finish()


def test_room_is_what_the_sinks_said_last() -> None:
    sink = Hearing()
    messages = MessageFlow(Fanout([sink], START, runtime.monotonic))
    assert messages.alone(LogicalMessage(False, 3000, "p", b"")) == 3001
    assert messages.room
    sink.refuse()
    messages.alone(LogicalMessage(False, 3100, "p", b""))
    assert not messages.room


def test_a_listener_hears_of_each_before_the_sinks() -> None:
    heard: list[tuple[str, bytes]] = []
    frames = transaction(2000, TABLE, within(1900, "a"), xid=7)
    sink = Hearing()
    live = Running(MemorySource([*frames, alone(2500, "b", b"x")]), sink)
    live.pipeline.messages.listener = lambda *message: heard.append(message)
    live.start()
    live.until(lambda: len(heard) == 2, "both are heard of")
    assert heard == [("a", b"c"), ("b", b"x")]
    for _ in heard:
        sink.deliver_message()
    assert live.finish()

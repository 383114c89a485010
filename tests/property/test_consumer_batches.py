"""Batches of the basic consumer: what one by one does, whatever fails on the way."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from confluent_kafka import Message

from consumer.basic import BasicOptions, BasicWork
from consumer.decoder import Decoder
from consumer.errors import HandlerFailed, PoisonRecord
from consumer.group.assigned_partition import AssignedPartition, Pause, Place
from consumer.group.buffer import Budget
from consumer.group.event_loop import EventLoop
from consumer.handler import Retry
from consumer.metrics import Measure
from consumer.op import Op
from consumer.state.topic_guard import TopicGuard
from tests.support.loads.op_record import insert, truncate
from walstream.formats.op import OpEncoder
from walstream.op import Kind


class FetchedRecord:
    """What of a message is read."""

    def __init__(self, offset: int, value: bytes | None) -> None:
        self._offset, self._value = offset, value

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return None

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


class Trace:
    """An application that fails where it is told to, before it does anything."""

    def __init__(self, fatal: set[int], retried: dict[int, int]) -> None:
        self._fatal, self._left = fatal, dict(retried)
        self.handled: list[int] = []
        self.sizes: list[int] = []
        self.shared: set[Kind] = set()  # that were not alone

    def handle_batch(self, ops: Sequence[Op]) -> None:
        if len(ops) > 1:
            self.shared |= {op.kind for op in ops}
        for op in ops:
            offset = op.record.offset
            if self._left.get(offset, 0):
                self._left[offset] -= 1
                raise Retry
            if offset in self._fatal:
                raise ValueError
        self.handled += [op.record.offset for op in ops]
        self.sizes.append(len(ops))


Outcome = tuple[list[int], int | None, type[Exception] | None, int]


def outcome(app: Trace, records: list[FetchedRecord], *, batch: int | None) -> Outcome:
    """Run to the end: what was handled, the offset reached, the error and where."""
    measures: list[tuple[Measure, float]] = []
    lane = AssignedPartition(Place("t", 0), lambda: None, Budget())
    lane.stored = 0
    options = BasicOptions(
        decode=Decoder().op_of,
        handler=lambda op: app.handle_batch((op,)),
        on_poison="stop",
        metrics=lambda measure, value, *_: measures.append((measure, value)),
        guard=cast("TopicGuard", None),
        batch_handler=None if batch is None else app.handle_batch,
        batch=batch or 1,
        linger_s=0,
        result_of=lambda result: result,
    )
    work, left = BasicWork(lane, options), cast("list[Message]", records)
    error: HandlerFailed | PoisonRecord | None = None
    while left and error is None:
        try:
            left = left[work.handle(left[: work.wanted]) :]
        except Pause as pause:
            left = left[pause.done :]
        except (HandlerFailed, PoisonRecord) as found:
            error = found
    handled = sum(value for what, value in measures if what is Measure.HANDLED)
    if error is None:
        assert handled == len(app.handled)
        return app.handled, lane.handled, None, -1
    return app.handled, lane.handled, type(error), error.offset


OFFSETS = st.integers(0, 30)


@given(
    kinds=st.lists(st.sampled_from("iiiiitnp"), max_size=30),
    batch=st.integers(1, 12),
    fatal=st.sets(OFFSETS, max_size=2),
    retried=st.dictionaries(OFFSETS, st.integers(1, 6), max_size=4),
)
@example(kinds=["n", "i"], batch=2, fatal={1}, retried={})
def test_batches_do_what_one_by_one_does(
    kinds: list[str], batch: int, fatal: set[int], retried: dict[int, int]
) -> None:
    values = {
        "i": OpEncoder(insert(1, 0, ["1", "1"]).table).encode(insert(1, 0, ["1", "1"])),
        "t": OpEncoder(truncate(1, 1).table).encode(truncate(1, 1)),
        "n": None,
        "p": b"no op",
    }
    records = [FetchedRecord(at, values[kind]) for at, kind in enumerate(kinds)]
    whole, single = Trace(fatal, retried), Trace(fatal, retried)
    at_once = outcome(whole, records, batch=batch)
    assert at_once == outcome(single, records, batch=None)
    assert max(whole.sizes, default=0) <= batch
    assert Kind.TRUNCATE not in whole.shared


def test_what_does_not_fail_comes_in_full_batches() -> None:
    value = OpEncoder(insert(1, 0, ["1", "1"]).table).encode(insert(1, 0, ["1", "1"]))
    app = Trace({20}, {})
    outcome(app, [FetchedRecord(at, value) for at in range(25)], batch=8)
    assert app.sizes == [8, 8, 4]
    assert app.handled == list(range(20))


def test_a_batch_is_not_the_handlers_to_change() -> None:
    value = OpEncoder(insert(1, 0, ["1", "1"]).table).encode(insert(1, 0, ["1", "1"]))

    class Taker(Trace):
        def handle_batch(self, ops: Sequence[Op]) -> None:
            assert isinstance(ops, tuple)  # a list was ours: what it lost was skipped
            super().handle_batch(ops)

    app = Taker({4}, {2: 1})
    records = [FetchedRecord(at, value) for at in range(6)]
    assert outcome(app, records, batch=3)[1:] == (4, HandlerFailed, 4)


def test_a_cancelled_batch_stops_and_is_not_called_again() -> None:
    value = OpEncoder(insert(1, 0, ["1", "1"]).table).encode(insert(1, 0, ["1", "1"]))
    calls: list[int] = []

    async def handle_batch(ops: Sequence[Op]) -> None:
        calls.append(len(ops))
        raise asyncio.CancelledError

    loop = EventLoop()
    lane = AssignedPartition(Place("t", 0), lambda: None, Budget())
    options = BasicOptions(
        decode=Decoder().op_of,
        handler=lambda op: handle_batch([op]),
        on_poison="stop",
        metrics=lambda *_: None,
        guard=cast("TopicGuard", None),
        batch_handler=handle_batch,
        batch=8,
        linger_s=0,
        result_of=loop.result_of,
    )
    records = [FetchedRecord(at, value) for at in range(8)]
    with pytest.raises(HandlerFailed, match="CancelledError"):
        BasicWork(lane, options).handle(cast("list[Message]", records))
    loop.close()
    assert calls == [8]
    assert lane.handled is None

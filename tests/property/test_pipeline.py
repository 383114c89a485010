"""The whole core on drawn streams: how it is cut and held up changes nothing.

Neither the frames' batches nor back pressure nor the order of deliveries moves a
record, a name or the final position, and nothing is ever confirmed before it is stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.strategies import Stream, streams
from walstream.pipeline.checkpoint import Checkpointer, StartPoint
from walstream.pipeline.ledger import Ledger
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Truncate,
    Update,
    decode,
)
from walstream.pipeline.ports import Position
from walstream.pipeline.row_key import KeyHistory, KeySet
from walstream.pipeline.shutdown import Stop, Waker
from walstream.testing import (
    Delivery,
    MemoryCompanion,
    MemorySink,
    MemorySource,
    MemoryStore,
    SinkRecord,
)

WAKER: Final = Waker()  # one for all: it is never closed
PARTITIONS: Final = 3


@dataclass
class Conditions:
    """What the outside does meanwhile."""

    batches: list[int] = field(default_factory=list)
    limit: int | None = None
    patience: int = 0
    partitions_first: list[int] = field(default_factory=list)  # the next to deliver


@dataclass
class Outcome:
    records: list[SinkRecord]
    resume: int
    confirmed: list[int]
    stored: list[int]
    drained: bool


conditions: Final = st.builds(
    Conditions,
    batches=st.lists(st.integers(0, 7), max_size=30),
    limit=st.none() | st.integers(1, 5),
    patience=st.integers(0, 2),
    partitions_first=st.lists(st.integers(0, PARTITIONS - 1), max_size=30),
)


def run(stream: Stream, outside: Conditions, resume: int | None = None) -> Outcome:
    """Stream from `resume` to the end, then drain."""
    resume = stream.start if resume is None else resume
    position = Position(resume, 1, 1, "d", "s")
    positions = MemoryStore()
    positions.store(position)
    stop = Stop(WAKER, 10.0)
    turns = iter(outside.partitions_first)

    def deliver_some(sink: MemorySink) -> None:
        """Deliver one record of the partition whose turn it is; at last all."""
        turn = next(turns, None)
        if turn is None:
            sink.deliver_all()
        elif turn in sink.waiting:
            sink.deliver(turn)

    sink = MemorySink(
        partitions=PARTITIONS,
        delivery=Delivery.ON_COMMAND,
        limit=outside.limit,
        on_ready=deliver_some,
    )
    with MemorySource(
        stream.frames(resume), batches=outside.batches, on_exhausted=stop.request
    ) as source:
        start = StartPoint(position)
        checkpointer = Checkpointer(start, positions, source, WAKER.wake)
        companion = MemoryCompanion(
            {"s.f": KeyHistory([KeySet(0, ("id",))])},
            patience=outside.patience,
            wake=WAKER.wake,
        )
        pipeline = Pipeline(source, [sink], companion, checkpointer)
        try:
            drained = pipeline.run(stop)
        finally:
            checkpointer.close()
    stored = [one.resume for one in positions.stored]
    return Outcome(sink.sent, pipeline.confirmed, source.confirmed, stored, drained)


def by_partition(records: list[SinkRecord]) -> dict[int, list[SinkRecord]]:
    return {
        partition: [one for one in records if one.partition == partition]
        for partition in range(PARTITIONS)
    }


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(streams(), conditions)
def test_batches_and_back_pressure_change_no_output(
    stream: Stream, outside: Conditions
) -> None:
    plain = run(stream, Conditions())
    hindered = run(stream, outside)
    assert by_partition(hindered.records) == by_partition(plain.records)
    assert hindered.resume == plain.resume == (stream.ends or [stream.start])[-1]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(streams(), conditions)
def test_nothing_is_confirmed_before_it_is_stored(
    stream: Stream, outside: Conditions
) -> None:
    outcome = run(stream, outside)
    assert set(outcome.confirmed) <= set(outcome.stored)
    assert outcome.confirmed == sorted(set(outcome.confirmed))
    assert set(outcome.stored) <= {stream.start, *stream.ends}


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(streams(), conditions)
def test_drain_stores_and_confirms_all_that_was_delivered(
    stream: Stream, outside: Conditions
) -> None:
    outcome = run(stream, outside)
    end = (stream.ends or [stream.start])[-1]
    assert outcome.drained
    assert outcome.stored[-1] == outcome.confirmed[-1] == end


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(streams(), conditions, st.data())
def test_replay_from_any_stored_position_repeats_the_same_names(
    stream: Stream, outside: Conditions, data: st.DataObject
) -> None:
    first = run(stream, Conditions())
    resume = data.draw(st.sampled_from([stream.start, *stream.ends]))
    again = run(stream, outside, resume)
    rest = [record for record in first.records if record.lsn >= resume]
    assert by_partition(again.records) == by_partition(rest)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(streams())
def test_names_are_unique_and_grow_as_the_server_sends_them(stream: Stream) -> None:
    names = [record.name for record in run(stream, Conditions()).records]
    once = list(dict.fromkeys(names))  # a Truncate goes to every partition
    assert once == sorted(set(names))
    expected = {
        (lsn, number) for lsn, count in counted(stream) for number in range(count)
    }
    assert set(names) == expected


def counted(stream: Stream) -> Iterator[tuple[int, int]]:
    """Count a transaction's numbers from its messages, without the assembler."""
    for frames in stream.transactions:
        lsn = count = 0
        for frame in frames:
            if frame[:1] != b"w":
                continue
            match decode(frame[25:]):
                case Begin(final_lsn=final_lsn):
                    lsn = final_lsn
                case Update(old=old, new=new):
                    count += 2 if old is not None and old[0] != new[0] else 1
                case Insert() | Delete():
                    count += 1
                case Truncate(relation_oids=oids):
                    count += len(oids)
                case _:
                    pass
        yield lsn, count


@given(streams())
def test_position_order_is_commit_order(stream: Stream) -> None:
    ledger = Ledger(stream.start)
    positions = []
    for frames in stream.transactions:
        for frame in frames:
            if frame[:1] == b"w":
                message = decode(frame[25:])
                if isinstance(message, Begin):
                    ledger.begin(message.final_lsn)
                elif isinstance(message, Commit):
                    ledger.commit(message.end_lsn)
        positions.append(ledger.advance())
    assert positions == stream.ends == sorted(stream.ends)

"""Values left in their frames make the same records as decoded ones, op for op.

Every row is taken for a large one, and every text of it for a large value.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.test_pipeline import Conditions, conditions, run
from tests.support.strategies import Stream, streams
from walstream.formats import ENCODERS, texts_of
from walstream.formats.context import Context
from walstream.kafka.target import Target
from walstream.op import Kind, LargeOp, ReplicationOp, halves
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.pgoutput import large_value as frames
from walstream.pipeline.pgoutput.large_value import LargeFrame
from walstream.records.encoding import TableEncoding
from walstream.records.key import KEY_FORMS
from walstream.records.large_op import plain
from walstream.records.router import Route
from walstream.testing import MemorySink, MemorySource, SinkRecord

_ROW: Final = 25  # where a frame's tag is
FORMATS: Final = [("op", "json"), ("event", "event"), ("tungsten", "pkeyus")]


class LargeSource(MemorySource):
    """Gives each row as SlotSource gives a large one."""

    def read(self, limit: int) -> list[bytes]:
        return [
            LargeFrame(memoryview(frame)) if frame[_ROW : _ROW + 1] in b"IUD" else frame
            for frame in super().read(limit)
        ]


class LargeSink(MemorySink):
    """Compares what it makes of a large op with what others make."""

    takes_large = True

    def __init__(self, **how: object) -> None:
        super().__init__(**how)  # type: ignore[arg-type]
        self.large = 0

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        for half in halves(op) if op.key_changed else (op,):
            if type(half) is LargeOp:
                self.large += 1
                compare(half)
        return super().send(plain(op), transaction)


def compare(op: LargeOp) -> None:
    for name, key in FORMATS:
        encoder = ENCODERS[name](op.table, Context())
        others = frozenset(range(len(op.table.columns))).difference(texts_of(encoder))
        form = KEY_FORMS[key](op.table, op.table.key, Context().origin)
        aim = TableEncoding(Route("t", form), encoder.encode, True, others)
        made, record = Target(aim, None, None).large(op)  # type: ignore[arg-type]
        assert made == form.render(plain(op))
        assert record.value() == encoder.encode(plain(op))
        assert record.size() == len(record.value())


@contextmanager
def everything_is_large(sink: type[MemorySink]) -> Iterator[None]:
    with (
        patch.object(frames, "_LARGE_VALUE", -1),
        patch("tests.property.test_pipeline.MemorySource", LargeSource),
        patch("tests.property.test_pipeline.MemorySink", sink),
    ):
        yield


def by_partition(records: list[SinkRecord]) -> list[list[SinkRecord]]:
    return [[one for one in records if one.partition == part] for part in range(3)]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(streams(), conditions, st.sampled_from([MemorySink, LargeSink]))
def test_large_frames_make_the_same_records(
    stream: Stream, outside: Conditions, sink: type[MemorySink]
) -> None:
    usual = run(stream, Conditions())
    with everything_is_large(sink):
        large = run(stream, outside)
    assert by_partition(large.records) == by_partition(usual.records)
    assert large.resume == usual.resume


def test_large_ops_reach_a_sink_that_takes_them() -> None:
    seen = []

    class Counting(LargeSink):
        def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
            seen.append((type(op), op.kind))
            return super().send(op, transaction)

    @settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
    @given(streams())
    def stream_them(stream: Stream) -> None:
        with everything_is_large(Counting):
            run(stream, Conditions())

    stream_them()
    assert {(LargeOp, Kind.INSERT), (LargeOp, Kind.UPDATE), (LargeOp, Kind.DELETE)} <= {
        *seen
    }

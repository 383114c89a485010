"""What the limit holds waits, in order, and the slot is not read for more."""

import pytest

from tests.unit.pipeline.test_rate_limit import Limited
from walstream.errors import Transient
from walstream.pipeline.limited_source import LimitedSource
from walstream.testing import MemorySource


class Slot(MemorySource):
    """Frames, and how far they go."""

    received = 0

    def read(self, limit: int) -> list[bytes]:
        frames = super().read(limit)
        if frames:
            self.received = int.from_bytes(frames[-1][1:9])
        return frames

    def ask(self) -> None:
        """Ask nobody."""

    def close(self, *, wait_s: float = 0.0) -> None:  # noqa: ARG002 - the slot's own
        super().close()


def row(lsn: int) -> bytes:
    return b"w" + lsn.to_bytes(8) + bytes(16) + b"I"


def test_all_is_given_out_in_order_at_the_rate() -> None:
    limited = Limited(rows=2)
    slot = Slot(map(row, range(1, 8)))
    source = LimitedSource(slot, limited.limit)
    assert source.read(5) == [row(1), row(2)]
    assert source.received == 2  # of five that were read
    assert not source.read(5)
    assert slot.unread == 2
    assert slot.paused
    limited.now += 1
    assert source.read(5) == [row(3), row(4)]
    limited.now += 1
    assert source.read(5) == [row(5)]
    assert source.received == 5
    assert source.read(5) == [row(6)]
    assert source.received == 6
    source.close()


def test_a_lifted_limit_gives_out_what_waits() -> None:
    limited = Limited(rows=1)
    source = LimitedSource(Slot(map(row, range(1, 8))), limited.limit)
    assert source.read(5) == [row(1)]
    limited.limit.lift()
    assert source.read(5) == [row(2), row(3), row(4), row(5)]
    assert source.read(5) == [row(6), row(7)]
    source.close()


def test_what_waits_comes_before_the_error_of_the_end() -> None:
    limited = Limited(rows=1)
    slot = Slot([row(1), row(2)], ending=Transient("it ended"))
    source = LimitedSource(slot, limited.limit)
    assert source.read(5) == [row(1)]
    limited.now += 1
    assert source.read(5) == [row(2)]
    with pytest.raises(Transient):
        source.read(5)
    source.close()

"""The last position is found in a topic of any length."""

from types import SimpleNamespace
from typing import Any, Self

import pytest

from walstream.errors import Transient
from walstream.kafka import position_reader
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.position_reader import read_position

_END = 500


class Slow:
    """A reader to whom each record takes a second; `pause` is one without any.

    Where it `grows`, others write as fast, so that its very end is never met.
    """

    now = 0.0
    grows = False
    pause = -1

    def __init__(self, *_: object) -> None:
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def bounds(self, topics: list[str]) -> Any:
        return {Partition(topics[0], 0): OffsetBounds(0, _END)}

    def assign(self, offsets: dict[Partition, int]) -> None:
        (self._next,) = offsets.values()

    def poll(self, _wait_s: float) -> list[Any]:
        Slow.now += 1.0
        if self._next == self.pause:
            return []
        key = b"mine" if self._next == 3 else b"other"
        self._next += 1
        return [SimpleNamespace(key=key, value=b"at %d" % (self._next - 1))]

    def reached(self, _bounds: object) -> bool:
        return self._next >= _END

    def met_end(self, _place: Partition) -> bool:
        return not self.grows and self._next >= _END


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    Slow.now = 0.0
    monkeypatch.setattr(position_reader, "TopicReader", Slow)
    clock = SimpleNamespace(monotonic=lambda: Slow.now)
    monkeypatch.setattr(position_reader, "runtime", clock)


def test_a_long_topic_is_read_as_long_as_it_gives_records() -> None:
    assert read_position({}, "positions", b"mine", lambda: False) == b"at 3"


@pytest.mark.parametrize("key", [b"mine", b"none"])
def test_no_end_is_waited_for_where_others_write_on(
    monkeypatch: pytest.MonkeyPatch, key: bytes
) -> None:
    monkeypatch.setattr(Slow, "grows", True)
    stopped = iter([False] * 5 * _END).__next__  # an endless wait ends here
    expected = b"at 3" if key == b"mine" else None
    assert read_position({}, "positions", key, stopped) == expected


def test_one_that_gives_no_more_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slow, "pause", 450)
    with pytest.raises(Transient, match="does not come to its end"):
        read_position({}, "positions", b"mine", lambda: False)

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

    Where it `grows`, others write as fast, so that its very end is never met. Of what
    is `open` from an offset on, and `aborted`, nothing committed is given.
    """

    now = 0.0
    grows = False
    pause = -1
    open = _END
    aborted = -1
    mine = (3,)

    def __init__(self, properties: dict[str, str], *_: object) -> None:
        self._next = 0
        self._committed = properties.get("isolation.level") != "read_uncommitted"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def bounds(self, topics: list[str]) -> Any:
        return {Partition(topics[0], 0): OffsetBounds(0, _END)}

    def assign(self, offsets: dict[Partition, int]) -> None:
        (self._next,) = offsets.values()

    def poll(self, _wait_s: float) -> list[Any]:
        Slow.now += 1.0
        if self._next == self.pause or (self._committed and self._next >= self.open):
            return []
        at = self._next
        self._next += 1
        if self._committed and at == self.aborted:
            return []
        key = b"mine" if at in self.mine else b"other"
        return [SimpleNamespace(key=key, value=b"at %d" % at, offset=at)]

    def reached(self, bounds: dict[Partition, OffsetBounds]) -> bool:
        return all(self._next >= one.end for one in bounds.values())

    def met_end(self, _place: Partition) -> bool:
        end = self.open if self._committed else _END
        return not self.grows and self._next >= end


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


@pytest.mark.parametrize("key", [b"mine", b"none"])
def test_what_others_have_open_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, key: bytes
) -> None:
    """Of a sink that is frozen, or gone for good, it may be open for ever."""
    monkeypatch.setattr(Slow, "open", 4)
    expected = b"at 3" if key == b"mine" else None
    assert read_position({}, "positions", key, lambda: False) == expected


def test_what_began_before_the_last_record_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else nobody knows whether it was committed: what it covers may be lost."""
    monkeypatch.setattr(Slow, "mine", (3, 300))
    monkeypatch.setattr(Slow, "open", 200)
    with pytest.raises(Transient, match="does not come to its end"):
        read_position({}, "positions", b"mine", lambda: False)


def test_nothing_is_waited_for_where_all_is_delivered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Slow, "mine", (3, 300))
    monkeypatch.setattr(Slow, "open", 200)
    where: Any = ({}, "positions", b"mine", lambda: False)
    found = read_position(*where, is_delivered=lambda value: value == b"at 300")
    assert found == b"at 300"


def test_an_aborted_position_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slow, "mine", (3, 300))
    monkeypatch.setattr(Slow, "aborted", 300)
    assert read_position({}, "positions", b"mine", lambda: False) == b"at 3"

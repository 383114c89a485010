"""The last changes: over partitions by time, whatever lies between them."""

from collections.abc import Callable, Mapping

import pytest

from tests.unit.cli.tail.test_follow import Shelf
from walstream.cli.tail.change import Change, read
from walstream.cli.tail.last import LastChanges
from walstream.errors import TopicLost
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicRecord


class TimedShelf(Shelf):
    """Records whose times are 10 * offset + partition; counts those that it gave."""

    given = 0

    def poll(self, timeout_s: float) -> list[TopicRecord]:
        records = super().poll(timeout_s)
        self.given += len(records)
        return [
            TopicRecord(
                one.topic,
                one.partition,
                one.offset,
                None,
                None,
                [],
                10 * one.offset + one.partition,
            )
            for one in records
        ]


def last(
    shelf: Shelf,
    count: int,
    wanted: Callable[[TopicRecord], bool] = lambda _: True,
    bounds: Mapping[Partition, OffsetBounds] | None = None,
) -> list[tuple[int, int]]:
    def pick(record: TopicRecord) -> Change | None:
        return read(record) if wanted(record) else None

    changes = LastChanges(shelf, bounds or shelf.bounds(["a"]), count).read(pick)
    return [(one.record.partition, one.record.offset) for one in changes]


def test_they_are_the_newest_of_all_partitions_in_order_of_time() -> None:
    shelf = TimedShelf(a=[100, 98, 0])
    assert last(shelf, 3) == [(1, 97), (0, 98), (0, 99)]
    assert last(shelf, 5) == [(1, 96), (0, 97), (1, 97), (0, 98), (0, 99)]


def test_no_more_is_read_than_is_needed() -> None:
    shelf = TimedShelf(a=[1_000_000])
    assert last(shelf, 2) == [(0, 999_998), (0, 999_999)]
    assert shelf.given == 2


def test_fewer_are_all() -> None:
    assert last(TimedShelf(a=[2, 1]), 20) == [(0, 0), (1, 0), (0, 1)]
    assert last(TimedShelf(a=[0]), 20) == []


@pytest.mark.parametrize("every", [7, 1000])
def test_what_is_not_wanted_does_not_count(every: int) -> None:
    found = last(TimedShelf(a=[5000]), 3, lambda record: record.offset % every == 0)
    newest = (4999 // every) * every
    assert found == [(0, newest - 2 * every), (0, newest - every), (0, newest)]


def test_what_comes_after_the_start_is_left() -> None:
    bounds = {Partition("a", 0): OffsetBounds(0, 4)}
    assert last(TimedShelf(a=[9]), 2, bounds=bounds) == [(0, 2), (0, 3)]


@pytest.mark.parametrize(
    ("first", "wanted"), [(97, [97, 98, 99]), (99, [99]), (100, []), (103, [])]
)
def test_what_retention_deletes_meanwhile_is_passed_over(
    first: int, wanted: list[int]
) -> None:
    shelf = TimedShelf(a=[100])
    bounds = shelf.bounds(["a"])
    shelf.ends["a"], shelf.firsts["a"] = [max(100, first)], first
    assert last(shelf, 5, bounds=bounds) == [(0, offset) for offset in wanted]


def test_a_topic_that_was_made_again_has_not_the_last_changes() -> None:
    shelf = TimedShelf(a=[100])
    bounds = shelf.bounds(["a"])
    shelf.ends["a"], shelf.firsts["a"] = [99], 98
    with pytest.raises(TopicLost):
        last(shelf, 5, bounds=bounds)

"""Many topics share several producers, each topic one of them."""

from collections import Counter
from typing import cast

import pytest

from walstream.errors import Transient
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_pool import ProducerPool, parts_for


class Box:
    """Stands for a producer."""

    def __init__(self) -> None:
        self.in_flight = 1
        self.unreachable = self.served = False
        self.room = True
        self.error: Exception | None = None
        self.waits: list[float] = []
        self.left = 0  # records that still arrive, one at each look
        self.flushed = self.closed = self.is_busy = self.told_busy = False

    def serve(self, *, busy: bool) -> bool:
        self.served, self.told_busy = True, busy
        if self.error:
            raise self.error
        return self.room

    def flush(self) -> None:
        self.flushed = True

    def answers(self) -> None:
        self.unreachable = False

    def fail(self, error: Exception) -> None:
        self.error = error

    @property
    def lets_wait(self) -> bool:
        return self.left > 0

    def wait(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        self.left -= 1

    def close(self, wait_s: float) -> None:
        assert wait_s == 0
        self.closed = True


def made(parts: int) -> tuple[ProducerPool, list[Box]]:
    boxes = [Box() for _ in range(parts)]
    left = iter(boxes)
    return ProducerPool(parts, lambda: cast("OrderedProducer", next(left))), boxes


@pytest.mark.parametrize(
    ("topics", "parts"), [(0, 1), (1, 1), (200, 1), (201, 2), (1000, 5), (10**6, 16)]
)
def test_few_topics_need_one_producer(topics: int, parts: int) -> None:
    assert parts_for(topics) == parts


def test_a_topic_stays_with_its_producer_and_they_share_evenly() -> None:
    boxes, _ = made(3)
    names = [f"t{number}" for number in range(300)]
    first = {name: boxes.of(name) for name in names}
    assert {name: boxes.of(name) for name in reversed(names)} == first
    assert set(Counter(map(id, first.values())).values()) == {100}


def test_each_is_served_and_the_fullest_decides() -> None:
    boxes, (one, two, three) = made(3)
    assert boxes.serve()
    assert boxes.in_flight == 3
    for box in (one, two, three):
        box.served = False
    one.room = False
    assert not boxes.serve()
    assert three.served


def test_what_fails_in_one_stops_all() -> None:
    boxes, (one, two) = made(2)
    two.error = Transient("a record failed")
    with pytest.raises(Transient):
        boxes.serve()
    two.error = None
    boxes.fail(Transient("a topic is gone"))
    with pytest.raises(Transient):
        boxes.serve()
    assert one.error


def test_kafka_is_away_for_all_when_it_is_for_one() -> None:
    boxes, (_, two) = made(2)
    seen = [boxes.unreachable]
    two.unreachable = True
    seen.append(boxes.unreachable)
    boxes.answers()
    assert [*seen, boxes.unreachable] == [False, True, False]


def test_one_that_is_stuck_takes_no_time_from_the_others() -> None:
    boxes, (stuck, well) = made(2)
    stuck.left, well.left = 10**6, 3
    boxes.wait(0.05)
    assert well.left == 0
    assert stuck.left > 0
    boxes.close()
    assert stuck.closed
    assert well.closed


def test_what_waits_for_nothing_closes_at_once() -> None:
    boxes, both = made(2)
    boxes.wait(float("inf"))
    boxes.close()
    assert all(box.closed and not box.waits for box in both)


def test_none_hurries_while_another_is_busy() -> None:
    boxes, (quiet, busy) = made(2)
    busy.is_busy = True
    boxes.serve()
    assert quiet.told_busy
    busy.is_busy = False
    boxes.serve()
    assert not quiet.told_busy


def test_all_of_them_are_flushed() -> None:
    pool, boxes = made(3)
    pool.flush()
    assert all(box.flushed for box in boxes)

"""Which missing offsets are asked about, and when."""

import pytest
from confluent_kafka import Message

from consumer.group.offset_gaps import Gaps


def at(*offsets: int) -> list[Message]:
    return [Message(offset=offset, value=b"x") for offset in offsets]


@pytest.mark.parametrize(
    ("offsets", "expected", "missing"),
    [
        ((3, 4, 5), 3, None),
        ((3, 4, 5), None, None),
        ((3, 4, 5), 2, 2),
        ((3, 5, 9), 3, 4),
        ((3, 4, 9), None, 5),
        ((3, 4), 9, None),  # it went back: another matter
    ],
)
def test_the_first_offset_that_did_not_come_is_asked_about(
    offsets: tuple[int, ...], expected: int | None, missing: int | None
) -> None:
    gaps = Gaps()
    gaps.see(at(*offsets), expected)
    assert gaps.due() == missing
    assert gaps.due() is None


def test_the_oldest_gap_waits_until_it_is_time() -> None:
    now = [0.0]
    gaps = Gaps(lambda: now[0])
    gaps.see(at(2), 1)
    assert gaps.due() == 1
    gaps.see(at(5), 3)
    assert gaps.due() is None
    gaps.see(at(9), 6)
    now[0] = 1.0
    assert gaps.due() == 3

"""What a relay's transactions have of an upstream partition is left out."""

import pytest

from walstream.kafka.transaction_plan import TransactionPlan
from walstream.sources.kafka.offset_ledger import Portion
from walstream.sources.kafka.offset_metadata import NOTHING_NOTED
from walstream.sources.kafka.partition_position import (
    CopiedRecords,
    PartitionPosition,
    decode_position,
)

_PLAN = TransactionPlan("g-up-0-k", (), "positions", 0.1, 60_000)


def copied(begin: int = 5, replay: str = "") -> CopiedRecords:
    return CopiedRecords(_PLAN, "Zx", begin, replay)


@pytest.mark.parametrize(
    ("begin", "replay", "found", "until", "said"),
    [
        (5, "", PartitionPosition(9, "Zx"), 9, "what Kafka has already"),
        # a topic of that name, created again
        (5, "", PartitionPosition(9, "another"), 0, "does not count"),
        (9, "", PartitionPosition(9, "Zx"), 0, "nothing beyond"),  # the group knows
        # an operator set the group's offset
        (5, "a", PartitionPosition(9, "Zx"), 0, "does not count"),
        (5, "a", PartitionPosition(9, "Zx", "b"), 0, "does not count"),
        (5, "a", PartitionPosition(9, "Zx", "a"), 9, "what Kafka has already"),
        (5, "", None, 0, "nothing beyond"),
    ],
)
def test_what_is_left_out(
    begin: int, replay: str, found: PartitionPosition | None, until: int, said: str
) -> None:
    made = copied(begin, replay)
    report = made.open(found.encode() if found else None)
    assert made.until == until
    assert said in report.text
    assert not report.is_bad


def test_what_is_no_position_is_told() -> None:
    made = copied()
    assert made.open(b"something else").is_bad
    assert made.until == 0


def test_the_position_is_where_the_last_portion_ends() -> None:
    made = copied(replay="a")
    one, other = Portion(7, NOTHING_NOTED), Portion(9, NOTHING_NOTED)
    told = made.position([one, other], whole=True)
    assert told is not None
    assert decode_position(told) == PartitionPosition(9, "Zx", "a")
    assert made.position([other], whole=True) is None  # it says so already
    other.end = 12
    assert made.position([other], whole=False) is None
    assert made.position([other], whole=True) is not None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b'{"offset":"1","topic_id":"a"}',
        b"1",
        b'{"offset":1,"topic_id":"a","replay":1}',
    ],
)
def test_what_others_wrote_is_no_position(value: bytes) -> None:
    assert decode_position(value) is None

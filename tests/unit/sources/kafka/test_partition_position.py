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


def copied(begin: int | None = 5) -> CopiedRecords:
    return CopiedRecords(_PLAN, "Zx", begin)


@pytest.mark.parametrize(
    ("begin", "found", "until"),
    [
        (5, PartitionPosition(9, "Zx"), 9),
        (5, PartitionPosition(9, "another"), 0),  # a topic of that name, created again
        (9, PartitionPosition(9, "Zx"), 0),  # the group knows
        (None, PartitionPosition(9, "Zx"), 0),  # an operator set the group's offset
        (5, None, 0),
    ],
)
def test_what_is_left_out(
    begin: int | None, found: PartitionPosition | None, until: int
) -> None:
    made = copied(begin)
    said = made.open(found.encode() if found else None)
    assert made.until == until
    assert ("left out" in said.text) == bool(until)


def test_the_position_is_where_the_last_portion_ends() -> None:
    made = copied()
    one, other = Portion(7, NOTHING_NOTED), Portion(9, NOTHING_NOTED)
    told = made.position([one, other], whole=True)
    assert told is not None
    assert decode_position(told) == PartitionPosition(9, "Zx")
    assert made.position([other], whole=True) is None  # it says so already
    other.end = 12
    assert made.position([other], whole=False) is None
    assert made.position([other], whole=True) is not None


@pytest.mark.parametrize("value", [b"", b"[]", b'{"offset":"1","topic_id":"a"}', b"1"])
def test_what_others_wrote_is_no_position(value: bytes) -> None:
    assert decode_position(value) is None

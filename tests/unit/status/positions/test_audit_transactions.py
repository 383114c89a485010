"""A position in Kafka beside the one where a start would begin."""

import pytest

from walstream.kafka.delivery_audit import TopicAudit
from walstream.kafka.delivery_verdict import Agreement
from walstream.kafka.replay_mark import ReplayMark
from walstream.kafka.transaction_position import TransactionPosition
from walstream.status.positions.audit_transactions import StartPlace, judged

_ORIGIN = "7/shop/0"
_PLACE = StartPlace(0x50, 0x1000, _ORIGIN)


def at(lsn: int, origin: str = _ORIGIN) -> TransactionPosition:
    return TransactionPosition(lsn, 5, origin)


@pytest.mark.parametrize(
    ("found", "place", "verdict", "text", "up_to"),
    [
        (None, _PLACE, Agreement.UNKNOWN, "told a position yet", None),
        (
            at(0x40),
            _PLACE,
            Agreement.AGREE,
            "nothing is beyond the position 0/50",
            None,
        ),
        (at(0x60), _PLACE, Agreement.AGREE, "to 0/60 are there", 0x60),
        (at(0x60, "8/shop/0"), _PLACE, Agreement.FOREIGN, "another history", 0x60),
        (at(0x1000), _PLACE, Agreement.FOREIGN, "WAL ends before that", 0x1000),
        (
            at(0x60),
            StartPlace(0x50, 0x1000, _ORIGIN, ReplayMark("x")),
            Agreement.REPEATED,
            "from 0/50 to 0/60 come again",
            0x60,
        ),
    ],
)
def test_verdicts(
    found: TransactionPosition | None,
    place: StartPlace,
    verdict: Agreement,
    text: str,
    up_to: int | None,
) -> None:
    sum_ = judged("kafka", found, place, [])
    assert (sum_.verdict, sum_.up_to) == (verdict, up_to)
    assert text in sum_.text


def test_a_topic_that_is_gone_counts_more() -> None:
    lost = TopicAudit("t", Agreement.MISSING, "the topic is gone", [])
    kept = TopicAudit("u", Agreement.UNKNOWN, "its position tells", [])
    found = judged("kafka", at(0x60), _PLACE, [kept, lost])
    assert found.verdict is Agreement.MISSING
    assert found.text == "1 topic: the topic is gone"

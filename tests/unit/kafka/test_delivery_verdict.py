"""Each verdict on a tail, and that the worst of several is theirs."""

from dataclasses import replace

import pytest

from walstream.kafka.delivery_verdict import (
    Agreement,
    StreamPlace,
    TailVerdict,
    TopicRules,
    judge,
    truncated,
    worst,
)
from walstream.kafka.last_record import LastRecord
from walstream.kafka.tail_reader import Tail

ORIGIN = "7/shop/3"
PLACE = StreamPlace(resume=100, flush=1000, origin=ORIGIN)
RULES = TopicRules()


def tail(lsn: int, **fields: object) -> Tail:
    last = LastRecord(lsn, 2, 5, exact=True, value=b"digest")
    return replace(Tail(last=last, offset=40), **fields)  # type: ignore[arg-type]


def verdict(
    found: Tail, rules: TopicRules = RULES, begin: int = 0
) -> tuple[str, bool, str]:
    made = judge(found, PLACE, rules, begin)
    return made.verdict.value, made.left_out, made.why


@pytest.mark.parametrize(
    ("lsn", "expected"),
    [
        (99, ("agree", False, "")),
        (100, ("agree", True, "")),
        (1000, ("agree", True, "")),
    ],
)
def test_what_is_delivered_or_left_out_agrees(
    lsn: int, expected: tuple[str, bool, str]
) -> None:
    assert verdict(tail(lsn)) == expected
    found = judge(tail(lsn), PLACE, RULES)
    assert (found.last, found.seq_id) == (lsn, 2)


def test_a_tail_without_a_change_claims_nothing() -> None:
    assert judge(Tail(), PLACE, RULES) == TailVerdict(Agreement.AGREE)


@pytest.mark.parametrize(
    ("found", "rules", "begin", "why"),
    [
        (tail(100), TopicRules(why="other rules"), 0, "other rules"),
        (tail(499), TopicRules(since=500), 0, "before its era"),
        (tail(500), RULES, 41, "before its era"),
        (Tail(untimed=(500, 0), offset=40), RULES, 0, "the broker's time"),
    ],
)
def test_what_is_not_left_out_comes_again(
    found: Tail, rules: TopicRules, begin: int, why: str
) -> None:
    said = verdict(found, rules, begin)
    assert said[:2] == ("repeated", False)
    assert why in said[2]
    # nothing of it is beyond the position
    early = tail(99) if found.last else Tail(untimed=(99, 0), offset=40)
    assert verdict(early, rules, begin) == ("agree", False, "")


def test_what_the_server_never_wrote_is_foreign() -> None:
    said = verdict(tail(1001))
    assert said[:2] == ("foreign", False)
    assert "ends at 0/3E8" in said[2]
    # in an earlier era it is known, and does not count
    assert verdict(tail(1001), begin=41) == ("agree", False, "")
    # of another source: its LSNs are of another server
    shared = TopicRules(is_alone=False, why="another sink")
    assert verdict(tail(1001), shared) == ("agree", False, "")


def test_another_programs_record_is_foreign_and_what_is_there_left_out() -> None:
    said = verdict(tail(500, strange=41))
    assert said[:2] == ("foreign", True)
    assert "offset 41" in said[2]
    assert verdict(tail(500, strange=39))[0] == "agree"  # ours came after it
    assert verdict(Tail(strange=41), begin=42)[0] == "agree"  # it was there before
    assert verdict(tail(500, strange=41), TopicRules(is_named=False))[0] == "agree"
    shared = TopicRules(is_alone=False, why="another sink")
    assert verdict(tail(500, strange=41), shared)[0] == "repeated"


@pytest.mark.parametrize("origin", ["8/shop/3", "7/other/3", "7/shop/4", "7/shop/2"])
def test_a_record_of_another_history_is_foreign(origin: str) -> None:
    said = verdict(tail(500, origin=origin))
    assert said[:2] == ("foreign", False)
    assert origin in said[2]
    assert ORIGIN in said[2]
    assert verdict(tail(500, origin=origin), begin=41)[0] == "repeated"
    unknown = replace(PLACE, origin="")
    assert judge(tail(500, origin=origin), unknown, RULES).left_out


def test_its_own_origin_is_not_foreign() -> None:
    assert verdict(tail(500, origin=ORIGIN)) == ("agree", True, "")


def test_records_of_an_earlier_epoch_are_not_compared() -> None:
    """After a reset nothing of today's epoch may be there yet."""
    none = TopicRules(why="no era is known")
    said = verdict(tail(500, origin="7/shop/2"), none)
    assert said[:2] == ("agree", False)
    assert "an earlier epoch" in said[2]
    assert verdict(tail(500, origin="7/shop/4"), none)[0] == "foreign"
    assert verdict(tail(500, origin="7/shop/x"), none)[0] == "foreign"


def test_a_partition_that_was_cut_off_misses_something() -> None:
    found = truncated(7, 9)
    assert found.verdict is Agreement.MISSING
    assert "offset 7" in found.why
    assert "9" in found.why


def test_the_worst_of_all_counts() -> None:
    order = list(Agreement)
    assert [one.value for one in order] == [
        "agree",
        "repeated",
        "unknown",
        "foreign",
        "missing",
    ]
    for index, one in enumerate(order):
        assert worst(order[: index + 1]) is one
    assert worst([]) is Agreement.AGREE

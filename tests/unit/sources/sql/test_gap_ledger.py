"""Which keys of a polled table are looked for again, and for how long."""

import json
from typing import Any

import pytest

from walstream.sources.sql.gap_ledger import Forgotten, GapLedger

HOUR = 3600.0


def ledger(most: int = 1000) -> GapLedger:
    return GapLedger(HOUR, most)


def rounds(gaps: GapLedger, now: float, low_water: int | None = None) -> Forgotten:
    gaps.due(now, low_water)
    return gaps.looked(now)


def test_a_gap_is_due_at_once_and_then_less_and_less_often() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, None)
    assert gaps.due(1000.1) == [(5, 9)]
    gaps.looked(1000.1)
    looks = []
    now = 1000.1
    while now < 1000 + HOUR:
        now += 0.1
        if gaps.due(now):
            gaps.looked(now)
            looks.append(now - 1000)
    assert looks[-1] >= HOUR  # what commits within the hour is found
    assert len(looks) < 100
    assert all(later <= 1.12 * age + 0.2 for age, later in zip(looks, looks[1:]))  # noqa: B905, RUF007 - one is shorter
    assert len(gaps) == 0


def test_a_look_is_wanted_where_a_round_would_read_something() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, 70)
    wanted = []
    now = 1000.0
    while len(gaps):
        now += 10.0
        wants = gaps.wants_look(now)
        assert wants >= bool(gaps.due(now, 70 if now > 1000 + 2 * HOUR else 69))
        gaps.looked(now)
        wanted.append(wants)
    assert sum(wanted[: int(HOUR // 10) - 1]) < 50
    assert all(wanted[int(HOUR // 10) :])  # it may go as soon as the engine says so
    assert not gaps.wants_look(now)


def test_a_look_that_never_ended_is_due_again() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, None)
    assert gaps.due(1001.0) == gaps.due(1001.0) == [(5, 9)]


def test_after_a_restart_all_is_due() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, None)
    rounds(gaps, 2000.0)
    assert gaps.due(2001.0) == []
    again = GapLedger.of(gaps.document(), HOUR, 10)
    assert again.due(2001.0) == [(5, 9)]


def test_a_clock_that_was_set_back_forgets_nothing() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, None)
    rounds(gaps, 1100.0)
    assert gaps.due(500.0) == [(5, 9)]
    assert gaps.looked(500.0) == (0, 0)


def test_a_gap_is_looked_at_once_more_after_its_time_and_then_forgotten() -> None:
    gaps = ledger()
    gaps.note([(5, 9), (11, 11)], 1000.0, None)
    rounds(gaps, 1000.0 + HOUR - 0.001)
    assert gaps.due(1000.0 + HOUR) == [(5, 9), (11, 11)]
    assert 7 in gaps
    assert gaps.looked(1000.0 + HOUR) == Forgotten(keys=6, gaps=2)
    assert (len(gaps), gaps.keys, gaps.oldest) == (0, 0, None)


def test_nothing_is_forgotten_while_a_transaction_of_then_is_open() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, 70)
    assert rounds(gaps, 1000.0 + 9 * HOUR, low_water=69) == (0, 0)
    assert rounds(gaps, 1000.0 + 9 * HOUR, low_water=70) == (5, 1)


def test_a_mark_that_cannot_be_asked_leaves_the_timeout() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, 70)
    assert rounds(gaps, 1000.0 + HOUR, low_water=None) == (5, 1)
    gaps.note([(5, 9)], 1000.0, None)
    assert rounds(gaps, 1000.0 + HOUR, low_water=1) == (5, 1)


def test_what_is_seen_is_no_gap_any_more() -> None:
    gaps = ledger()
    gaps.note([(1, 9), (20, 20)], 1000.0, None)
    gaps.seen([5, 20, 3, 5, 100, -1])
    assert [key for key in range(30) if key in gaps] == [1, 2, 4, 6, 7, 8, 9]
    assert (len(gaps), gaps.keys) == (3, 7)
    assert gaps.due(1001.0) == [(1, 2), (4, 4), (6, 9)]
    gaps.seen(range(10))
    assert (gaps.keys, gaps.oldest) == (0, None)


def test_a_timeout_of_nothing_keeps_nothing() -> None:
    gaps = GapLedger(0, 10)
    gaps.note([(1, 9)], 1000.0, None)
    assert (len(gaps), gaps.due(1001.0)) == (0, [])
    noted = ledger()
    noted.note([(1, 9)], 1000.0, None)
    assert len(GapLedger.of(noted.document(), 0, 10)) == 0


def test_a_rewind_takes_out_what_will_be_read_again() -> None:
    gaps = ledger()
    gaps.note([(1, 3), (5, 9), (20, 22)], 1000.0, None)
    gaps.forget_above(6)
    assert gaps.due(1001.0) == [(1, 3), (5, 6)]
    gaps.forget_above(6)
    assert gaps.keys == 5


def test_a_gap_that_is_noted_again_counts_from_then() -> None:
    gaps = ledger()
    gaps.note([(1, 9), (20, 29)], 1000.0, None)
    gaps.note([(3, 4), (8, 21)], 2000.0, None)
    assert gaps.due(2001.0) == [(1, 2), (3, 4), (5, 7), (8, 21), (22, 29)]
    gaps.looked(2001.0)
    assert rounds(gaps, 1000.0 + HOUR) == (2 + 3 + 8, 3)
    assert rounds(gaps, 2000.0 + HOUR) == (2 + 14, 2)


def test_a_full_ledger_forgets_what_no_transaction_can_fill() -> None:
    gaps = ledger(most=8)
    for number in range(8):
        gaps.note([(10 * number, 10 * number)], 1000.0 + number, number)
    assert gaps.full
    assert rounds(gaps, 1059.0, low_water=100) == (0, 0)  # too young
    assert rounds(gaps, 1100.0, low_water=3) == (4, 4)  # the others may be filled
    assert (gaps.full, gaps.oldest) == (False, 1004.0)
    assert rounds(gaps, 1100.0, low_water=100) == (0, 0)  # there is room


def test_a_full_ledger_looks_before_it_forgets_and_keeps_half() -> None:
    gaps = ledger(most=4)
    for number in range(6):
        gaps.note([(10 * number, 10 * number)], 1000.0 + number, 1)
    rounds(gaps, 1100.0)
    assert gaps.due(1101.0, 1) == [(0, 0), (10, 10), (20, 20), (30, 30)]
    assert gaps.looked(1101.0) == (4, 4)
    assert (len(gaps), gaps.full) == (2, False)


def test_a_full_ledger_without_a_mark_stays_full() -> None:
    gaps = ledger(most=1)
    gaps.note([(1, 1), (3, 3)], 1000.0, None)
    assert rounds(gaps, 2000.0, 100) == (0, 0)
    assert gaps.full


def test_many_polls_make_few_blocks() -> None:
    gaps = ledger(most=10**6)
    for number in range(5000):
        mark = None if number % 3 == 2 else number
        gaps.note([(10 * number, 10 * number + number % 2)], number / 10, mark)
        if number == 1:
            rounds(gaps, 0.2)
    document = gaps.document()
    assert len(document) < 3000
    assert len(gaps) == 5000
    # noted with others of up to 3.6 s later, and with the highest of their marks
    assert rounds(gaps, HOUR, 10**6) == (0, 0)
    forgotten = rounds(gaps, HOUR + 20, low_water=100)
    assert 0 < forgotten.gaps < 5000
    assert forgotten.gaps >= 50
    assert rounds(gaps, HOUR + 510, low_water=10**6).gaps + forgotten.gaps == 5000


def noted_often(gaps: GapLedger, now: float) -> None:
    """Have so many blocks that those of about one time are joined."""
    for number in range(1100):
        gaps.note([(1000 + 2 * number, 1000 + 2 * number)], now, None)


def test_joined_gaps_wait_for_the_higher_mark() -> None:
    gaps = ledger(most=10**6)
    gaps.note([(1, 1)], 1000.0, 9)
    gaps.note([(3, 3)], 1003.0, 5)
    noted_often(gaps, 1003.0)
    assert len(gaps.document()) < 200
    rounds(gaps, 1003.0 + HOUR, low_water=8)
    assert 1 in gaps
    rounds(gaps, 1003.0 + HOUR, low_water=9)
    assert 1 not in gaps


def test_joined_gaps_are_due_when_the_first_of_them_is() -> None:
    gaps = ledger(most=10**6)
    gaps.note([(1, 1)], 1000.0, 9)
    gaps.note([(3, 3)], 1003.0, 9)
    rounds(gaps, 1003.1)
    assert gaps.due(1003.3) == [(3, 3)]
    gaps.looked(1003.3)
    noted_often(gaps, 1003.32)
    assert gaps.due(1003.32)[:2] == [(1, 1), (3, 3)]


def test_what_is_noted_in_a_round_leaves_the_round_as_it_is() -> None:
    gaps = ledger(most=10**6)
    gaps.note([(5, 9)], 1000.0, None)
    gaps.note([(11, 11)], 1001.0, None)
    rounds(gaps, 1000.0 + HOUR - 0.1)
    assert gaps.due(1000.0 + HOUR) == [(5, 9)]
    noted_often(gaps, 1000.0 + HOUR)
    assert gaps.looked(1000.0 + HOUR) == (5, 1)


def test_the_oldest_make_room_whatever_the_order_of_noting() -> None:
    gaps = ledger(most=2)
    gaps.note([(1, 1)], 1000.0, 1)
    gaps.note([(3, 3)], 900.0, 1)  # a clock that was set back
    assert rounds(gaps, 1100.0, low_water=1) == (1, 1)
    assert 3 not in gaps


def test_the_document_of_a_full_ledger_is_small() -> None:
    gaps = ledger(most=100_000)
    key = -3
    for second in range(1000):
        some = []
        for number in range(100):
            low = key + 2 + number * 7 % 39
            key = low + (5 if number % 4 == 0 else 0)
            some.append((low, key))
        gaps.note(some, 1795242889.1057744 + 5 * second, second)
    text = json.dumps(gaps.document(), separators=(",", ":"))
    assert len(text) < 500_000
    again = GapLedger.of(json.loads(text), HOUR, 100_000)
    assert again.full
    for known in range(0, key, key // 1000):
        assert (known in again) == (known in gaps)


def document(*blocks: Any) -> Any:
    return list(blocks)


@pytest.mark.parametrize(
    "written",
    [
        None,
        {},
        "x",
        document(5),
        document([]),
        document([1.0]),
        document([1.0, None]),
        document([1.0, None, 5]),
        document(["1", None, 5, 0]),
        document([1.0, "2", 5, 0]),
        document([1.0, None, 5, -1]),
        document([1.0, None, 5.0, 0]),
        document([1.0, None, True, 0]),
        document([1.0, None, 5, 0, None]),
        document([1.0, None, 5, 0, -3]),
        document([1.0, None, 5, 0, 0]),
        document([1.0, None, 5, 0, -3, -1]),
        document([-1.0, None, 5, 0]),
        document([float("nan"), None, 5, 0]),
        document([10**400, None, 5, 0]),
        document([True, None, 5, 0]),
        document([1.0, False, 5, 0]),
        document([1.0, None, 5, 3], [2.0, None, 8, 0]),
    ],
)
def test_another_document_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="gap"):
        GapLedger.of(written, HOUR, 10)


def test_a_document_is_read_back() -> None:
    gaps = ledger()
    gaps.note([(-7, -7), (0, 10**20)], 1000.5, 2**63)
    gaps.note([(10**21, 10**21)], 1001.0, None)
    assert gaps.document() == [
        [1000.5, 2**63, -7, 0, -7, 10**20],
        [1001.0, None, 10**21, 0],
    ]
    again = GapLedger.of(json.loads(json.dumps(gaps.document())), HOUR, 10)
    assert again.document() == gaps.document()
    assert (len(again), again.keys, again.oldest) == (3, 10**20 + 3, 1000.5)


def test_a_gap_is_due_again_after_a_tenth_of_its_age() -> None:
    ledger = GapLedger(1000.0, 10)
    ledger.note([(1, 3)], 0.0, None)
    assert ledger.due(90.0) == [(1, 3)]
    ledger.looked(90.0)
    assert ledger.due(90.0) == []
    assert ledger.due(99.5) == []
    assert ledger.due(100.0) == [(1, 3)]
    assert ledger.due(89.0) == [(1, 3)]  # the clock was set back


@pytest.mark.parametrize(
    ("again", "keys"), [((5, 7), 7), ((3, 9), 9), ((6, 7), 7), ((2, 3), 5), ((9, 9), 6)]
)
def test_a_gap_over_another_takes_its_keys(again: tuple[int, int], keys: int) -> None:
    ledger = GapLedger(1000.0, 10)
    ledger.note([(1, 5)], 0.0, None)
    ledger.note([again], 50.0, None)
    assert ledger.keys == keys
    found = ledger.due(2000.0)
    assert found == sorted(found)
    assert sum(high - low + 1 for low, high in found) == keys
    assert ledger.oldest == 0.0


def test_a_time_that_no_clock_shows_is_refused() -> None:
    document = [[253_402_300_799, None, 1, 0]]
    assert GapLedger.of(document, 60.0, 10).keys == 1
    for since in (253_402_300_800, -1):
        with pytest.raises(ValueError, match="another time"):
            GapLedger.of([[since, None, 1, 0]], 60.0, 10)


def test_a_look_is_wanted_at_the_timeout_itself() -> None:
    gaps = ledger()
    gaps.note([(1, 1)], 0.0, None)
    rounds(gaps, HOUR - 1)
    assert not gaps.wants_look(HOUR - 0.5)
    assert gaps.wants_look(HOUR)


@pytest.mark.parametrize(("most", "count", "half"), [(4, 1, 0), (4, 2, 1), (5, 2, 0)])
def test_it_is_half_full_at_the_half(most: int, count: int, half: int) -> None:
    gaps = ledger(most)
    gaps.note([(10 * number, 10 * number) for number in range(count)], 0.0, None)
    assert gaps.half_full is bool(half)


def test_blocks_of_a_document_come_in_any_order() -> None:
    gaps = GapLedger.of([[0, None, 10, 0], [1, None, 1, 0]], HOUR, 10)
    assert gaps.due(2.0) == [(1, 1), (10, 10)]
    assert 1 in gaps
    assert 10 in gaps


@pytest.mark.parametrize(("age_s", "left"), [(59.9, 1), (60.0, 0)])
def test_a_full_ledger_forgets_what_nobody_can_fill_after_a_minute(
    age_s: float, left: int
) -> None:
    gaps = ledger(1)
    gaps.note([(1, 1)], 0.0, 5)
    rounds(gaps, age_s, 5)
    assert gaps.keys == left


def test_a_full_ledger_forgets_no_more_than_it_has_to() -> None:
    gaps = ledger(4)
    gaps.note([(1, 1), (3, 3)], 0.0, 5)
    gaps.note([(5, 5)], HOUR - 70, 5)
    gaps.note([(7, 7)], HOUR - 65, 5)
    rounds(gaps, HOUR, 5)
    assert gaps.due(2 * HOUR) == [(5, 5), (7, 7)]


def test_what_is_in_front_of_a_key_that_came_stays() -> None:
    gaps = ledger()
    gaps.note([(1, 1), (3, 3), (5, 7), (9, 9)], 0.0, None)
    gaps.seen([6, 100])
    assert gaps.due(1.0) == [(1, 1), (3, 3), (5, 5), (7, 7), (9, 9)]
    assert (gaps.keys, len(gaps)) == (5, 5)


def test_blocks_that_are_joined_are_due_if_one_of_them_is() -> None:
    gaps = ledger(5000)
    for number in range(2100):
        gaps.note([(3 * number, 3 * number)], number / 1000, number)
        if number == 700:
            rounds(gaps, 700.0)
    assert len(gaps.due(700.0)) == 2100
    assert len(gaps.document()) < 1100
    assert rounds(gaps, 2 * HOUR, 2000) == Forgotten(0, 0)  # the last is still open


def test_one_that_nobody_looked_at_makes_those_due_that_it_is_joined_with() -> None:
    gaps = ledger(5000)
    for number in range(1020):
        gaps.note([(3 * number, 3 * number)], 10 + number / 1000, None)
    rounds(gaps, 20.0)
    assert gaps.due(20.0) == []
    for number in range(1020, 1030):  # drawn before, noted behind the look
        gaps.note([(3 * number, 3 * number)], 9.5, None)
    assert len(gaps.document()) < 20
    assert len(gaps.due(20.0)) >= 1020


def test_what_goes_when_a_round_ends_is_told_before() -> None:
    gaps = ledger()
    gaps.note([(5, 9)], 1000.0, None)
    gaps.note([(11, 12)], 1000.0 + HOUR, None)
    gaps.due(1000.0 + HOUR / 2)
    assert gaps.going() == []
    gaps.due(1000.0 + HOUR)
    assert gaps.going() == [(5, 9)]


def test_gaps_are_counted_from_a_key_on() -> None:
    gaps = ledger()
    gaps.note([(5, 9), (11, 12), (20, 20)], 1000.0, None)
    keys = (1, 9, 10, 12, 13, 21)
    assert [gaps.count_from(key) for key in keys] == [3, 3, 2, 2, 1, 0]

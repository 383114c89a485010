"""The ledger of gaps against a set of keys that knows each one's times."""

import json
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from walstream.sources.sql.gap_ledger import GapLedger
from walstream.sources.sql.intervals import missing, ranges

TIMEOUT = 100.0
SETTLED = 60.0


@dataclass
class Key:
    since: float
    mark: int | None
    looked: float | None = None

    def ended(self, low_water: int | None) -> bool:
        return None not in (self.mark, low_water) and self.mark <= low_water  # type: ignore[operator]

    def open(self, low_water: int | None) -> bool:
        return None not in (self.mark, low_water) and self.mark > low_water  # type: ignore[operator]

    def may_go(self, now: float, low_water: int | None) -> bool:
        return now - self.since >= TIMEOUT and not self.open(low_water)

    def due(self, now: float, low_water: int | None) -> bool:
        if self.may_go(now, low_water) or self.looked is None or self.looked > now:
            return True
        return (now - self.looked) * 10 >= now - self.since


@dataclass
class Pair:
    """The ledger and its twin, which do the same."""

    ledger: GapLedger
    most: int
    twin: dict[int, Key] = field(default_factory=dict)
    now: float = 1000.0
    high: int = -20
    low_water: int | None = None

    def note(
        self, present: set[int], length: int, mark: int | None, age: float = 0.0
    ) -> None:
        """Miss keys that were drawn before now, or before an earlier moment."""
        since = max(0.0, self.now - age)
        low, self.high = self.high, self.high + length
        keys = sorted({low + 1 + key for key in present if key < length})
        gaps = missing(low, self.high, keys)
        for key in range(low + 1, self.high + 1):
            if key not in keys:
                self.twin[key] = Key(since, mark)
        self.ledger.note(gaps, since, mark)

    def look(self, low_water: int | None, late: set[int]) -> None:
        was_full = self.ledger.full
        due = self.ledger.due(self.now, low_water)
        assert due == sorted(due)
        keys = {key for low, high in due for key in range(low, high + 1)}
        expected = {k for k, v in self.twin.items() if v.due(self.now, low_water)}
        # of a full one, those that go to make room, too
        assert keys >= expected if was_full else keys == expected
        for key in late:
            self.twin.pop(key, None)
        self.ledger.seen(late)
        before = set(self.twin)
        forgotten = self.ledger.looked(self.now)
        for key in keys & before:
            self.twin[key].looked = self.now
        gone = {key for key in before if key not in self.ledger}
        for key in gone:
            was = self.twin.pop(key)
            settled = was.ended(low_water) and self.now - was.since >= SETTLED
            assert was.may_go(self.now, low_water) or (was_full and settled)
            assert key in keys  # it was looked at first
        assert not any(k.may_go(self.now, low_water) for k in self.twin.values())
        assert forgotten.keys == len(gone)

    def restart(self) -> None:
        document = json.loads(json.dumps(self.ledger.document()))
        self.ledger = GapLedger.of(document, TIMEOUT, self.most)
        for key in self.twin.values():
            key.looked = None

    def rewind(self, key: int) -> None:
        self.high = min(key, self.high)
        self.ledger.forget_above(self.high)
        self.twin = {k: v for k, v in self.twin.items() if k <= self.high}

    def compare(self) -> None:
        found = {key for key in range(-25, self.high + 5) if key in self.ledger}
        assert found == self.twin.keys()
        assert self.ledger.keys == len(self.twin)
        sinces = [key.since for key in self.twin.values()]
        assert self.ledger.oldest == min(sinces, default=None)
        assert self.ledger.full == (len(self.ledger) >= self.most)


marks = st.none() | st.integers(0, 5)
some_keys = st.sets(st.integers(0, 12), max_size=8)
steps = st.one_of(
    st.tuples(
        *(st.just("note"), some_keys, st.integers(0, 12), marks),
        st.just(0.0) | st.floats(0, 250),
    ),
    st.tuples(st.just("look"), st.sets(st.integers(-20, 40), max_size=6), marks),
    st.tuples(st.just("wait"), st.floats(-5, 90)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("clear")),
    st.tuples(st.just("rewind"), st.integers(-20, 40)),
)


@given(st.lists(steps, max_size=30), st.sampled_from((2, 5, 1000)))
def test_the_ledger_does_what_a_set_of_keys_does(
    schedule: list[tuple[object, ...]], most: int
) -> None:
    pair = Pair(GapLedger(TIMEOUT, most), most)
    for step in schedule:
        match step:
            case ("note", set(present), int(length), mark, float(age)):
                pair.note(present, length, mark, age)  # type: ignore[arg-type]
            case ("look", set(late), None | int() as low_water):
                pair.look(low_water, late)
            case ("clear",):
                pair.ledger.clear()
                pair.twin.clear()
            case ("wait", float(seconds)):
                pair.now += seconds
            case ("restart",):
                pair.restart()
            case ("rewind", int(key)):
                pair.rewind(key)
            case _:
                raise AssertionError(step)
        pair.compare()


intervals = st.sets(st.integers(-30, 30)).map(
    lambda keys: missing(-40, 40, sorted(keys))
)


@given(intervals, intervals)
def test_what_is_noted_twice_counts_from_the_second_time(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    ledger = GapLedger(TIMEOUT, 1000)
    ledger.note(first, 1000.0, None)
    ledger.note(second, 1050.0, None)
    again = {key for low, high in second for key in range(low, high + 1)}
    once = {key for low, high in first for key in range(low, high + 1)} - again
    assert {key for key in range(-45, 45) if key in ledger} == once | again
    ledger.due(1000.0 + TIMEOUT)
    assert ledger.looked(1000.0 + TIMEOUT).keys == len(once)
    assert {key for key in range(-45, 45) if key in ledger} == again


@given(intervals, st.integers(0, 10))
def test_joined_ranges_hold_every_gap_and_little_else(
    gaps: list[tuple[int, int]], near: int
) -> None:
    joined = ranges(gaps, near)
    for low, high in gaps:
        assert sum(first <= low and high <= last for first, last in joined) == 1
    assert all(b[0] - a[1] - 1 > near for a, b in zip(joined, joined[1:]))  # noqa: B905, RUF007 - one is shorter
    kept = {key for low, high in gaps for key in range(low, high + 1)}
    read = {key for low, high in joined for key in range(low, high + 1)}
    assert len(read - kept) <= near * (len(gaps) - len(joined))

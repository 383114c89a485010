"""Since when a hole is looked for, and which are none that can be filled."""

from dataclasses import dataclass, field

from tests.unit.sources.sql.test_poller import Table
from walstream.sources.sql.intervals import Interval
from walstream.sources.sql.missing_keys import Holes
from walstream.sources.sql.progress import GapBounds, Horizon, TableProgress
from walstream.testing import MemoryStore

HOUR_S = 3600.0


@dataclass
class Scene:
    """A table whose clock stands still until it is moved."""

    table: Table = field(default_factory=Table)
    marks: bool = False

    def __post_init__(self) -> None:
        self.table.now = lambda: self.table.at  # type: ignore[method-assign]
        if not self.marks:
            self.table.mark = lambda: None  # type: ignore[assignment,method-assign,return-value]
        bounds = GapBounds(HOUR_S, 4)
        self.progress = TableProgress(MemoryStore(), "t", bounds, self.table.now)
        self.progress.key = 0
        self.holes = Holes("t", self.progress, self.table.connect)

    def note(self, *gaps: Interval) -> None:
        self.holes.begin_reading()
        self.holes.note(gaps)


def test_a_hole_is_as_old_as_the_look_that_saw_a_key_above_it() -> None:
    scene = Scene()
    first = scene.table.at
    scene.holes.see(100)
    scene.table.at += 60
    scene.note((5, 6))
    scene.table.at += 60
    scene.note((90, 110))  # some of it may have been drawn since
    assert scene.progress.gaps.oldest == first
    due = scene.progress.gaps.due(first + HOUR_S)
    assert due == [(5, 6), (90, 100), (101, 110)]  # each was never looked at
    assert scene.progress.gaps.looked(first + HOUR_S).keys == 2 + 11
    assert list(scene.progress.gaps.due(first + HOUR_S + 60)) == []


def test_a_later_catch_up_has_a_beginning_of_its_own() -> None:
    scene = Scene()
    scene.holes.see(100)
    began = scene.table.at
    scene.progress.key = 50
    scene.table.at += 60
    scene.holes.see(120)  # the first goes on
    assert scene.progress.horizon == Horizon(100, began)
    scene.progress.key = 100
    scene.holes.see(120)
    assert scene.progress.horizon == Horizon(120, began + 60)


def test_what_is_missing_when_its_time_is_over_was_looked_for_by_the_reading() -> None:
    scene = Scene()
    scene.holes.see(100)
    scene.table.at += HOUR_S
    scene.note((5, 6), (99, 103))
    assert scene.progress.given_up == 2 + 2
    assert scene.progress.gaps.keys == 3


def test_a_low_water_mark_keeps_old_holes_too() -> None:
    scene = Scene(marks=True)
    scene.table.open_marks = [0]
    scene.holes.see(100)
    scene.table.at += HOUR_S
    scene.note((5, 6))
    assert scene.progress.given_up == 0
    assert scene.progress.gaps.keys == 2
    scene.progress.gaps.due(scene.table.at, scene.holes.low)
    assert scene.progress.gaps.looked(scene.table.at).keys == 0  # one still runs


def test_keys_that_start_anew_settle_nothing() -> None:
    scene = Scene(Table({50}), marks=True)
    scene.holes.look_back()
    scene.table.at += 61
    scene.holes.look_back()  # all transactions of then have ended
    scene.note((1, 1), (3, 3))
    scene.note((5, 5))
    assert scene.progress.gaps.keys == 2  # of a half full ledger it leaves them out
    scene.holes.forget()
    scene.note((5, 5))
    assert scene.progress.gaps.keys == 3


def test_nothing_is_settled_while_a_transaction_of_then_may_be_open() -> None:
    for open_marks, passed_s in (([0], 61), ([], 59)):
        scene = Scene(Table({50}), marks=True)
        scene.table.open_marks = [*open_marks]
        scene.holes.look_back()
        scene.table.at += passed_s
        scene.holes.look_back()
        scene.note((1, 1), (3, 3))
        scene.note((5, 5))
        assert scene.progress.gaps.keys == 3


def test_keys_that_were_drawn_just_before_the_sequence_left_a_gap_are_awaited() -> None:
    scene = Scene(Table({50}, next=8))
    scene.note((5, 9))
    for following, kept in ((8, 2), (51, 2), (51, 0)):
        scene.table.next = following
        scene.table.at += HOUR_S
        scene.progress.gaps.due(scene.table.at)
        scene.holes.end_round()
        assert scene.progress.gaps.keys == kept

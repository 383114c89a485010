"""Times lead to the first transaction that was not committed before them, exactly."""

from itertools import pairwise
from random import Random

import pytest

from walstream.lsn import Lsn
from walstream.pipeline import commit_times
from walstream.pipeline.commit_times import CommitTimes, TimeIndex
from walstream.testing import MemoryStore

RETAIN = 40_000_000
START = 1_000_000


class State:
    """A state folder, and what was ever committed."""

    def __init__(self, retain: int = RETAIN) -> None:
        self.folder = MemoryStore()
        self.retain = retain
        self.slot_start = START
        self.resume = START
        self.full = False
        self.commits: list[tuple[Lsn, int]] = []
        self.times = self.restart()

    def restart(self) -> CommitTimes:
        self.times = CommitTimes(
            TimeIndex.of(self.folder),
            resume=self.resume,
            retain=self.retain,
            slot_start=self.slot_start,
        )
        return self.times

    def commit(self, lsn: Lsn, time: int) -> None:
        self.commits.append((lsn, time))
        self.times.note(lsn, time)

    def store(self, resume: Lsn) -> None:
        documents = self.times.documents(resume)
        if self.full:
            return
        self.folder.write(documents)
        self.resume = resume
        self.times.stored()

    @property
    def index(self) -> TimeIndex:
        found = TimeIndex.of(self.folder)
        assert found is not None
        return found

    @property
    def oldest(self) -> Lsn:
        return max(self.slot_start, self.resume - self.retain)

    def found(self, time: int) -> Lsn | None:
        """Do what a search of the WAL does from where the index says."""
        start = self.index.look(time, self.oldest)
        return next((lsn for lsn, at in self.commits if lsn >= start and at >= time), 0)

    def first(self, time: int) -> Lsn | None:
        return next((lsn for lsn, at in self.commits if at >= time), 0)

    def reach(self) -> tuple[int, int] | None:
        return self.index.reach(self.oldest, self.resume)


@pytest.mark.parametrize("seed", range(8))
def test_each_time_within_reach_leads_to_the_first_of_all_commits(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    state = State()
    lsn, clock, read = START, 0, 0
    for _ in range(3000):
        lsn += random.choice((100, 5_000, 100_000))
        clock += random.choice((0, 10, 500))
        if random.random() < 0.001:
            clock -= 20_000  # somebody sets it
        state.commit(lsn, clock - random.randrange(200))
        read = lsn + 48
        if random.random() < 0.3:
            state.store(read)
            if random.random() < 0.01:
                state.slot_start = state.oldest
                state.restart()
    state.store(read)
    reach = state.reach()
    assert reach is not None
    first, last = reach
    within = {at for at_lsn, at in state.commits if at_lsn >= state.oldest}
    assert last == max(within)
    wanted = [first, last, *random.sample(range(first, last + 1), 300)]
    for time in wanted:
        assert state.found(time) == state.first(time)
        assert (state.found(time) or 0) >= state.oldest
    # and not one that was within is passed over for long: the index is fine
    assert sum(state.first(time) == 0 for time in wanted) == 0
    assert len(state.index.closed) < 600
    ends = [stretch.end for stretch in state.index.closed]
    assert max(end - start for start, end in pairwise(ends)) < RETAIN // 20


def test_what_was_committed_below_the_reach_is_never_skipped() -> None:
    state = State(retain=20_000)
    state.commit(START + 100, 7_000)  # a clock that was ahead
    state.store(START + 10_000)
    for step in range(2, 12):
        state.commit(START + step * 10_000, step * 100)
        state.store(START + step * 10_000 + 48)
    assert state.oldest > START + 100
    assert state.reach() is None
    state.commit(START + 130_000, 8_000)
    state.store(START + 130_048)
    assert state.reach() == (7_001, 8_000)


def test_what_comes_behind_a_rewind_takes_the_place_of_what_was_known() -> None:
    state = State()
    for step in range(1, 40):
        state.commit(START + step * 100_000, step * 10)
        state.store(START + step * 100_000 + 48)
    state.resume = START + 2_000_000
    assert state.reach() == (10, 200)
    state.restart()
    # a standby that was promoted may tell it otherwise
    state.commits = state.commits[:19]
    for step in range(20, 40):
        state.commit(START + step * 100_000, 500 - step)
        state.store(START + step * 100_000 + 48)
    for time in range(10, 481):
        assert state.found(time) == state.first(time)
    assert state.reach() == (10, 480)


def test_a_position_that_moved_without_it_begins_it_anew() -> None:
    state = State()
    state.commit(START + 100, 10)
    state.store(START + 148)
    state.resume = START + 5_000  # by a version that keeps no index
    state.restart()
    state.commit(START + 6_000, 30)
    state.store(START + 6_048)
    assert state.reach() == (30, 30)
    assert state.found(30) == START + 6_000


def test_nothing_is_known_before_the_first_commit() -> None:
    state = State()
    assert TimeIndex.of(MemoryStore()) is None
    state.store(START + 50)
    assert state.reach() is None
    assert state.index.look(0, START) == START + 50


def test_what_could_not_be_stored_is_stored_with_the_next() -> None:
    state = State()
    state.store(START)
    state.commit(START + 1_000_000, 10)
    state.full = True
    state.store(START + 1_000_048)
    state.full = False
    state.store(START + 1_000_048)
    assert state.reach() == (10, 10)
    assert len(state.index.closed) == 1


def test_most_positions_bring_only_the_open_stretch() -> None:
    state = State()
    state.store(START)
    state.commit(START + 100, 10)
    state.store(START + 148)
    state.folder = MemoryStore()
    state.commit(START + 200, 20)
    state.store(START + 248)
    assert state.folder.names("") == ["times.open"]
    assert state.folder.read("times.open") == {"end": START + 248, "latest": 20}


def test_memory_is_bounded_while_nothing_can_be_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit_times, "_NOTED", 4)
    state = State()
    for step in range(1, 100):
        state.commit(START + step * 100_000, step if step != 50 else 200)
    assert len(state.times._noted) == 4  # noqa: SLF001 - what is in memory
    for step in (3, 50, 99):
        state.store(START + step * 100_000 + 48)
    assert state.reach() == (1, 200)
    for time in range(1, 201):
        assert state.found(time) == state.first(time)

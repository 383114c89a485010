"""Random schedules: transactions that commit in any order, polls, crashes in between.

Every row that was committed is sent, whatever came first; what is sent twice is what a
crash left undelivered to the ledger. Without the ledger some schedule loses a row.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.sources.sql.test_poller import Table
from walstream.sources.sql.poller import Poller, PollingRules
from walstream.sources.sql.progress import GapBounds, TableProgress
from walstream.sources.sql.task import Range
from walstream.spark.outcome import ChunkDone
from walstream.testing import MemoryStore

HOUR_S = 3600.0


class Crashed(Exception):
    """The process is gone, amid a poll."""


@dataclass
class Transactions:
    """Who drew which keys, and has neither committed nor rolled back."""

    table: Table = field(default_factory=Table)
    open: list[tuple[int, list[int]]] = field(default_factory=list)
    next_key: int = 1

    def begin(self, rows: int) -> None:
        keys = list(range(self.next_key, self.next_key + rows))
        self.next_key += rows
        self.table.clock += 1
        self.open.append((self.table.clock, keys))
        self._mark()

    def end(self, which: int, *, commits: bool) -> None:
        if not self.open:
            return
        _, keys = self.open.pop(which % len(self.open))
        if commits:
            self.table.keys |= set(keys)
        self._mark()

    def _mark(self) -> None:
        self.table.open_marks = [mark for mark, _ in self.open]


class Polling:
    """A poller that may be killed, and begins again from what was stored."""

    def __init__(self, table: Table, rules: PollingRules, bounds: GapBounds) -> None:
        self._table, self._rules, self._bounds = table, rules, bounds
        self._positions = MemoryStore()
        self._poller = self._made()
        self.crash_after: int | None = None  # ranges

    def _made(self) -> Poller:
        progress = TableProgress(
            self._positions, self._rules.table, self._bounds, self._table.now
        )
        return Poller(self._rules, progress, self._table.connect, self._run)

    def _run(
        self, parts: Sequence[Range], on_done: Callable[[ChunkDone], None]
    ) -> bool:
        for part in parts:
            done = self._table.read(part)
            if self.crash_after == 0:
                raise Crashed
            if self.crash_after is not None:
                self.crash_after -= 1
            on_done(done)
        return True

    def poll(self) -> None:
        try:
            self._poller.poll()
        except Crashed:
            self.crash_after = None
            self._poller = self._made()


def lost(
    seed: int, steps: int, rules: PollingRules, bounds: GapBounds, *, marks: bool = True
) -> set[int]:
    """Run one schedule to its end; give the committed keys that were not sent."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    transactions = Transactions()
    table = transactions.table
    if not marks:
        table.mark = lambda: None  # type: ignore[assignment,method-assign,return-value]
    polling = Polling(table, rules, bounds)
    for _ in range(steps):
        match dice.randrange(8):
            case 0 | 1 | 2:
                transactions.begin(dice.randrange(1, 4))
            case 3 | 4:
                transactions.end(dice.randrange(16), commits=dice.random() < 0.8)
            case 5 | 6:
                polling.poll()
            case _:
                polling.crash_after = dice.randrange(3)
    while transactions.open:
        transactions.end(dice.randrange(16), commits=True)
        polling.poll()
    polling.crash_after = None
    for _ in range(300):
        table.at += bounds.timeout_s / 4
        polling.poll()
    return table.keys - set(table.sent)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    steps=st.integers(1, 80),
    limit=st.sampled_from([0, 1, 3, 50]),
    most=st.sampled_from([2, 10, 1000]),
)
def test_every_committed_row_is_sent(
    seed: int, steps: int, limit: int, most: int
) -> None:
    rules = PollingRules("t", limit=limit)
    assert not lost(seed, steps, rules, GapBounds(HOUR_S, most))


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    steps=st.integers(1, 80),
    limit=st.sampled_from([0, 1, 3]),
    most=st.sampled_from([2, 10, 1000]),
)
def test_without_a_low_water_mark_too_where_none_is_open_for_longer_than_the_timeout(
    seed: int, steps: int, limit: int, most: int
) -> None:
    rules = PollingRules("t", limit=limit)
    longer = GapBounds(1e6, most)  # than any schedule
    assert not lost(seed, steps, rules, longer, marks=False)


def test_without_the_ledger_rows_are_lost() -> None:
    rules = PollingRules("t")
    assert any(lost(seed, 60, rules, GapBounds(0.0, 1000)) for seed in range(20))


def test_a_transaction_longer_than_the_timeout_is_waited_for() -> None:
    transactions = Transactions()
    table = transactions.table
    polling = Polling(table, PollingRules("t"), GapBounds(HOUR_S, 1000))
    transactions.begin(1)
    transactions.begin(1)
    transactions.end(1, commits=True)
    for _ in range(10):
        polling.poll()
        table.at += HOUR_S
    transactions.end(0, commits=True)
    polling.poll()
    assert table.sent == [2, 1]

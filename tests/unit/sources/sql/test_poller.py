"""Polls of one table: a set of keys stands for the database, a list for Kafka."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from walstream.errors import RecordRefused, Transient
from walstream.sources.sql import poller as pollers
from walstream.sources.sql.intervals import missing
from walstream.sources.sql.key_restart import KeysRestarted
from walstream.sources.sql.poller import Poller, PollingRules
from walstream.sources.sql.progress import (
    POLLED,
    GapBounds,
    PolledTableDocument,
    TableProgress,
)
from walstream.sources.sql.task import Ahead, Range, RangeDone
from walstream.spark.outcome import ChunkDone
from walstream.testing import MemoryStore

HOUR_S = 3600.0
LOW = 1 << 40  # of a server on which nothing is open


@dataclass(frozen=True)
class Mark:
    next: int
    low: int


@dataclass
class Table:
    """Keys that are committed, and those that were delivered."""

    keys: set[int] = field(default_factory=set)
    sent: list[int] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    refused: int | None = None  # a key that no topic takes
    open_marks: list[int] = field(default_factory=list)
    stopped: bool = False
    clock: int = 0
    connected: int = 0  # times
    next: int | None = None  # key, where the engine tells
    sequence: str = ""  # that gives the keys, likewise
    replica: bool = False
    at: float = 1_000_000.0

    def now(self) -> float:
        """Let a minute pass from one look at the clock to the next."""
        self.at += 60
        return self.at

    @contextlib.contextmanager
    def connect(self) -> Iterator["Table"]:
        self.connected += 1
        yield self

    def mark(self) -> Mark:
        self.clock += 1
        return Mark(self.clock, min(self.open_marks, default=self.clock))

    def newest(self) -> int | None:
        return max(self.keys, default=None)

    def oldest(self) -> int | None:
        return min(self.keys, default=None)

    def ahead(self, after: int, rows: int) -> int | None:
        found = sorted(key for key in self.keys if key > after)[:rows]
        return found[-1] if found else None

    def cuts(self, low: int, high: int, parts: int) -> list[int]:
        step = max(1, (high - low) // parts)
        return list(range(low + step, high, step))[: parts - 1]

    def next_key(self) -> int | None:
        return self.next

    def is_replica(self) -> bool:
        return self.replica

    def origin(self) -> str:
        return self.sequence

    def present(self, intervals: Sequence[tuple[int, int]], most: int) -> list[int]:
        found = sorted(
            key for key in self.keys if any(a <= key <= b for a, b in intervals)
        )
        return found[:most]

    def run(self, parts: Sequence[Range], on_done: Callable[[ChunkDone], None]) -> bool:
        """Do what Spark and Kafka do; the last part is done first."""
        if self.stopped:
            return False
        for part in reversed(parts):
            self.ranges.append(part)
            on_done(self.read(part))
        return True

    def read(self, part: Range) -> RangeDone:
        span = part.span
        if not isinstance(span, Ahead):
            found = [key for key in span.keys if key in self.keys]
            self.sent += found
            return RangeDone(part.number, len(found), 0, keys=tuple(found))
        found = sorted(key for key in self.keys if span.low < key <= span.high)
        cut = span.limit is not None and len(found) >= span.limit
        found = found[: span.limit]
        reached, refused = found[-1] if cut else span.high, None
        if self.refused in found:
            found = found[: found.index(self.refused)]
            reached = found[-1] if found else span.low
            refused = RecordRefused("too large")
        self.sent += found
        return RangeDone(
            part.number,
            len(found),
            0,
            reached=reached,
            missing=tuple(missing(span.low, reached, found)),
            refused=refused,
        )


@pytest.fixture
def positions() -> MemoryStore:
    return MemoryStore()


def made(
    table: Table,
    positions: MemoryStore,
    rules: PollingRules | None = None,
    *,
    timeout_s: float = 100 * HOUR_S,
    most: int = 1000,
) -> Poller:
    rules = rules or PollingRules("t")
    progress = TableProgress(
        positions, rules.table, GapBounds(timeout_s, most), table.now
    )
    return Poller(rules, progress, table.connect, table.run)


def test_a_limit_is_of_each_poll_and_a_restart_sends_nothing(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2, 3, 4, 5, 6, 7})
    sizes = []
    for _ in range(4):
        before = len(table.sent)
        made(table, positions, PollingRules("t", limit=3)).poll()
        sizes.append(len(table.sent) - before)
    assert sizes == [3, 3, 1, 0]
    assert table.sent == [1, 2, 3, 4, 5, 6, 7]


def test_rows_that_come_in_between_do_not_count_beyond_the_limit(
    positions: MemoryStore,
) -> None:
    table = Table({2, 4, 6, 8})
    ahead = table.ahead

    def and_then_one_commits(after: int, rows: int) -> int | None:
        found = ahead(after, rows)
        table.keys |= {after + 1}
        return found

    table.ahead = and_then_one_commits  # type: ignore[method-assign]
    poller = made(table, positions, PollingRules("t", limit=2))
    poller.poll()
    assert len(table.sent) == 2


def test_a_row_that_commits_late_under_a_lower_key_is_read(
    positions: MemoryStore,
) -> None:
    table = Table({1, 4})
    poller = made(table, positions)
    poller.poll()
    table.keys |= {2, 3, 5}
    poller.poll()
    assert sorted(table.sent) == [1, 2, 3, 4, 5]
    assert poller.told.gaps == 0


def test_keys_that_the_engine_has_yet_to_give_are_looked_for_until_it_did(
    positions: MemoryStore,
) -> None:
    """A row was inserted by hand, with a key far above the sequence's."""
    table = Table({1, 2, 900}, next=3)
    poller = made(table, positions, timeout_s=HOUR_S)

    def pass_hours() -> None:
        for _ in range(200):
            poller.poll()

    for key in (5, 6, 7):  # 3 and 4 never come
        pass_hours()
        table.keys |= {key}
        table.next = key + 1
    pass_hours()
    assert sorted(table.sent) == [1, 2, 5, 6, 7, 900]
    assert poller.told.given_up == 2
    assert poller.told.missing_keys == 892
    table.next = 901  # beyond it
    pass_hours()
    assert poller.told.given_up == 894
    assert poller.told.missing_keys == 0


def test_next_key_of_a_sequence_that_gives_none_keeps_no_gaps(
    positions: MemoryStore,
) -> None:
    table = Table(set(range(2, 1000, 2)), next=1)
    poller = made(table, positions, timeout_s=HOUR_S)
    for _ in range(200):
        poller.poll()
    assert poller.told.missing_keys == 0


def test_the_ledger_survives_a_restart(positions: MemoryStore) -> None:
    table = Table({1, 4})
    made(table, positions).poll()
    table.keys |= {2}
    made(table, positions).poll()
    assert table.sent == [1, 4, 2]
    assert made(table, positions).told.missing_keys == 1


def test_a_poll_that_finds_nothing_asks_little_of_the_server(
    positions: MemoryStore,
) -> None:
    table = Table({1, 4})
    poller = made(table, positions)
    for _ in range(100):
        poller.poll()
    before = table.connected, table.clock
    for _ in range(5):
        poller.poll()
    assert table.connected == before[0] + 5
    assert table.clock <= before[1] + 1  # one look at missing keys may be due


def test_a_row_below_the_first_one_may_come_late(positions: MemoryStore) -> None:
    table = Table({7})
    poller = made(table, positions)
    poller.poll()
    table.keys |= {1}
    poller.poll()
    assert table.sent == [7, 1]


def test_a_row_below_a_negative_one_may_come_late() -> None:
    for first in (0, -7, -(1 << 63) + 3):
        for start in ("beginning", "end"):
            table = Table({first})
            poller = made(table, MemoryStore(), PollingRules("t", start=start))
            poller.poll()
            table.keys |= {first - 2}
            poller.poll()
            assert first - 2 in table.sent


def test_without_a_ledger_it_is_missed(positions: MemoryStore) -> None:
    table = Table({1, 4})
    poller = made(table, positions, timeout_s=0)
    poller.poll()
    table.keys |= {2, 3, 5}
    poller.poll()
    assert table.sent == [1, 4, 5]


def test_what_is_there_already_is_passed_over_where_that_is_asked_for(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2, 5})
    poller = made(table, positions, PollingRules("t", start="end"))
    poller.poll()
    assert table.sent == []
    table.keys |= {4, 6}  # 4: of a transaction that ran
    poller.poll()
    assert sorted(table.sent) == [4, 6]
    after = made(table, MemoryStore(), PollingRules("t", start=5))
    after.poll()
    assert table.sent[2:] == [6]


def test_a_refused_row_is_the_next_one_again(positions: MemoryStore) -> None:
    table = Table({1, 2, 3, 4}, refused=3)
    poller = made(table, positions)
    for _ in range(2):
        with pytest.raises(RecordRefused):
            poller.poll()
        assert table.sent == [1, 2]
        assert poller.told.key == 2
        assert made(table, positions).told.error == "too large"  # who asks later
    table.refused = None
    poller.poll()
    assert table.sent == [1, 2, 3, 4]
    assert made(table, positions).told.error == ""


def test_a_refused_row_that_was_deleted_holds_up_nothing(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2}, refused=2)
    with pytest.raises(RecordRefused):
        made(table, positions).poll()
    table.keys = {1}
    made(table, positions).poll()
    assert made(table, positions).told.error == ""


def test_the_low_water_mark_is_told(positions: MemoryStore) -> None:
    table = Table({1, 4})
    poller = made(table, positions)
    told = [poller.told.low]
    for low in (7, 9):
        table.open_marks = [low]
        poller.poll()
        told.append(poller.told.low)
    assert told == [None, 7, 9]


def test_a_full_ledger_holds_new_rows_back_until_there_is_room(
    positions: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "RANGE_ROWS", 2)
    table = Table(set(range(2, 40, 2)))
    table.open_marks = [0]  # a transaction that may fill any of them
    poller = made(table, positions, most=4)
    poller.poll()
    assert poller.held
    held = list(table.sent)
    assert held == [2, 4, 6, 8]
    poller.poll()
    assert table.sent == held
    for _ in range(40):
        table.keys |= set(range(1, 40))
        poller.poll()
    assert sorted(table.sent) == list(range(1, 40))


def test_parallel_ranges_move_the_position_over_what_is_done_in_a_row(
    positions: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "_MANY", 10)
    monkeypatch.setattr(pollers, "FEW_ROWS", 10)
    table = Table(set(range(1, 101)))
    stored = []
    run = table.run

    def watched(parts: Sequence[Range], on_done: Callable[[ChunkDone], None]) -> bool:
        def done(one: ChunkDone) -> None:
            on_done(one)
            stored.append((POLLED.of("t").read(positions) or PolledTableDocument()).key)

        return run(parts, done)

    table.run = watched  # type: ignore[method-assign]
    poller = made(table, positions, PollingRules("t", parallelism=2))
    poller.poll()
    assert len(table.ranges) == 8
    # the last was done first: nothing may move before the first is
    assert stored == [0] * 7 + [100]
    assert sorted(table.sent) == list(range(1, 101))


def test_holes_from_before_every_open_transaction_are_not_remembered(
    positions: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "RANGE_ROWS", 4)
    table = Table(set(range(2, 2000, 2)))
    poller = made(table, positions, most=20)
    for _ in range(20):
        poller.poll()
    assert table.sent == sorted(table.keys)
    # those of the first ranges alone: then all that was there had ended
    assert poller.told.gaps <= 20


def test_while_a_transaction_is_open_every_hole_is(
    positions: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "RANGE_ROWS", 4)
    table = Table(set(range(2, 200, 2)), open_marks=[0])
    poller = made(table, positions)
    poller.poll()
    assert poller.told.gaps == 99


def test_parallel_ranges_are_no_larger_the_more_there_is_to_read(
    positions: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "_MANY", 10)
    monkeypatch.setattr(pollers, "FEW_ROWS", 10)
    monkeypatch.setattr(pollers, "RANGE_ROWS", 5)
    table = Table(set(range(1, 1001)))
    made(table, positions, PollingRules("t", parallelism=2)).poll()
    assert sorted(table.sent) == list(range(1, 1001))
    spans = [part.span for part in table.ranges]
    assert all(isinstance(one, Ahead) and one.high - one.low <= 10 for one in spans)


def test_nothing_is_missed_below_the_first_row_where_the_end_is_the_beginning(
    positions: MemoryStore,
) -> None:
    poller = made(Table({1, 2, 5}), positions, PollingRules("t", start="end"))
    poller.poll()
    assert poller.told.missing_keys == 2  # 3 and 4


def test_a_stop_does_not_forget_why_a_row_was_refused(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2}, refused=2)
    poller = made(table, positions)
    with pytest.raises(RecordRefused):
        poller.poll()
    table.stopped = True
    poller.poll()
    assert poller.told.error == "too large"


def test_keys_that_start_anew_keep_the_table_waiting_until_it_is_rewound(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2, 3})
    poller = made(table, positions)
    poller.poll()
    table.keys = {1, 2}
    for _ in range(2):
        with pytest.raises(KeysRestarted, match="greatest key is 2, and its position"):
            poller.poll()
    assert table.sent == [1, 2, 3]
    progress = TableProgress(positions, "t", GapBounds(HOUR_S, 9))
    progress.rewind(0)
    made(table, positions).poll()
    assert table.sent == [1, 2, 3, 1, 2]


@pytest.mark.parametrize("limit", [0, 2])
def test_a_table_that_may_be_read_anew_is_read_from_its_first_key(
    limit: int, positions: MemoryStore
) -> None:
    table = Table({1, 5, 9})
    rules = PollingRules("t", limit=limit, rereads=True)
    poller = made(table, positions, rules)
    for _ in range(2):
        poller.poll()
    table.keys = {2, 3}
    poller.poll()
    assert table.sent == [1, 5, 9, 2, 3]
    assert poller.told.missing_keys == 1  # none of the table that was


def test_keys_that_grow_past_the_position_while_the_table_waits_are_not_forgotten(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2, 3})
    made(table, positions).poll()
    table.keys = {1}
    with pytest.raises(KeysRestarted):
        made(table, positions).poll()
    for newest in (3, 9):
        table.keys = set(range(1, newest + 1))
        with pytest.raises(KeysRestarted):  # also after a restart of walstream
            made(table, positions).poll()
    reread = PollingRules("t", rereads=True)
    made(table, positions, reread).poll()
    assert table.sent == [1, 2, 3, *range(1, 10)]


@pytest.mark.parametrize("rereads", [False, True])
def test_a_replica_that_is_behind_is_waited_for(
    rereads: bool,
    positions: MemoryStore,
) -> None:
    table = Table({1, 2, 3}, next=3)
    poller = made(table, positions, PollingRules("t", rereads=rereads))
    poller.poll()
    table.replica, table.keys = True, {1, 2}
    for _ in range(2):
        with pytest.raises(Transient, match="replica is behind"):
            poller.poll()
    table.keys = {1, 2, 3, 4}
    poller.poll()
    assert table.sent == [1, 2, 3, 4]


def test_rows_that_were_only_deleted_restart_nothing(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2, 3})
    poller = made(table, positions)
    poller.poll()
    table.keys = set()
    poller.poll()
    table.keys, table.next = {1}, 4  # the engine goes on above
    poller.poll()
    table.keys.add(4)
    poller.poll()
    assert table.sent == [1, 2, 3, 4]
    table.keys, table.next = set(), 1  # it does not: before a row is lost
    with pytest.raises(KeysRestarted, match="next key is 1"):
        poller.poll()


def test_keys_that_grew_past_the_position_are_known_by_their_sequence(
    positions: MemoryStore,
) -> None:
    table = Table({1, 2, 3}, sequence="7 8 9")
    poller = made(table, positions)
    poller.poll()
    table.keys.add(4)
    poller.poll()
    table.keys, table.sequence = set(range(1, 10)), "7 10 9"
    with pytest.raises(KeysRestarted, match="created again"):
        made(table, positions).poll()
    assert table.sent == [1, 2, 3, 4]
    TableProgress(positions, "t", GapBounds(HOUR_S, 9)).rewind(
        4
    )  # they go on, it is said
    made(table, positions).poll()
    made(table, positions).poll()
    assert table.sent == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_bulk_that_comes_late_is_asked_for_in_parts(
    positions: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "FEW_ROWS", 10)
    table = Table({1, 1000})
    asked: list[int] = []
    present = table.present

    def watched(intervals: Sequence[tuple[int, int]], most: int) -> list[int]:
        found = present(intervals, most)
        asked.append(len(found))
        return found

    table.present = watched  # type: ignore[method-assign]
    poller = made(table, positions)
    poller.poll()
    table.keys |= set(range(100, 150))
    poller.poll()
    assert sorted(table.sent) == [1, *range(100, 150), 1000]
    assert max(asked) == 10
    assert poller.told.missing_keys == 998 - 50


def test_holes_of_an_old_table_are_as_old_as_the_first_look_at_it(
    positions: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a low-water mark; a ledger's worth is read, an hour later the rest."""
    monkeypatch.setattr(pollers, "RANGE_ROWS", 2)
    table = Table(set(range(2, 4000, 2)))
    table.mark = lambda: None  # type: ignore[assignment,method-assign,return-value]
    table.now = lambda: table.at  # type: ignore[method-assign]
    poller = made(table, positions, timeout_s=HOUR_S, most=10)
    poller.poll()
    assert poller.held
    table.keys.add(1)
    table.at += HOUR_S / 2
    made(table, positions, timeout_s=HOUR_S, most=10).poll()  # a restart in between
    table.keys.add(4001)
    table.at += HOUR_S / 2
    poller = made(table, positions, timeout_s=HOUR_S, most=10)
    for _ in range(2):
        poller.poll()
    assert sorted(table.sent) == sorted(table.keys)
    assert not poller.held
    assert poller.told.missing_keys == 2  # 3999 and 4000: drawn after it

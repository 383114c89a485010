"""Schedules of transactional delivery: nothing twice, nothing lost, nothing in part."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from typing import Any

import pytest

from tests.simulation.faults import TRANSACTION_FAULTS
from tests.simulation.installation import installed
from tests.simulation.kafka import SimCluster
from tests.simulation.kafka_transactions import POSITIONS, TransactionLog
from tests.simulation.run import Run, run
from tests.simulation.schedule import Schedule
from tests.simulation.transaction_rules import ended_by_whoever_closes
from walstream.kafka.flush_policy import FlushPolicy
from walstream.kafka.unmarked_record import UnmarkedRecords

SCHEDULES = 60
CALM = replace(
    Schedule.of(3),
    faults=[],
    kills=[],
    freezes=[],
    reads=[],
    ddl=[],
    rows=[],
    transactions=[(0.0, "transactional")],
)


@pytest.fixture(autouse=True)
def ports() -> Iterator[None]:
    with installed():
        yield


def transactional() -> Iterator[Schedule]:
    """Yield schedules of one seed after the other, of this delivery alone."""
    return (one for one in map(Schedule.of, count()) if one.transactions)


def test_schedules_violate_nothing_and_repeat_nothing() -> None:
    calls: Counter[str] = Counter()
    lives = records = repeated = 0
    for schedule in islice(transactional(), SCHEDULES):
        outcome = run(schedule)
        assert not outcome.violation, f"seed {schedule.seed}: {outcome.violation}"
        lives += outcome.lives
        records += outcome.records
        repeated += outcome.repeated if schedule.once else 0
        calls.update(outcome.calls)
    # what the search is about happened
    assert lives > SCHEDULES * 3 // 2
    assert records > SCHEDULES * 10
    assert not repeated
    asked = {f"{what} transaction" for what in ("init", "begin", "commit")}
    assert asked <= calls.keys()


def test_no_producer_hears_of_more_than_it_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else its policy takes what waits for linger.ms for delivered, or flushes on."""
    seen = 0
    is_due = FlushPolicy.is_due

    def patched(self: FlushPolicy, now_s: float, *, quiet: bool) -> bool:
        nonlocal seen
        seen += self.sent > 1
        assert self.reported <= self.sent
        return is_due(self, now_s, quiet=quiet)

    monkeypatch.setattr(FlushPolicy, "is_due", patched)
    for schedule in islice(transactional(), 6):
        assert not run(replace(schedule, relays=[], members=[])).violation
    assert seen


def test_a_start_waits_for_a_leader_of_the_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lose(cluster: SimCluster) -> None:
        place, until = (POSITIONS, 0), cluster.world.now + 12.0
        cluster.transactions.leaderless[place] = until
        cluster.slow[place] = until

    monkeypatch.setitem(TRANSACTION_FAULTS, "leaderless", lose)
    steps = [*CALM.transactions, (0.3, "leaderless")]
    for seed in range(10):
        outcome = run(replace(CALM, seed=seed, kills=[150], transactions=steps))
        assert not outcome.violation, seed
        assert not outcome.detached, seed


def test_what_is_whole_is_committed_before_one_that_waits_for_a_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Readers of other partitions would have nothing until it is too old, and ends."""
    place, until = ("a.public.one", 0), 240.0
    ends: list[tuple[float, bool]] = []  # of sink a's transactions

    def lose(cluster: SimCluster) -> None:
        cluster.transactions.leaderless[place] = until
        cluster.slow[place] = until

    end = TransactionLog._end

    def note(
        self: TransactionLog, name: str, one: Any, *, commits: bool, by: Any
    ) -> None:
        if "-a-" in name:
            ends.append((self._world.now, commits))
        end(self, name, one, commits=commits, by=by)

    monkeypatch.setattr(TransactionLog, "_end", note)
    monkeypatch.setitem(TRANSACTION_FAULTS, "lose", lose)
    draw = random.Random(8)  # noqa: S311 - repeatable on purpose
    commits = [(draw.uniform(0, 200), draw.getrandbits(32)) for _ in range(60)]
    steps = [*CALM.transactions, (0.3, "lose")]
    one = Run(
        replace(CALM, seed=8, commits=sorted(commits), kills=[150], transactions=steps)
    )
    one.checker.once = False  # it is detached meanwhile
    assert not one.run().violation
    assert [commits for at, commits in ends if at < 100] == [True, True]
    assert all(commits for _, commits in ends)


@pytest.mark.parametrize("fault", TRANSACTION_FAULTS)
def test_each_fault_happens_without_a_violation(fault: str) -> None:
    steps = [(0.1 * at, fault) for at in range(1, 12)]
    outcome = run(replace(CALM, transactions=[*CALM.transactions, *steps]))
    assert [outcome.violation, outcome.stopped] == ["", ""]
    assert outcome.records


def test_a_schedule_is_one_history() -> None:
    schedule = next(islice(transactional(), 7, None))
    assert run(schedule).digest == run(schedule).digest


# what a search found, made short
FOUND: dict[str, Schedule] = {
    "a producer that closed aborted what an earlier commit had left open": replace(
        CALM,
        seed=57,
        commits=[(0.0097, 598613049), (0.1451, 2427818857), (0.2571, 612117014)],
        kills=[59, 39, 24, 25],
        reads=[(0.2429, "public.two")],
        transactions=[
            *CALM.transactions,
            (0.0534, "take over"),
            (0.2834, "leaderless"),
        ],
    ),
}


KEPT: Schedule = replace(
    CALM,
    seed=3462,
    commits=[
        (0.3784, 2273435621),
        (0.4707, 3388228634),
        (1.6174, 1210844588),
        (1.8976, 3100815578),
        (1.9107, 196652597),
    ],
    kills=[83],
    reads=[(0.2008, "public.three!"), (2.5686, "public.one")],
    transactions=[*CALM.transactions, (0.502, "leaderless"), (2.0993, "leaderless")],
)


def test_what_lacks_its_marker_is_lost_if_it_is_not_read_before_it_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So rare a rule that a search would take thousands of schedules to miss it."""
    assert not run(KEPT).violation
    monkeypatch.setattr(UnmarkedRecords, "keep", lambda *_: None)
    assert run(KEPT).violation.startswith("committed, and aborted")


def test_who_closes_leaves_its_transaction_to_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As rare: an abort takes along what an earlier commit had left open."""
    monkeypatch.setattr(*ended_by_whoever_closes())
    assert run(KEPT).violation.startswith("committed, and aborted")


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_stays_mended(what: str) -> None:
    assert not run(FOUND[what]).violation

"""Two instances with two state folders and one slot: who takes over, and what is lost.

The second one waits as a standby (`--adopt-slot`): it has no position of the slot. What
the first one, frozen, may still send when it goes on is docs/high-availability.md's.
"""

import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    distinct,
    foreign,
    missing,
)
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream

_FREEZES = int(os.environ.get("WALSTREAM_TEST_FREEZES") or 10)
_TIMEOUT_S = 6
_SEED = 1


@dataclass
class Pair:
    """A source whose slot one instance reads, and another one waits for."""

    database: Database
    first: Walstream
    second: Walstream
    reader: Reader
    oracle: OracleSlot = field(init=False)

    def __post_init__(self) -> None:
        self.first.start().streaming()
        self.oracle = OracleSlot(self.database)
        self.second.start("--adopt-slot").until("trying again")

    def settle(self) -> None:
        """Claim that all that was committed came, and nothing else."""
        expected = self.oracle.names()
        assert len(expected) > 100
        seen = 0

        def holds(records: list[Record]) -> bool:
            """Look at what came since; there may be a million of them."""
            nonlocal seen
            new, seen = records[seen:], len(records)
            return any(one.name == expected[-1] for one in new)

        self.reader.until(holds, 120, "the last op")
        records = self.reader.read()
        assert missing(expected, records) == []
        assert foreign(expected, records) == []


@pytest.fixture
def pair(
    own_postgres: OwnPostgres, kafka: KafkaServer, tmp_path: Path
) -> Iterator[Pair]:
    with paired(own_postgres, kafka, tmp_path, "idempotent") as made:
        yield made


@pytest.fixture
def fenced_pair(
    own_postgres: OwnPostgres, kafka: KafkaServer, tmp_path: Path
) -> Iterator[Pair]:
    with paired(own_postgres, kafka, tmp_path, "transactional") as made:
        yield made


@contextmanager
def paired(
    own_postgres: OwnPostgres,
    kafka: KafkaServer,
    tmp_path: Path,
    delivery: str,
    timeout_s: int = _TIMEOUT_S,
) -> Iterator[Pair]:
    server = own_postgres(wal_sender_timeout=f"{timeout_s}s")
    database = Database(server)
    database.execute(TABLE)
    prefix = f"test_{token_hex(6)}."
    runs = Runs(kafka.bootstrap, tmp_path, prefix)
    sink = {"topic_partitions": 4, "delivery": delivery}
    try:
        with Reader(kafka.bootstrap, prefix) as reader:
            first, second = (runs(database.dsn, sink=sink) for _ in range(2))
            yield Pair(database, first, second, reader)
    finally:
        runs.close()


def group(walstream: Walstream, number: int) -> None:
    """Send a signal to supervisor and worker."""
    os.killpg(walstream.pid, number)


def test_a_standby_takes_over_from_one_that_is_killed(pair: Pair) -> None:
    with Load(pair.database.dsn, _SEED) as load:
        load.wait_for_more(50)
        pair.first.kill()
        pair.second.until("streaming", 15)  # it looks at the slot every 5 s, or sooner
        load.wait_for_more(50)
        pair.first.start()  # as whatever supervises it does
        pair.first.ends_with(3, "another instance reads it now", "walstream slots")
    pair.settle()
    assert_rewind_and_continue(pair.reader.records)
    pair.second.terminate()
    pair.first.start()  # also while nobody reads the slot
    pair.first.ends_with(3, "if another instance took over the slot, start that one")


def test_one_that_is_frozen_loses_the_slot_and_ends_when_it_goes_on(pair: Pair) -> None:
    with Load(pair.database.dsn, _SEED) as load:
        load.wait_for_more(50)
        group(pair.first, signal.SIGSTOP)
        pair.second.until("streaming", _TIMEOUT_S + 30)
        load.wait_for_more(100)
        group(pair.first, signal.SIGCONT)
        pair.first.ends_with(3, "another instance reads it now")
        load.wait_for_more(50)
    pair.settle()  # its order is not claimed: old records may have come behind newer


def test_one_that_is_frozen_while_idle_sends_nothing_that_it_had_not_read(
    pair: Pair,
) -> None:
    """The walsender went on to fill its connection."""
    update = "UPDATE load SET n = {} WHERE id <= 20"
    pair.database.execute(
        "INSERT INTO load SELECT i, 0, 'x' FROM generate_series(1, 20) i"
    )
    pair.reader.until(lambda records: distinct(20, records))
    ((written,),) = pair.database.fetch("SELECT pg_current_wal_lsn()")
    confirmed = (
        "SELECT 1 FROM pg_replication_slots"
        " WHERE active AND confirmed_flush_lsn >= %s::pg_lsn"
    )
    wait_until(
        lambda: pair.database.fetch(confirmed, written), 30, "nothing is under way"
    )
    group(pair.first, signal.SIGSTOP)
    assert is_stopped(pair.first)
    for number in range(50):
        pair.database.execute(update.format(number))
    pair.second.until("streaming", _TIMEOUT_S + 30)
    pair.database.execute(update.format(1000))
    pair.settle()
    assert behind(pair.reader.records)[0] == 0
    group(pair.first, signal.SIGCONT)
    pair.first.ends_with(3, "another instance reads it now")
    assert behind(pair.reader.read())[0] == 0
    assert pair.first.said("was frozen for")


def test_one_that_is_frozen_writes_nothing_behind_its_successor(
    fenced_pair: Pair,
) -> None:
    with Load(fenced_pair.database.dsn, _SEED) as load:
        load.wait_for_more(50)
        group(fenced_pair.first, signal.SIGSTOP)
        fenced_pair.second.until("streaming", _TIMEOUT_S + 30)
        load.wait_for_more(100)
        group(fenced_pair.first, signal.SIGCONT)
        fenced_pair.first.ends_with(3, "another instance reads it now")
        load.wait_for_more(50)
    fenced_pair.settle()
    assert assert_rewind_and_continue(fenced_pair.reader.records) == 0


@pytest.mark.fault_long
@pytest.mark.takes(900)
@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
def test_many_that_are_frozen_with_a_backlog(
    delivery: str, own_postgres: OwnPostgres, own_kafka: OwnKafka, tmp_path: Path
) -> None:
    """Kafka stands still before each freezes, so that its producer is full.

    How many old records come behind newer ones is printed; none may in transactions.
    """
    broker = own_kafka()
    with paired(own_postgres, broker, tmp_path, delivery, timeout_s=3) as pair:
        with Load(pair.database.dsn, _SEED) as load:
            for cycle in range(_FREEZES):
                load.wait_for_more(50)
                broker.freeze()
                load.wait_for_more(200)
                group(pair.first, signal.SIGSTOP)
                assert is_stopped(pair.first)
                broker.thaw()
                pair.second.until("streaming", 60)
                load.wait_for_more(50)
                group(pair.first, signal.SIGCONT)
                assert pair.first.wait() == 3, (cycle, pair.first.text)
                pair.first, pair.second = pair.second, pair.first
                shutil.rmtree(pair.second.state)  # its position is an old one
                pair.second.start("--adopt-slot").until("trying again")
        pair.settle()
        late, repeats = behind(pair.reader.records)
        print(f"{delivery}: {late} late of {repeats} repeats")  # noqa: T201
        if delivery == "transactional":
            assert repeats == 0
            assert assert_rewind_and_continue(pair.reader.records) == 0


def is_stopped(walstream: Walstream) -> bool:
    """Return whether supervisor and worker stand still."""
    family = [psutil.Process(walstream.pid), *psutil.Process(walstream.pid).children()]
    wait_until(
        lambda: all(one.status() == psutil.STATUS_STOPPED for one in family),
        10,
        "it stands still",
    )
    return True


def behind(records: Iterable[Record]) -> tuple[int, int]:
    """Count records behind a newer one of their partition, and repeats."""
    highest: dict[tuple[str, int], tuple[int, int]] = {}
    seen: set[tuple[str, int, tuple[int, int]]] = set()
    late = repeats = 0
    for one in records:
        where = one.topic, one.partition
        late += one.name < highest.get(where, one.name)
        repeats += (*where, one.name) in seen
        seen.add((*where, one.name))
        highest[where] = max(one.name, highest.get(where, one.name))
    return late, repeats


@pytest.mark.fault_long
def test_one_that_is_frozen_briefly_keeps_the_slot(pair: Pair) -> None:
    with Load(pair.database.dsn, _SEED) as load:
        load.wait_for_more(50)
        group(pair.first, signal.SIGSTOP)
        load.wait_for_more(50)
        group(pair.first, signal.SIGCONT)
        load.wait_for_more(50)
    pair.settle()
    assert not pair.second.said("streaming")
    assert assert_rewind_and_continue(pair.reader.records) == 0


@pytest.mark.fault_long
def test_a_frozen_one_that_no_change_overtook_waits_and_ends_later(pair: Pair) -> None:
    group(pair.first, signal.SIGSTOP)
    pair.second.until("streaming", _TIMEOUT_S + 30)
    group(pair.first, signal.SIGCONT)
    pair.first.until("trying again")
    pair.database.execute("INSERT INTO load VALUES (1, 1, 'x')")
    pair.reader.until(lambda records: distinct(1, records))
    pair.first.ends_with(3, "another instance reads it now")


@pytest.mark.fault_long
def test_a_copy_of_the_state_is_no_standby(pair: Pair) -> None:
    pair.second.terminate()
    assert pair.first.terminate() == 0
    wait_until(lambda: not pair.first.running, 10, "it ended")
    copied = pair.second.state.parent
    for path in pair.first.state.rglob("*"):
        if path.is_file():
            to = copied / path.relative_to(pair.first.state.parent)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())
    pair.first.start().streaming()
    pair.second.start().until("trying again")
    pair.database.execute("INSERT INTO load VALUES (1, 1, 'x')")
    pair.reader.until(lambda records: distinct(1, records))
    pair.second.ends_with(3, "another instance reads it now")


@pytest.mark.fault_long
def test_a_standby_waits_for_the_end_of_a_backfill(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    database = Database(own_postgres())
    database.execute(TABLE)
    database.execute("INSERT INTO load SELECT i, 0 FROM generate_series(1, 300000) i")
    initial = {"backfill": "initial"}
    one = {"spark": {"connections": 1}}
    first = runs(database.dsn, source=initial, top=one).start()
    first.until("backfill begins")
    group(first, signal.SIGSTOP)
    assert not first.said("backfill ended")
    second = runs(database.dsn, source=initial).start("--adopt-slot")
    second.until("an instance backfills under slot")
    dropped = verb(first.configuration, "slots", "drop", first.slot, "--yes")
    assert dropped.returncode == 5
    assert "an instance backfills under slot" in dropped.stderr
    database.execute("UPDATE load SET n = 1 WHERE id = 300000")
    group(first, signal.SIGCONT)
    first.streaming()
    second.until("is in use by pid")
    reader.until(lambda records: distinct(300_001, records), 240)
    names = [one.name for one in reader.records if one.new["id"] == 300_000]
    assert names == sorted(names)
    assert not second.said("slot adopted")
    first.kill()
    second.until("slot adopted")
    assert "walstream backfill" in second.said("slot adopted")[0]["hint"]

"""Sixteen writers of MariaDB whose transactions end in any order: no row is missed.

The poller and the reader are walstream's own, on the real server; a list stands for
Spark and Kafka, so that there is time for many schedules. test_polling_kills.py goes
all the way.
"""

# ruff: noqa: S608 - SQL of constants

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.mariadb import Mariadb
from tests.support.loads.mariadb import Crew, Written, create
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import SqlTableShape, TableSpec
from walstream.sources.sql.database.table import look
from walstream.sources.sql.intervals import missing
from walstream.sources.sql.poller import Poller, PollingRules
from walstream.sources.sql.progress import GapBounds, TableProgress
from walstream.sources.sql.table_reader import TableReader
from walstream.sources.sql.table_session import TableSession
from walstream.sources.sql.task import Ahead, Range, RangeDone
from walstream.spark.outcome import ChunkDone
from walstream.testing import MemoryStore

pytestmark = pytest.mark.fault
HOUR_S: Final = 3600.0
LONGEST_S: Final = 30.0


@dataclass
class Polls:
    """A thread that polls one table again and again, and what it has sent."""

    poller: Poller
    reader: TableReader
    sent: list[int] = field(default_factory=list)
    done: int = 0  # polls
    error: BaseException | None = None
    leaving: bool = False

    def position(self) -> int | None:
        key: int | None = self.poller.told.key
        return key

    def another(self) -> None:
        """Wait for a poll that begins after this."""
        wanted = self.done + 2
        wait_until(lambda: self.error or self.done >= wanted, LONGEST_S, "it polls")
        assert self.error is None

    def run(self) -> None:
        try:
            while not self.leaving:
                self.poller.poll()
                self.done += 1
        except BaseException as error:  # the test's thread raises it
            self.error = error
            raise

    def do(self, parts: Sequence[Range], on_done: Callable[[ChunkDone], None]) -> bool:
        """Do what a task does of a range."""
        for part in parts:
            on_done(self._read(part))
        return True

    def _read(self, part: Range) -> RangeDone:
        span, keys = part.span, list[int]()
        blocks = (
            self.reader.ahead(span.low, span.high, span.limit)
            if isinstance(span, Ahead)
            else self.reader.late(span.keys)
        )
        for block in blocks:
            keys += [row[self.reader.key] for row in block]
        self.sent += keys
        if not isinstance(span, Ahead):
            return RangeDone(part.number, len(keys), 0, keys=tuple(keys))
        reached = keys[-1] if len(keys) == span.limit else span.high
        gaps = tuple(missing(span.low, reached, keys))
        return RangeDone(part.number, len(keys), 0, reached=reached, missing=gaps)


def shape_of(database: Database, table: str) -> SqlTableShape:
    with database.session() as connection:
        return look(connection, TableSpec(table, "id"))


@contextmanager
def polls(
    url: str, table: str, limit: int = 0, timeout_s: float = HOUR_S
) -> Iterator[Polls]:
    database = Database(url)
    shape = shape_of(database, table)
    made: list[Polls] = []

    def run(parts: Sequence[Range], on_done: Callable[[ChunkDone], None]) -> bool:
        return made[0].do(parts, on_done)

    poller = Poller(
        PollingRules(table, limit=limit),
        TableProgress(MemoryStore(), table, GapBounds(timeout_s, 100_000)),
        TableSession(database, TableSpec(table, "id")).connect,
        run,
    )
    made.append(Polls(poller, TableReader(database, shape)))
    thread = threading.Thread(target=made[0].run, daemon=True)
    thread.start()
    try:
        yield made[0]
    finally:
        made[0].leaving = True
        thread.join(LONGEST_S)


def schedule(
    crew: Crew, database: Mariadb, seed: int, timeout_s: float = HOUR_S
) -> tuple[Written, list[int]]:
    """Play one, polled meanwhile; give what was written, and what was sent."""
    table = f"t{seed}"
    dice = random.Random(seed)  # noqa: S311 - no secret
    create(database, table)
    limit = dice.choice([0, 1, 3, 50])
    with polls(database.url, table, limit, timeout_s) as polling:
        written = crew.play(table, dice, polling.position, polling.another)
        there = {key for (key,) in database.fetch(f"SELECT id FROM {table}")}
        assert written.committed == there
        last = max(there)
        wait_until(
            lambda: polling.error or (polling.position() or 0) >= last,
            LONGEST_S,
            "it catches up",
        )
        if timeout_s:
            wait_until(
                lambda: polling.error or there <= set(polling.sent),
                LONGEST_S,
                "what was missing comes",
            )
        polling.another()
        sent = list(polling.sent)
    database.execute(f"DROP TABLE {table}")
    return written, sent


def no_row_is_missed(database: Mariadb, seeds: Sequence[int]) -> None:
    with Crew(database) as crew:
        for seed in seeds:
            written, sent = schedule(crew, database, seed)
            assert written.late, seed
            assert sorted(sent) == sorted(written.committed), seed


def test_no_row_is_missed_over_random_schedules(mariadb_database: Mariadb) -> None:
    no_row_is_missed(mariadb_database, range(2))


@pytest.mark.fault_long
@pytest.mark.takes(900)
def test_no_row_is_missed_over_200_random_schedules(
    mariadb_database: Mariadb,
) -> None:
    no_row_is_missed(mariadb_database, range(100, 300))


def test_without_the_ledger_the_same_schedules_miss_what_commits_late(
    mariadb_database: Mariadb,
) -> None:
    with Crew(mariadb_database) as crew:
        for seed in range(1):
            written, sent = schedule(crew, mariadb_database, seed, timeout_s=0)
            assert written.late
            assert written.late <= written.committed - set(sent), seed


def unprivileged(database: Mariadb) -> str:
    """Give a URL of a user who may not see transactions."""
    name = f"u_{database.name}"
    database.execute(f"CREATE USER {name} IDENTIFIED BY 'p'")
    database.execute(f"GRANT SELECT ON {database.name}.* TO {name}")
    server = database.server
    return f"mysql+pymysql://{name}:p@{server.host}:{server.port}/{database.name}"


def late_by(database: Mariadb, url: str, late_s: float) -> Polls:
    """Commit a row so long after one above it, and after a timeout of next to nothing.

    Ends when a row that was written after both is read.
    """
    database.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)")
    with closing(database.connect()) as slow, slow.cursor() as cursor:
        cursor.execute("INSERT INTO t () VALUES ()")
        database.execute("INSERT INTO t () VALUES ()")
        with polls(url, "t", timeout_s=0.01) as polling:
            wait_until(lambda: polling.position() == 2, LONGEST_S, "it is read")
            due = time.monotonic() + late_s
            wait_until(
                lambda: time.monotonic() > due or polling.poller.told.given_up,
                late_s + LONGEST_S,
                "the time is over",
            )
            polling.another()
            assert polling.sent == [2]
            slow.commit()
            database.execute("INSERT INTO t () VALUES ()")
            wait_until(lambda: polling.position() == 3, LONGEST_S, "it goes on")
            wait_until(
                lambda: 1 in polling.sent or polling.poller.told.given_up,
                LONGEST_S,
                "what was missing comes, or never will",
            )
    return polling


@pytest.mark.parametrize(
    "late_s", [0.3, pytest.param(5.0, marks=pytest.mark.fault_long)]
)
def test_a_row_is_waited_for_beyond_the_timeout_where_the_server_tells_who_is_open(
    late_s: float, mariadb_database: Mariadb
) -> None:
    polling = late_by(mariadb_database, mariadb_database.url, late_s)
    assert sorted(polling.sent) == [1, 2, 3]
    assert polling.poller.told.given_up == 0


def test_a_row_is_given_up_at_the_timeout_where_the_server_does_not_tell(
    mariadb_database: Mariadb,
) -> None:
    polling = late_by(mariadb_database, unprivileged(mariadb_database), 10)
    assert sorted(polling.sent) == [2, 3]
    assert polling.poller.told.given_up == 1

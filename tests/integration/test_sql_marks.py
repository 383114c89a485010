"""Gaps that are settled because nobody can fill them any more, on real servers.

Each poll here does as a ledger has to: it reads, looks, and reads again what the look
has settled.
"""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, Protocol

import psycopg
import pytest
from sqlalchemy import Connection, text

from tests.support.deadline import wait_until
from tests.support.fixtures.mariadb import Mariadb, OwnMariadb, RemoteMariadb
from tests.support.fixtures.postgres import Database as Home
from tests.support.fixtures.postgres import (
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.programs.table_read import looked, postgres_url
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.low_watermark import Mark, Marks
from walstream.sources.sql.database.open_transactions import (
    _MYSQL_TABLE,
    Open,
    open_transactions,
)
from walstream.sources.sql.database.query import newest, present, rows


class Writer(Protocol):
    """A session of an application's, of either driver."""

    def cursor(self) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


@dataclass
class Looker:
    """Somebody who looks again and again, in one session."""

    connection: Connection
    marks: Marks

    def look(self) -> Mark:
        mark = self.marks.look(self.connection)
        assert mark is not None, self.marks.lacking
        return mark

    def settles(self, noted: Mark) -> bool:
        return self.look().low >= noted.next


@pytest.fixture
def open_looker() -> Iterator[Callable[..., Looker]]:
    with ExitStack() as stack:

        def made(url: str, table: str = "t") -> Looker:
            session = stack.enter_context(Database(url).session())
            return Looker(session, Marks(looked(url, table)))

        yield made


LookerOf = Callable[..., Looker]

KEYS = [
    "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "id serial PRIMARY KEY",
    "id int DEFAULT nextval('s') PRIMARY KEY",
]


@pytest.mark.parametrize("key", KEYS)
def test_gap_in_postgres_waits_for_who_may_have_drawn_its_key(
    database: Home, open_looker: LookerOf, key: str
) -> None:
    database.execute("CREATE SEQUENCE s")
    database.execute(f"CREATE TABLE t ({key}, note text)")
    looker = open_looker(postgres_url(database.dsn))
    looker.look()
    draws = "SELECT nextval(pg_get_serial_sequence('t', 'id'))"
    if "'s'" in key:
        draws = "SELECT nextval('s')"
    with (
        psycopg.connect(database.dsn) as writer,
        psycopg.connect(database.dsn) as drawer,
        psycopg.connect(database.dsn) as younger,
    ):
        writer.execute("INSERT INTO t (note) VALUES ('a')")
        drawer.execute(draws)  # without an xid of its own
        noted = looker.look()
        younger.execute("INSERT INTO t (note) VALUES ('b')")

        assert not looker.settles(noted)
        writer.commit()
        assert not looker.settles(noted)
        drawer.rollback()
        assert looker.settles(noted)


def test_gap_in_postgres_waits_for_nobody_else(
    database: Home, open_looker: LookerOf
) -> None:
    database.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    database.execute("CREATE TABLE other (id serial PRIMARY KEY)")
    looker = open_looker(postgres_url(database.dsn))
    looker.look()
    with (
        psycopg.connect(database.dsn) as reader,
        psycopg.connect(database.dsn) as else_,
    ):
        reader.execute("SELECT count(*) FROM t")
        else_.execute("INSERT INTO other DEFAULT VALUES")
        assert looker.settles(looker.look())


def test_gap_in_a_partitioned_table_waits_for_writers_of_a_partition(
    database: Home, open_looker: LookerOf
) -> None:
    database.execute(
        "CREATE TABLE t (id bigserial PRIMARY KEY) PARTITION BY RANGE (id)"
    )
    database.execute("CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (100)")
    looker = open_looker(postgres_url(database.dsn))
    looker.look()
    with psycopg.connect(database.dsn) as writer:
        writer.execute("INSERT INTO t0 VALUES (50)")
        noted = looker.look()
        assert not looker.settles(noted)
        writer.commit()
        assert looker.settles(noted)


def test_prepared_transaction_is_waited_for_over_restarts(
    own_postgres: OwnPostgres,
) -> None:
    server = own_postgres(18, max_prepared_transactions="3")
    home = Home(server)
    home.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    url = postgres_url(server.dsn())
    marks = Marks(looked(url, "t"))
    with Database(url).session() as connection:
        Looker(connection, marks).look()
        with psycopg.connect(server.dsn()) as writer:
            writer.execute("INSERT INTO t DEFAULT VALUES")
            noted = Looker(connection, marks).look()
            writer.execute("PREPARE TRANSACTION 'p'")
        assert not Looker(connection, marks).settles(noted)

    server.restart()

    with Database(url).session() as connection:
        assert not Looker(connection, marks).settles(noted)
        home.execute("COMMIT PREPARED 'p'")
        assert Looker(connection, marks).settles(noted)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("(id int PRIMARY KEY)", "no sequence of PostgreSQL gives id its values"),
        ("(id int DEFAULT nextval('ten') PRIMARY KEY)", "several values at a time"),
        ("(id int DEFAULT nextval('kept') PRIMARY KEY)", "several values at a time"),
    ],
)
def test_keys_that_others_give_are_never_settled(
    database: Home, table: str, said: str
) -> None:
    database.execute("CREATE SEQUENCE ten INCREMENT 10")
    database.execute("CREATE SEQUENCE kept CACHE 20")
    database.execute(f"CREATE TABLE t {table}")
    url = postgres_url(database.dsn)
    marks = Marks(looked(url, "t"))
    with Database(url).session() as connection:
        assert marks.look(connection) is None
    assert said in marks.lacking


@pytest.fixture
def sessions(mariadb_database: Mariadb) -> Iterator[list[Writer]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(mariadb_database.connect())) for _ in range(3)
        ]


def test_gap_in_mariadb_waits_for_who_may_have_drawn_its_key(
    mariadb_database: Mariadb, open_looker: LookerOf, sessions: list[Writer]
) -> None:
    mariadb_database.execute(
        "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, note int UNIQUE)"
    )
    looker = open_looker(mariadb_database.url)
    wait_until(lambda: looker.settles(Mark(1, 0)), 10, "nobody else writes")
    writer, waiting, reader = sessions
    writer.cursor().execute("INSERT INTO t (note) VALUES (1)")
    reader.cursor().execute("SELECT count(*) FROM t")
    blocked = threading.Thread(target=_insert, args=(waiting, 1))
    blocked.start()  # has drawn its key, and waits for the writer's row
    running = "SELECT id FROM information_schema.processlist WHERE info LIKE 'INSERT%%'"
    wait_until(lambda: mariadb_database.fetch(running), 10, "it waits")
    noted = looker.look()

    assert not looker.settles(noted)
    writer.rollback()
    blocked.join()
    assert not looker.settles(noted)
    waiting.commit()
    wait_until(lambda: looker.settles(noted), 10, "all of then have ended")


def _insert(session: Writer, note: int) -> None:
    session.cursor().execute("INSERT INTO t (note) VALUES (%s)", (note,))


def test_list_that_is_old_because_others_read_it_settles_nothing(
    mariadb_database: Mariadb,
    open_looker: LookerOf,
    sessions: list[Writer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """InnoDB keeps its list as long as somebody asks for it ten times a second."""
    monkeypatch.setattr(
        "walstream.sources.sql.database.open_transactions._INNODB_SLACK_US", 0
    )
    mariadb_database.execute("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY)")
    looker = open_looker(mariadb_database.url)
    writer, watcher, _ = sessions
    wait_until(lambda: looker.look().low, 10, "the list is fresh")
    stop = threading.Event()
    busy = threading.Thread(target=_watch, args=(watcher, stop))
    busy.start()
    wait_until(lambda: looker.look().low == 0, 10, "the list is old")
    writer.cursor().execute("INSERT INTO t VALUES ()")
    noted = looker.look()

    assert not looker.settles(noted)
    stop.set()
    busy.join()
    assert not looker.settles(noted)
    writer.commit()
    wait_until(lambda: looker.settles(noted), 10, "the writer has ended")


def test_tables_of_a_server_do_not_take_fresh_lists_from_each_other(
    mariadb_database: Mariadb, sessions: list[Writer]
) -> None:
    mariadb_database.execute("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY)")
    url, tables = mariadb_database.url, 12
    shape, writer = looked(url, "t"), sessions[0]
    together = threading.Barrier(tables, timeout=60)

    def look_thrice(place: int) -> list[tuple[frozenset[str], frozenset[str]]]:
        seen = []
        with Database(url).session() as connection:
            for _ in range(3):
                together.wait()
                before = open_transactions(connection, shape)
                if together.wait() == 0:
                    writer.cursor().execute("INSERT INTO t VALUES ()")
                together.wait()
                after = open_transactions(connection, shape)
                assert isinstance(before, Open), place
                assert isinstance(after, Open), place
                assert before.fresh, place
                assert after.fresh, place
                seen.append((before.names, after.names))
                if together.wait() == 0:
                    writer.rollback()
        return seen

    with ThreadPoolExecutor(tables) as pool:
        for seen in pool.map(look_thrice, range(tables)):
            # what began before a look is in it, whoever took it
            assert all(after - before for before, after in seen)


def _watch(session: Writer, stop: threading.Event) -> None:
    while not stop.wait(0.01):
        session.cursor().execute("SELECT count(*) FROM information_schema.innodb_trx")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("(id int PRIMARY KEY)", "id is not AUTO_INCREMENT"),
        ("(id int AUTO_INCREMENT PRIMARY KEY) ENGINE = Aria", "Aria does not show"),
    ],
)
def test_keys_that_innodb_does_not_give_are_never_settled(
    mariadb_database: Mariadb, table: str, said: str
) -> None:
    mariadb_database.execute(f"CREATE TABLE t {table}")
    marks = Marks(looked(mariadb_database.url, "t"))
    with Database(mariadb_database.url).session() as connection:
        assert marks.look(connection) is None
    assert said in marks.lacking


def test_look_at_a_table_of_mariadb_opens_no_other(
    mariadb_database: Mariadb, open_looker: LookerOf
) -> None:
    mariadb_database.execute("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY)")
    looker = open_looker(mariadb_database.url)
    asked = {"schema": "", "name": "t", "key": "id"}
    with looker.connection.begin():
        plan = looker.connection.execute(text(f"EXPLAIN {_MYSQL_TABLE}"), asked).all()
    assert plan
    assert not any("Scanned all databases" in str(step) for step in plan)


def test_missing_right_names_the_statement_that_gives_it(
    mariadb_database: Mariadb,
) -> None:
    mariadb_database.execute("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY)")
    server, user = mariadb_database.server, f"m_{mariadb_database.name[-8:]}"
    mariadb_database.execute(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'pw'")
    mariadb_database.execute(f"GRANT SELECT ON t TO '{user}'@'%'")
    limited = RemoteMariadb(server.host, server.port, user, "pw")
    url = limited.url(mariadb_database.name)
    marks = Marks(looked(url, "t"))
    with Database(url).session() as connection:
        assert marks.look(connection) is None
    assert "the right to see transactions" in marks.lacking
    mariadb_database.execute(marks.repair.sql)
    with Database(url).session() as connection:
        assert marks.look(connection) is not None
    assert not marks.lacking
    mariadb_database.execute(f"DROP USER '{user}'@'%'")


def test_server_beside_which_another_writes_settles_nothing(
    own_mariadb: OwnMariadb,
) -> None:
    server = own_mariadb()
    home = Mariadb(server)
    home.execute("CREATE DATABASE d")
    home.execute("CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY)")
    marks = Marks(looked(server.url("d"), "t"))
    with Database(server.url("d")).session() as connection:
        for setting in ("read_only = 1", "auto_increment_increment = 2"):
            home.execute(f"SET GLOBAL {setting}")
            assert marks.look(connection) is None
            assert setting.partition(" ")[0] in marks.lacking
            home.execute(f"SET GLOBAL {setting.partition(' ')[0]} = DEFAULT")


@dataclass
class Load:
    """Writers whose transactions end in any order, some of them by a rollback."""

    connect: Callable[[], Writer]
    seed: int
    committed: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, number: int) -> None:
        chance = random.Random(f"{self.seed}/{number}")  # noqa: S311 - no secret
        with closing(self.connect()) as session:
            for _ in range(12):
                keys = []
                for _ in range(chance.randrange(1, 4)):
                    cursor = session.cursor()
                    cursor.execute("INSERT INTO t (note) VALUES (1) RETURNING id")
                    keys += [cursor.fetchone()[0]]
                    threading.Event().wait(chance.random() ** 4 * 0.4)
                if chance.random() < 0.3:
                    session.rollback()
                    continue
                session.commit()
                with self._lock:
                    self.committed.update(keys)

    def start(self, writers: int) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self.write, args=(n,)) for n in range(writers)
        ]
        for thread in threads:
            thread.start()
        return threads


class Ledger:
    """The least that a poll has to remember."""

    def __init__(self, url: str) -> None:
        self.shape = looked(url, "t")
        self.marks = Marks(self.shape)
        self.high = 0
        self.seen: list[int] = []
        self.gaps: dict[int, int] = {}  # missing key: `next` of the look after it

    def poll(self, connection: Connection) -> None:
        new: list[int] = []
        for block in rows(
            connection, self.shape, self.high, newest(connection, self.shape) or 0
        ):
            new += [row[0] for row in block]
        mark = self.marks.look(connection)
        assert mark is not None, self.marks.lacking
        if new:
            missing = set(range(self.high + 1, new[-1])) - set(new)
            self.gaps |= dict.fromkeys(missing, mark.next)
            self.high = new[-1]
        found = present(
            connection, self.shape, [(key, key) for key in self.gaps], 10_000
        )
        self.seen += [*new, *found]
        self.gaps = {
            key: noted
            for key, noted in self.gaps.items()
            if noted > mark.low and key not in found
        }


def _polled_under_load(url: str, load: Load) -> Ledger:
    ledger = Ledger(url)
    with Database(url).session() as connection:
        writers = load.start(8)
        while any(thread.is_alive() for thread in writers):
            ledger.poll(connection)
        for thread in writers:
            thread.join()

        def settled() -> bool:
            ledger.poll(connection)
            return not ledger.gaps

        wait_until(settled, 20, "no gap is left")
    return ledger


@pytest.fixture
def newest_database(newest_postgres: PostgresServer) -> Iterator[Home]:
    with temporary_database(newest_postgres) as fresh:
        yield fresh


def test_nothing_is_missed_in_postgres_though_gaps_are_settled(
    newest_database: Home,
) -> None:
    newest_database.execute("CREATE TABLE t (id serial PRIMARY KEY, note int)")
    load = Load(lambda: psycopg.connect(newest_database.dsn), seed=3)
    ledger = _polled_under_load(postgres_url(newest_database.dsn), load)
    assert sorted(ledger.seen) == sorted(load.committed)


def test_nothing_is_missed_in_mariadb_though_gaps_are_settled(
    mariadb_database: Mariadb,
) -> None:
    mariadb_database.execute(
        "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, note int)"
    )
    load = Load(mariadb_database.connect, seed=3)
    ledger = _polled_under_load(mariadb_database.url, load)
    assert sorted(ledger.seen) == sorted(load.committed)

"""A publication that goes away: nothing that it kept from us is confirmed."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import pytest
from psycopg import sql

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, in_order
from tests.support.programs.walstream import Walstream
from tests.support.selection import shortened
from walstream.lsn import parse
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15

CREATE = (
    "CREATE PUBLICATION walstream FOR TABLE t WITH (publish_via_partition_root = true)"
)


@pytest.fixture
def database18(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: the watch looks at both alike, and is slow."""
    with temporary_database(postgres18) as fresh:
        yield fresh


def lsn(database: Database, query: str) -> int:
    return parse(database.fetch(query)[0][0])


def confirmed(database: Database) -> int:
    return lsn(
        database,
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
        " WHERE slot_name = current_database()",
    )


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "recreated"])
@pytest.mark.parametrize("how", shortened(["live", "backlog"], "backlog"))
def test_nothing_past_a_lost_publication_is_confirmed(
    database: Database, runs: Runs, reader: Reader, how: str, again: bool
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    if how == "backlog":
        assert walstream.terminate() == 0

    database.execute("DROP PUBLICATION walstream")
    before = lsn(database, "SELECT pg_current_wal_insert_lsn()::text")
    database.execute("INSERT INTO t VALUES (2)")
    if again:
        database.execute(CREATE)
        database.execute("INSERT INTO t VALUES (3)")
    if how == "backlog":
        walstream.start()

    walstream.ends_with(3, "publication", "walstream positions reset app")
    assert confirmed(database) <= before
    # nor does the next start go on
    walstream.start().ends_with(3, "publication", "walstream positions reset")
    assert confirmed(database) <= before
    assert [r.op.new for r in reader.read()] in ([["1"]], [["1"], ["3"]])


def test_a_publication_that_no_longer_publishes_all_is_a_gap(
    database18: Database, runs: Runs
) -> None:
    database18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database18.dsn).start().streaming()
    database18.execute("ALTER PUBLICATION walstream SET (publish = 'insert')")
    walstream.ends_with(3, "no longer publishes", "delete", "walstream positions")


def test_a_table_that_left_the_publication_is_a_gap(
    database18: Database, runs: Runs
) -> None:
    database18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database18.dsn).start().streaming()
    database18.execute("ALTER PUBLICATION walstream DROP TABLE t")
    walstream.ends_with(3, "'public.t' was removed", "walstream positions reset")
    walstream.start().ends_with(3, "'public.t' was removed")


PART = "FOR VALUES FROM (1) TO (9)"
MADE = """
CREATE SCHEMA s; CREATE SCHEMA o; CREATE TABLE t (id int PRIMARY KEY, n int);
CREATE TABLE s.t (id int PRIMARY KEY, n int);
CREATE TABLE root (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (1) TO (9)
"""
BY_HAND = (
    "CREATE PUBLICATION walstream FOR TABLE t, root, TABLES IN SCHEMA s"
    " WITH (publish_via_partition_root = true)"
)
ALTER = "ALTER PUBLICATION walstream "
# how the publication is made; the table; what goes before and behind its changes
UNDONE = {
    "table": ("", "public.t", f"{ALTER} DROP TABLE t", f"{ALTER} ADD TABLE t"),
    "operations": (
        "",
        "public.t",
        f"{ALTER} SET (publish = 'insert')",
        f"{ALTER} SET (publish = 'insert, update, delete, truncate')",
    ),
    "filter": (
        "",
        "public.t",
        f"{ALTER} SET TABLE root, t WHERE (id > 100)",
        f"{ALTER} SET TABLE root, t",
    ),
    "schema": (
        BY_HAND,
        "s.t",
        f"{ALTER} DROP TABLES IN SCHEMA s",
        f"{ALTER} ADD TABLES IN SCHEMA s",
    ),
    "moved": (
        BY_HAND,
        "s.t",
        "ALTER TABLE s.t SET SCHEMA o",
        "ALTER TABLE o.t SET SCHEMA s",
    ),
    "partition": (
        "",
        "public.root",
        "ALTER TABLE root DETACH PARTITION leaf",
        f"ALTER TABLE root ATTACH PARTITION leaf {PART}",
    ),
}


def change(database: Database, how: str, gone: int, fresh: int, kept: int) -> None:
    """Change rows of the table, where it is meanwhile."""
    table = {"moved": "o.t", "partition": "leaf"}.get(how, UNDONE[how][1])
    database.execute(named("DELETE FROM {} WHERE id = %s", table), gone)
    database.execute(named("INSERT INTO {} VALUES (%s, 0)", table), fresh)
    database.execute(named("UPDATE {} SET n = 7 WHERE id = %s", table), kept)


def named(query: LiteralString, table: str) -> sql.Composed:
    return sql.SQL(query).format(sql.Identifier(*table.split(".")))


def same(reader: Reader, database: Database, table: str) -> bool:
    """Tell whether the records of a table, folded by key, are the table."""
    schema, _, name = table.partition(".")
    rows: dict[Any, Any] = {}
    for record in in_order(reader.records):
        if (record.op.table.schema, record.op.table.name) != (schema, name):
            continue
        if record.kind is Kind.TRUNCATE:
            rows.clear()
            continue
        for row in filter(None, (record.op.old, record.op.new)):
            rows.pop(row[0], None)
        if record.op.new is not None:
            rows[record.op.new[0]] = record.op.new
    stored = database.fetch(named("SELECT id::text, n::text FROM {}", table))
    return sorted(map(tuple, rows.values())) == sorted(stored)


def begun(database: Database, runs: Runs, how: str, **source: Any) -> Walstream:
    made = UNDONE[how][0]
    database.execute(MADE)
    if made:
        database.execute(made)
        source["tables"] = []
    return runs(database.dsn, source=source).start().streaming()


def undo(
    database: Database, how: str, *, gone: int = 1, fresh: int = 3, kept: int = 2
) -> None:
    _, _, before, behind = UNDONE[how]
    database.execute(before)
    change(database, how, gone, fresh, kept)
    database.execute(behind)


# the others stop a running instance below
@pytest.mark.parametrize("how", shortened(UNDONE, "filter", "schema", "moved"))
def test_a_change_that_was_undone_stops_or_is_read_anew(
    database: Database, runs: Runs, reader: Reader, how: str
) -> None:
    walstream = begun(database, runs, how)
    table = UNDONE[how][1]
    database.execute(named("INSERT INTO {} VALUES (1, 0), (2, 0)", table))
    reader.count(2)
    assert walstream.terminate() == 0
    undo(database, how)
    for _ in range(2):  # the first has forgotten nothing
        walstream.start().ends_with(3, table, "walstream backfill", "--replace")
    walstream.source = {**walstream.source, "on_publication_change": "reread"}
    walstream.start().streaming()
    reader.until(lambda _: same(reader, database, table), 60, "Kafka is as the table")
    assert [entry["table"] for entry in walstream.said("may be missing")]
    if how == "operations":
        return  # a look in between stops it: nothing is read anew of what is not sent
    # and so does one that runs
    undo(database, how, gone=2, fresh=8, kept=3)
    database.execute(named("INSERT INTO {} VALUES (4, 0)", table))
    walstream.until("reads them again while it streams", 60)
    reader.until(lambda _: same(reader, database, table), 60, "likewise")
    assert walstream.terminate() == 0
    assert not walstream.said("Traceback")


@pytest.mark.parametrize(
    "how", shortened(["table", "operations", "partition"], "table")
)
def test_a_running_instance_stops_at_a_change_that_was_undone(
    database: Database, runs: Runs, reader: Reader, how: str
) -> None:
    walstream = begun(database, runs, how)
    table = UNDONE[how][1]
    database.execute(named("INSERT INTO {} VALUES (1, 0), (2, 0)", table))
    reader.count(2)
    undo(database, how)
    # the position goes past it
    database.execute(named("INSERT INTO {} VALUES (5, 0)", table))
    walstream.ends_with(3)  # a look in between says what it sees
    walstream.start().ends_with(3, table, "may be missing", "--replace")


DIE = """
import os, signal
from pathlib import Path
if os.environ.get("DIE_AT"):
    from walstream.postgres.publication_watch import PublicationWatch
    def die(name):
        real = getattr(PublicationWatch, name)
        def dying(self, *given, **named):
            if name == "note":
                real(self, *given, **named)
            if name == "note" or named.get("own"):
                Path(os.environ["DIED"]).touch()
                os.killpg(0, signal.SIGKILL)
            return real(self, *given, **named)
        setattr(PublicationWatch, name, dying)
    die(os.environ["DIE_AT"])
"""


@pytest.mark.parametrize(
    "stranger",
    [pytest.param(False, marks=pytest.mark.fault_long), True],
    ids=["alone", "stranger"],
)
@pytest.mark.parametrize(
    "at", shortened(["note", "remember"], "remember"), ids=["before", "after"]
)
def test_a_kill_around_the_commit_of_our_own_change_stops_nothing_and_hides_nothing(  # noqa: PLR0913, PLR0917 - fixtures and parameters
    database18: Database,
    runs: Runs,
    reader: Reader,
    installed: Path,
    at: str,
    stranger: bool,
) -> None:
    database18.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    walstream = runs(database18.dsn, source={"backfill": "never"}).start().streaming()
    assert walstream.terminate() == 0
    (installed / "sitecustomize.py").write_text(DIE, "utf-8")
    died = installed / "died"
    database18.execute("CREATE TABLE late (id int PRIMARY KEY, n int)")
    walstream.environment = {"DIE_AT": at, "DIED": str(died)}
    walstream.start()
    assert walstream.wait() == -signal.SIGKILL
    assert died.exists()
    held = "SELECT FROM pg_publication_tables WHERE tablename = 'late'"
    # the server ends the transaction of who is gone
    pending = (
        "SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'walstream' AND backend_type = 'client backend'"
    )
    wait_until(lambda: not database18.fetch(pending), 10, "its sessions are over")
    assert bool(database18.fetch(held)) is (at == "remember")
    if stranger:
        database18.execute(f"{ALTER} DROP TABLE t")
        database18.execute("INSERT INTO t VALUES (1, 0)")
        database18.execute(f"{ALTER} ADD TABLE t")
    walstream.environment = {}
    if stranger:
        walstream.start().ends_with(3, "'public.t'", "may be missing")
        return
    walstream.start().streaming()
    database18.execute("INSERT INTO late VALUES (1, 0)")
    reader.until(lambda _: same(reader, database18, "public.late"))
    assert walstream.terminate() == 0

"""What keeps a backfill's readers out for a while, or one table from them for good."""

from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.backfill import SPARK, agree, filled, settled
from tests.support.programs.walstream import Walstream

pytestmark = [pytest.mark.fault, pytest.mark.fault_long]


@pytest.fixture
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as made:
        yield made


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """Make a role that reads, and owns nothing: a superuser is refused nowhere."""
    name = f"stream_{database.name}"
    database.execute(f"CREATE ROLE {name} LOGIN REPLICATION")
    yield name
    database.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


@pytest.fixture
def walstream(database: Database, role: str, runs: Runs) -> Walstream:
    walstream = filled(database, runs, tables=[])
    walstream.dsn = make_conninfo(database.dsn, user=role)
    # in a backfill of one slot, the second table is behind all chunks of the first
    walstream.top = {"spark": {**SPARK, "master": "local[1,4]"}}
    database.execute(
        "CREATE PUBLICATION walstream FOR TABLE load, small;"
        f"GRANT SELECT ON load, small TO {role}"
    )
    return walstream


def refuse(database: Database, role: str, walstream: Walstream) -> None:
    """Let no new session in, from before the first row; those that are stay."""
    walstream.start().until("backfill begins", 60)
    database.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0")


def test_connections_that_are_refused_for_a_while_cost_no_table(
    database: Database, role: str, walstream: Walstream, reader: Reader
) -> None:
    refuse(database, role, walstream)
    # Spark would have tried a chunk four times by then, a second apart
    wait_until(
        lambda: (
            len(walstream.said("a chunk is put back")) > 5
            or walstream.said("table is skipped")
        ),
        90,
        "it was refused again and again",
    )
    (first, *_) = walstream.said("a chunk is put back")
    assert "too many connections" in first["error"]
    database.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
    walstream.until("backfill ended", 150)
    assert walstream.said("backfill ended")[0]["given_up"] == []
    agree(database, settled(database, walstream, reader))


@pytest.mark.parametrize(
    "what",
    ["REVOKE SELECT ON load FROM {role}", "ALTER TABLE load ENABLE ROW LEVEL SECURITY"],
)
def test_a_right_that_is_taken_away_costs_its_table_alone(
    what: str, database: Database, role: str, walstream: Walstream, reader: Reader
) -> None:
    refuse(database, role, walstream)
    wait_until(lambda: walstream.said("a chunk is put back"), 60, "it is refused")
    database.execute(what.format(role=role))
    database.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
    walstream.until("backfill ended", 150)
    assert walstream.said("backfill ended")[0]["given_up"] == ["public.load"]
    (said,) = walstream.said("table is skipped")
    assert "42501" in said["error"]
    assert "public.load" in said["hint"]
    records = settled(database, walstream, reader)
    small = {r.new["id"] for r in records if r.op.table.name == "small"}
    assert small == {str(number) for number in range(1, 12)}

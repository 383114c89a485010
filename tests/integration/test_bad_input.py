"""A PostgreSQL that cannot be streamed from: a clear error, its exit code, a way on."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import psutil
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from walstream.cli.main import app
from walstream.testing.servers.port import free_port

CANARY = "canary-5f0c9e"


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: nothing here differs between the versions."""
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY)")
        yield fresh


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """Make a role that may log in, and no more."""
    name = f"role_{token_hex(6)}"
    database.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    database.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def untouched(database: Database) -> bool:
    """Tell whether nothing was created in PostgreSQL."""
    return not database.fetch(
        "SELECT FROM pg_publication UNION ALL SELECT FROM pg_replication_slots"
        " WHERE slot_name = %s",
        database.name,
    )


def test_an_unreachable_server_is_waited_for(
    database: Database, runs: Runs, reader: Reader
) -> None:
    dsn = f"postgresql://postgres@127.0.0.1:{free_port()}/{database.name}"
    walstream = runs(dsn).start()
    walstream.until("trying again")
    (said,) = walstream.said("trying again")
    assert "Connection refused" in said["error"]
    assert said["hint"]
    assert walstream.terminate(15) == 0

    walstream.dsn = database.dsn
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)


def test_wal_level_replica_is_refused(own_postgres: OwnPostgres, runs: Runs) -> None:
    database = Database(own_postgres(18, wal_level="replica"))
    walstream = runs(database.dsn).start()
    walstream.ends_with(2, "wal_level", "ALTER SYSTEM SET wal_level = 'logical'")
    assert untouched(database)


@pytest.mark.own_start
def test_a_wrong_password_is_refused_and_a_right_one_is_never_shown(
    own_postgres: OwnPostgres, runs: Runs, tmp_path: Path
) -> None:
    server = own_postgres(18)
    database = Database(server)
    database.execute(f"CREATE ROLE app SUPERUSER LOGIN PASSWORD '{CANARY}'")
    rules = server.data / "pg_hba.conf"
    rules.write_text(f"host all app 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    database.execute("SELECT pg_reload_conf()")
    secret = tmp_path / "dsn"

    dsn = make_conninfo(server.dsn(), user="app", password=f"not-{CANARY}")
    secret.write_text(dsn)
    walstream = runs(server.dsn(), source={"dsn": f"${{file:{secret}}}"})
    walstream.start().ends_with(4, "password authentication failed", "correct user")
    assert CANARY not in walstream.text

    secret.write_text(make_conninfo(dsn, password=CANARY))
    walstream.top = {"log_level": "debug", "reload_grace": "0s"}
    walstream.start().streaming()
    for pid in (walstream.pid, walstream.worker_pid()):
        process = psutil.Process(pid)
        shown = [*process.cmdline(), *process.environ().values()]
        assert not [text for text in shown if CANARY in text]
    # an error that quotes the connection, too
    database.execute("ALTER ROLE app PASSWORD 'another'")
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'"
    )
    walstream.ends_with(4, "password authentication failed")
    assert CANARY not in walstream.text


def test_a_role_that_may_not_replicate_is_refused(
    database: Database, runs: Runs, role: str
) -> None:
    walstream = runs(make_conninfo(database.dsn, user=role)).start()
    walstream.ends_with(4, "ALTER ROLE", "REPLICATION")
    assert untouched(database)


def test_a_role_that_may_not_create_a_publication_is_told_the_sql(
    database: Database, runs: Runs, role: str, reader: Reader
) -> None:
    database.execute(f"ALTER ROLE {role} REPLICATION")
    walstream = runs(make_conninfo(database.dsn, user=role)).start()
    walstream.ends_with(4, 'CREATE PUBLICATION "walstream" FOR TABLE', '"public"."t"')
    assert untouched(database)

    # what the message says is what helps
    (error,) = walstream.said("CREATE PUBLICATION")
    status = ["status", "-c", str(walstream.configuration)]
    printed = " ".join(CliRunner().invoke(app, status).stdout.split())
    document = json.loads(CliRunner().invoke(app, [*status, "--json"]).stdout)
    assert document["sources"][0]["last_error"]["sql"] == error["repair"]
    for statement in error["repair"].splitlines():
        assert f"SQL> {statement}" in printed
        database.execute(statement)
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)


def test_a_missing_database_is_refused(database: Database, runs: Runs) -> None:
    dsn = make_conninfo(database.dsn, dbname="no_such_database")
    runs(dsn).start().ends_with(2, 'database "no_such_database" does not exist')


def test_a_missing_role_is_refused(database: Database, runs: Runs) -> None:
    dsn = make_conninfo(database.dsn, user="no_such_role")
    runs(dsn).start().ends_with(4, 'role "no_such_role" does not exist')


def test_a_missing_publication_that_is_not_ours_to_make_is_refused(
    database: Database, runs: Runs
) -> None:
    walstream = runs(database.dsn, source={"tables": []}).start()
    walstream.ends_with(2, "publication 'walstream'", 'CREATE PUBLICATION "walstream"')
    assert untouched(database)


def test_a_misspelt_key_is_named(database: Database, runs: Runs) -> None:
    walstream = runs(database.dsn, source={"tabels": ["public.*"]}).start()
    walstream.ends_with(2, "sources.app.tabels", "tables")
    assert untouched(database)


def test_a_partition_key_that_cannot_be_one_is_refused(
    database: Database, runs: Runs
) -> None:
    database.execute("CREATE TABLE k (id int PRIMARY KEY, may int, must int NOT NULL)")
    for column, cure in (
        ("no", "its columns are"),
        ("may", 'ALTER "may" SET NOT NULL'),
        ("must", "REPLICA IDENTITY FULL"),
    ):
        topics = {"public.k": {"name": "k", "partition_key": [column]}}
        walstream = runs(database.dsn, sink={"topics": topics}).start()
        walstream.ends_with(2, column, "public.k", cure)
    assert untouched(database)


def test_a_slot_in_use_is_waited_for_and_can_be_taken_over(
    database: Database, runs: Runs, reader: Reader
) -> None:
    first = runs(database.dsn).start().streaming()
    # another state folder of the same slot, as a copied machine has it
    assert first.terminate() == 0
    first.start().streaming()
    active = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
    pid = database.fetch(active, database.name)[0][0]
    second = runs(database.dsn).start()
    reader_said = f"pid {pid} (walstream of postgres at 127.0.0.1, since 20"
    second.ends_with(2, reader_said, "second instance", "another `slot`")
    second.start("--adopt-slot")
    second.until("trying again")
    said = second.said("trying again")[0]
    assert f"pid {pid} (walstream of postgres at 127.0.0.1" in said["error"]
    assert said["repair"] == f"SELECT pg_terminate_backend({pid});"
    assert "walstream run --adopt-slot --take-over" in said["then"]
    assert second.terminate(15) == 0

    second.start("--adopt-slot", "--take-over")
    second.until("taking the slot over")
    first.kill()  # as its operator would: both would take it from each other
    second.streaming()
    database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)


def test_a_slot_of_which_the_state_knows_nothing_has_to_be_adopted(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute("CREATE PUBLICATION walstream FOR TABLE t")
    make_slot(database)
    database.execute("INSERT INTO t VALUES (1)")
    walstream = runs(database.dsn).start()
    walstream.ends_with(3, f"slot '{database.name}'", "walstream run --adopt-slot")
    walstream.start("--adopt-slot").streaming()
    reader.count(1)
    assert walstream.terminate() == 0
    walstream.start().streaming()  # it is known now
    database.execute("INSERT INTO t VALUES (2)")
    reader.count(2)


def test_a_slot_is_adopted_with_the_publication_of_its_former_reader(
    database: Database, runs: Runs, reader: Reader
) -> None:
    """It stays as it is where that is not set: a reset would drop it, with its rows."""
    database.execute("CREATE PUBLICATION dbz_publication FOR TABLE t")
    make_slot(database)
    database.execute("INSERT INTO t VALUES (1)")
    walstream = runs(database.dsn).start("--adopt-slot")
    walstream.ends_with(2, "there are: 'dbz_publication'", "set `publication`")
    walstream.source = {"publication": "dbz_publication"}
    walstream.start("--adopt-slot").streaming()
    reader.count(1)


def make_slot(database: Database, plugin: str = "pgoutput", name: str = "") -> None:
    create = "SELECT pg_create_logical_replication_slot(%s, %s)"
    database.fetch(create, name or database.name, plugin)


def drop_slot(database: Database) -> None:
    database.fetch("SELECT pg_drop_replication_slot(%s)", database.name)


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "recreated"])
def test_a_slot_that_is_gone_or_another_one_is_a_gap(
    database: Database, runs: Runs, again: bool
) -> None:
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    drop_slot(database)
    database.execute("INSERT INTO t VALUES (1)")
    if again:
        make_slot(database)
    fact = "beyond the position" if again else "is gone"
    walstream.start().ends_with(3, fact, "walstream positions reset app")


def test_a_slot_that_is_dropped_while_streaming_is_a_gap(
    database: Database, runs: Runs
) -> None:
    walstream = runs(database.dsn).start().streaming()
    end = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"

    def dropped() -> bool:
        with suppress(psycopg.errors.ObjectInUse):
            database.fetch(f"{end} WHERE slot_name = %s", database.name)
            drop_slot(database)
            return True
        return False

    wait_until(dropped, 10, "the slot is dropped between two streams")
    walstream.ends_with(3, "slot", "walstream positions reset")


@pytest.mark.same_on_15
@pytest.mark.parametrize("version", [15, 18], ids=["pg15", "pg18"])
def test_a_slot_that_lost_its_wal_is_a_gap(
    own_postgres: OwnPostgres, runs: Runs, version: int
) -> None:
    database = Database(own_postgres(version, max_slot_wal_keep_size="1MB"))
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    lose_slot(database)
    walstream.start().ends_with(3, "cannot be read", "walstream positions reset app")


def lose_slot(database: Database) -> None:
    lost = "SELECT FROM pg_replication_slots WHERE wal_status = 'lost'"

    def write() -> bool:
        database.execute("SELECT pg_logical_emit_message(false, '', repeat('x', 9999))")
        database.execute("SELECT pg_switch_wal()")
        database.execute("CHECKPOINT")
        return bool(database.fetch(lost))

    wait_until(write, 30, "the slot is lost")


def test_a_slot_that_is_lost_during_the_first_backfill_ends_it(
    own_postgres: OwnPostgres, runs: Runs
) -> None:
    """It would be noticed when all rows were sent, for the second time perhaps."""
    database = Database(own_postgres(18, max_slot_wal_keep_size="1MB"))
    database.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    where = {"public.t": "pg_sleep(600) IS NOT NULL"}  # the read of its row
    walstream = runs(
        database.dsn, source={"backfill": "initial", "backfill_where": where}
    )
    walstream.start().until("backfill begins")
    lose_slot(database)
    walstream.ends_with(3, "cannot be read", "walstream positions reset app")


def test_a_slot_that_is_not_ours_is_left_alone(database: Database, runs: Runs) -> None:
    make_slot(database, "test_decoding")
    walstream = runs(database.dsn).start()
    walstream.ends_with(3, "'test_decoding', not pgoutput", "another `slot`")
    drop_slot(database)

    database.fetch("SELECT pg_create_physical_replication_slot(%s)", database.name)
    walstream.start("--adopt-slot").ends_with(3, "is a physical slot")
    drop_slot(database)

    two_phase = "SELECT pg_create_logical_replication_slot(%s, %s, false, true)"
    database.fetch(two_phase, database.name, "pgoutput")
    walstream.start("--adopt-slot").ends_with(3, "has two_phase on", "another `slot`")
    drop_slot(database)

    home = Database(database.server)
    make_slot(home, name=database.name)
    walstream.start("--adopt-slot").ends_with(3, "belongs to the database 'postgres'")
    home.fetch("SELECT pg_drop_replication_slot(%s)", database.name)

"""`check` finds each right that a role lacks; what it prints gives just that."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex

import pytest
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.inspection import known, look, of, one, repair, stops
from walstream.finding import Severity
from walstream.postgres.checks import Inspection
from walstream.testing.servers.port import free_port

AWAY = "run would wait"
WORD = "open"


@dataclass(frozen=True)
class Role:
    name: str
    database: Database

    @property
    def dsn(self) -> str:
        return make_conninfo(self.database.dsn, user=self.name)

    def look(self, **options: object) -> Inspection:
        return look(self.dsn, **options)  # type: ignore[arg-type]  # of PostgresSource


@pytest.fixture
def role(newest_postgres: PostgresServer) -> Iterator[Role]:
    """Make a role that may log in, and tables that are another's."""
    with temporary_database(newest_postgres) as database, made_role(database) as made:
        yield made


@pytest.fixture
def each_role(database: Database) -> Iterator[Role]:
    """Make one on each server."""
    with made_role(database) as made:
        yield made


@contextmanager
def made_role(database: Database) -> Iterator[Role]:
    name = f'role "{token_hex(6)}'  # a name that has to be quoted
    quoted = '"' + name.replace('"', '""') + '"'
    database.execute(
        f"CREATE ROLE {quoted} LOGIN;"
        "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE k (a int)"
    )
    try:
        yield Role(name, database)
    finally:
        database.execute(f"DROP OWNED BY {quoted}; DROP ROLE {quoted}")


def cured(role: Role, code: str, severity: Severity, exit_code: int = 0) -> Inspection:
    finding = one(role.look(), code, severity, exit_code)
    repair(role.database, finding.repair)
    after = role.look()
    assert not of(after, code), after.findings
    return after


def untouched(database: Database) -> bool:
    return not database.fetch(
        "SELECT FROM pg_publication UNION ALL SELECT FROM pg_replication_slots"
        " WHERE database = current_database()"
    )


def test_a_role_becomes_able_by_what_is_printed_and_run_ends_as_check_says(
    each_role: Role, runs: Runs, reader: Reader
) -> None:
    role = each_role
    before = role.look()
    # all that is missing is said at once, in the order in which run meets it
    assert stops(before) == [("replication-right", 4), ("publication-right", 4)]
    walstream = runs(role.dsn).start()
    walstream.ends_with(4, "ALTER ROLE")
    (said,) = walstream.said("ALTER ROLE")
    (missing, _) = before.findings[:2]
    assert said["repair"] == missing.repair.sql

    after = cured(role, "replication-right", Severity.STOP, 4)
    assert stops(after) == [("publication-right", 4)]
    (finding,) = of(after, "publication-right")
    assert "public.t" in finding.what
    assert len(finding.repair.sql.splitlines()) == 2
    walstream.start().ends_with(4, "CREATE PUBLICATION")
    (said,) = walstream.said("CREATE PUBLICATION")
    assert said["repair"] == finding.repair.sql
    # a first start that cannot end well leaves nothing behind
    assert untouched(role.database)
    stored, publications = known(walstream)
    assert not stored.intent
    assert publications is None

    repair(role.database, finding.repair)
    found = role.look()
    assert not stops(found)
    assert not of(found, "publication-right")
    walstream.start().streaming()
    role.database.execute("INSERT INTO t VALUES (1); INSERT INTO k VALUES (1)")
    reader.count(2)
    assert walstream.terminate() == 0


def test_who_cannot_see_files_of_large_transactions_is_told_how(role: Role) -> None:
    cured(role, "spill-unseen", Severity.NOTE)


def test_no_alarm_needs_no_right_to_see_files(role: Role) -> None:
    assert not of(role.look(alarm_spill=0), "spill-unseen")


def test_an_owner_needs_only_to_create_publications(
    role: Role, runs: Runs, reader: Reader
) -> None:
    owner = role.name.replace('"', '""')
    role.database.execute(
        f'ALTER ROLE "{owner}" REPLICATION;'
        f'ALTER TABLE t OWNER TO "{owner}"; ALTER TABLE k OWNER TO "{owner}"'
    )
    finding = one(role.look(), "publication-right", Severity.STOP, 4)
    assert finding.repair.sql.startswith("GRANT CREATE ON DATABASE")
    assert not stops(cured(role, "publication-right", Severity.STOP, 4))
    walstream = runs(role.dsn).start().streaming()
    role.database.execute("INSERT INTO t VALUES (1); INSERT INTO k VALUES (1)")
    reader.count(2)
    assert walstream.terminate() == 0


def test_tables_of_others_that_come_later_are_named_and_run_goes_on(
    role: Role, runs: Runs, reader: Reader
) -> None:
    owner = role.name.replace('"', '""')
    role.database.execute(
        f'ALTER ROLE "{owner}" REPLICATION; CREATE TABLE keyed (id int PRIMARY KEY)'
    )
    cured(role, "publication-right", Severity.STOP, 4)
    role.database.execute(
        "CREATE TABLE late (id int PRIMARY KEY); CREATE TABLE late_log (a int);"
        "CREATE TABLE later_log (a int);"
        "ALTER TABLE keyed DROP CONSTRAINT keyed_pkey"
    )
    found = role.look()
    assert not stops(found)
    added, logged = of(found, "publication-right")
    assert "public.late" in added.what
    assert added.subject == "table public.late"  # and not all that are wanted
    assert "public.late_log" in logged.what
    one(found, "updates-fail", Severity.WARNING)
    # what it may neither add nor take out does not keep it from streaming the rest
    walstream = runs(role.dsn).start().streaming()
    role.database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    assert walstream.terminate() == 0

    for finding in (added, logged):
        assert finding.severity is Severity.WARNING
        repair(role.database, finding.repair)
    assert not of(role.look(), "publication-right")
    walstream.start().streaming()
    role.database.execute(
        "INSERT INTO late VALUES (1); INSERT INTO later_log VALUES (1)"
    )
    reader.count(3)
    assert walstream.terminate() == 0


def test_a_publication_for_inserts_that_cannot_be_made_is_no_stop(role: Role) -> None:
    owner = role.name.replace('"', '""')
    role.database.execute(
        f'ALTER ROLE "{owner}" REPLICATION; ALTER TABLE t OWNER TO "{owner}"'
    )
    role.database.execute(
        f'GRANT CREATE ON DATABASE "{role.database.name}" TO "{owner}"'
    )
    found = role.look()
    assert not stops(found)
    (finding,) = of(found, "publication-right")
    assert "public.k" in finding.what
    assert '"walstream_insert"' in finding.repair.sql
    cured(role, "publication-right", Severity.WARNING)


def test_long_values_that_may_not_be_read_are_named(role: Role) -> None:
    role.database.execute(
        "CREATE SCHEMA s; CREATE TABLE s.v (id int PRIMARY KEY, v text);"
        "CREATE TABLE w (id int PRIMARY KEY, v text)"
    )
    finding = one(
        role.look(tables=["public.*", "s.*"]), "select-right", Severity.WARNING
    )
    assert finding.subject == "2 tables"
    assert "public.t" not in finding.what  # nothing in it is long
    repair(role.database, finding.repair)
    found = role.look(tables=["public.*", "s.*"])
    assert not of(found, "select-right")
    stop = role.look(tables=["*.*"], toast_on_key_change="stop")
    assert not of(stop, "select-right")


def test_rows_that_row_security_hides_are_named(role: Role) -> None:
    reader = role.name.replace('"', '""')
    role.database.execute(
        "CREATE TABLE w (id int PRIMARY KEY, v text);"
        f'ALTER TABLE w ENABLE ROW LEVEL SECURITY; GRANT SELECT ON w TO "{reader}"'
    )
    cured(role, "row-security", Severity.WARNING)


def test_a_role_that_may_only_replicate_is_told_all_that_others_are(
    role: Role,
) -> None:
    name = role.name.replace('"', '""')
    role.database.execute(f'ALTER ROLE "{name}" REPLICATION')
    found = role.look()
    assert not of(found, "not-asked")
    theirs = look(role.database.dsn)
    assert {one.code for one in theirs.findings} <= {one.code for one in found.findings}


def test_connections_that_are_refused_are_cured_by_what_is_printed(
    role: Role,
) -> None:
    database, name = role.database, role.name.replace('"', '""')

    database.execute(f'DROP ROLE "{name}"')
    cured(role, "login", Severity.STOP, 4)
    assert ("replication-right", 4) not in stops(role.look())

    database.execute(f'ALTER ROLE "{name}" NOLOGIN')
    cured(role, "login", Severity.STOP, 4)

    database.execute(f'REVOKE CONNECT ON DATABASE "{database.name}" FROM PUBLIC')
    cured(role, "login", Severity.STOP, 4)


def test_a_server_that_is_not_there_is_waited_for(
    newest_postgres: PostgresServer,
) -> None:
    away = look(f"postgresql://postgres@127.0.0.1:{free_port()}/x")
    assert AWAY in one(away, "connection", Severity.STOP, 5).why
    assert away.server is None
    assert not away.captured

    missing = look(newest_postgres.dsn("no_such_database"))
    finding = one(missing, "connection", Severity.STOP, 2)
    assert "create the database" in finding.repair.then


def test_the_line_for_pg_hba_lets_the_role_in(own_postgres: OwnPostgres) -> None:
    server = own_postgres(18)
    database = Database(server)
    database.execute(f"CREATE ROLE app LOGIN REPLICATION PASSWORD '{WORD}'")
    rules = server.data / "pg_hba.conf"
    rules.write_text("host all postgres 127.0.0.1/32 trust\nhost all all all reject\n")
    database.execute("SELECT pg_reload_conf()")
    dsn = make_conninfo(server.dsn(), user="app", password=WORD)

    def refused() -> Inspection:
        return look(dsn)

    wait_until(lambda: of(refused(), "login"), 10, "it is reloaded")
    finding = one(refused(), "login", Severity.STOP, 4)
    line = finding.repair.then.partition("reload: ")[2]
    assert line == 'host "postgres" "app" 127.0.0.1/32 scram-sha-256'
    rules.write_text(f"{line}\n{rules.read_text()}")
    database.execute("SELECT pg_reload_conf()")
    wait_until(lambda: not of(refused(), "login"), 10, "it lets the role in")

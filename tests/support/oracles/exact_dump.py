"""Dumps of a source and of its mirror at the same LSN, while both go on.

A slot's exported snapshot sees the transactions whose commits are below its LSN, and no
other. The mirror is refused the first one at or above that LSN, at the update of its
position, and tries again until it may. A wait there would keep a TRUNCATE's lock.
"""

# ruff: noqa: S608 - SQL of constants

import subprocess
from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from tests.support.fixtures.postgres import Database
from walstream.lsn import Lsn, parse
from walstream.testing.servers import LocalPostgres

_POSITION: Final = "replication_consumer_transaction"
_SLOT: Final = "exact_dump"
_GATE: Final = f"""
CREATE TABLE gate (lsn bigint);
INSERT INTO gate VALUES (NULL);
CREATE SEQUENCE gate_reached MINVALUE 0;
CREATE FUNCTION refuse_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE below bigint := (SELECT lsn FROM gate);
BEGIN
  IF NEW.lsn::bigint >= below THEN
    PERFORM setval('gate_reached', below); -- stays, though all else is rolled back
    RAISE SQLSTATE '55P03'; -- which is tried again
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER gate BEFORE UPDATE ON {_POSITION} FOR EACH ROW
  WHEN (NEW.lsn IS DISTINCT FROM OLD.lsn) EXECUTE FUNCTION refuse_at_gate();
"""


_ANOTHER_FILE = """
SELECT FROM pg_class, unnest(%s::text[]) AS name
WHERE oid = name::regclass AND relfilenode <> pg_relation_filenode(oid)
"""
"""Tables with another file than the snapshot says: the function sees the present."""


class Gate:
    """Stops a group in front of the first transaction at or above an LSN."""

    def __init__(self, target: Database) -> None:
        """Make it; the group's tables have to exist."""
        self._target = target
        target.execute(_GATE)

    def open_below(self, lsn: Lsn) -> None:
        self._target.execute("UPDATE gate SET lsn = %s", lsn)

    def open(self) -> None:
        self._target.execute("UPDATE gate SET lsn = NULL")

    def is_reached(self, lsn: Lsn) -> bool:
        """Tell whether all that is below the LSN is applied, and nothing else is."""
        return self._target.fetch("SELECT last_value FROM gate_reached") == [(lsn,)]


def dump_of_snapshot(
    database: Database, tables: Sequence[str]
) -> tuple[Lsn, list[str]]:
    """Return an LSN, and what `pg_dump` sees of the transactions below it."""
    while True:
        found = _dump_of_snapshot(database, tables)
        if found is not None:
            return found


def _dump_of_snapshot(
    database: Database, tables: Sequence[str]
) -> tuple[Lsn, list[str]] | None:
    """Return None where a table was truncated behind the snapshot: it looks empty.

    No lock can be taken before: a TRUNCATE that waits for it, the slot would wait for.
    """
    dsn = make_conninfo(database.dsn, replication="database")
    command = f"CREATE_REPLICATION_SLOT {_SLOT} TEMPORARY LOGICAL pgoutput"
    with (
        psycopg.connect(database.dsn) as holder,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        made = connection.pgconn.exec_(f"{command} (SNAPSHOT 'export')".encode())
        lsn, snapshot = made.get_value(0, 1), made.get_value(0, 2)
        assert lsn, made.error_message
        assert snapshot
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.decode()}'")
        holder.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE")
        if holder.execute(_ANOTHER_FILE, [list(tables)]).rowcount:
            return None
        rows = dump(database, tables, f"--snapshot={snapshot.decode()}")
    return parse(lsn.decode()), rows


def dump(database: Database, tables: Sequence[str], *more: str) -> list[str]:
    """Return the rows of a `pg_dump`, as sorted INSERTs."""
    assert isinstance(database.server, LocalPostgres)
    command = [
        str(database.server.binaries / "pg_dump"),
        *("--data-only", "--inserts", f"--dbname={database.dsn}"),
        *(f"--table={name}" for name in tables),
        *more,
    ]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return sorted(
        line for line in done.stdout.splitlines() if line.startswith("INSERT")
    )

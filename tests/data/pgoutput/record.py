"""Records golden payloads: what PostgreSQL 15 and 18 send for each .sql file here.

`python -m tests.data.pgoutput.record [case...]` writes `<case>-<version>.bin`: each
payload behind its length. Above the line `-- recorded from here` stands the set-up.
"""

import struct
import sys
from pathlib import Path

import psycopg

from tests.support.fixtures.postgres import (
    PostgresServer,
    local_postgres,
    temporary_database,
)
from walstream.postgres.connection import connect

FOLDER = Path(__file__).parent
_FROM_HERE = "-- recorded from here\n"
_PUBLICATION = "-- publication: "


def main() -> None:
    cases = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.sql"))
    for version in (15, 18):
        with local_postgres(version) as server:
            for case in cases:
                script = (FOLDER / f"{case}.sql").read_text("utf-8")
                payloads = record(server, script)
                path = FOLDER / f"{case}-{version}.bin"
                path.write_bytes(b"".join(map(prefixed, payloads)))


def prefixed(payload: bytes) -> bytes:
    return struct.pack("!I", len(payload)) + payload


def record(server: PostgresServer, script: str) -> list[bytes]:
    """Run a script in a database of its own, and read what a slot sends."""
    setup, recorded = script.split(_FROM_HERE)
    scope = "FOR ALL TABLES"
    if setup.startswith(_PUBLICATION):
        first, _, setup = setup.partition("\n")
        scope = first.removeprefix(_PUBLICATION)
    with temporary_database(server) as database, connect(database.dsn) as connection:
        _execute(connection, setup)
        options = "WITH (publish_via_partition_root = true)"
        _execute(connection, f"CREATE PUBLICATION golden {scope} {options}")
        connection.execute(
            "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')",
            (database.name,),
        )
        _execute(connection, recorded)
        rows = connection.execute(
            "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL,"
            " 'proto_version', '1', 'publication_names', 'golden', 'messages', 'true')",
            (database.name,),
        ).fetchall()
    return [bytes(row[0]) for row in rows]


def _execute(connection: psycopg.Connection[tuple[object, ...]], script: str) -> None:
    # one at a time: each is a transaction of its own unless it says BEGIN
    for statement in script.split(";\n"):
        if statement.strip():
            connection.execute(statement.encode())


if __name__ == "__main__":
    main()

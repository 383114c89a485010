"""A reader that holds a slot, and takes nothing from it."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database

_ACTIVE = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"


@contextmanager
def reading(database: Database, slot: str) -> Iterator[None]:
    """Hold the slot, whose publication is `walstream`, as another walstream would."""
    dsn = conninfo.make_conninfo(database.dsn, replication="database")
    command = (
        f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0'
        " (proto_version '1', publication_names 'walstream')"
    )
    connection = psycopg.connect(dsn, autocommit=True)
    try:
        connection.pgconn.send_query(command.encode())
        wait_until(lambda: database.fetch(_ACTIVE, slot) == [(True,)], 20, "it reads")
        yield
    finally:
        connection.close()

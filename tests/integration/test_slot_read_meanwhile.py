"""A slot that another client read while a backfill ran: it has no reader then."""

import threading
from dataclasses import replace

import pytest

from tests.support.fixtures.postgres import Database
from walstream.errors import SlotLost
from walstream.pipeline.ports import Position
from walstream.postgres import server as servers
from walstream.postgres import slot
from walstream.postgres.connection import connect
from walstream.postgres.slot import SlotSpec, WaitPolicy
from walstream.postgres.stream import open_stream


def test_a_slot_that_is_beyond_the_position_by_now_is_not_read(
    database: Database,
) -> None:
    database.execute("CREATE TABLE t (v text)")
    database.execute("CREATE PUBLICATION p FOR TABLE t")
    patience = WaitPolicy(threading.Event(), lambda _: None)
    made = slot.create(database.dsn, SlotSpec("s"), patience)
    made.connection.close()
    with connect(database.dsn) as connection:
        found = servers.look(connection)
    identifier, timeline = found.system_identifier, found.timeline
    start = Position(made.consistent_point, identifier, timeline, found.database, "s")
    open_stream(database.dsn, found, start, source="app", publications=["p"]).close(
        wait_s=5.0
    )
    database.execute("INSERT INTO t VALUES ('x')")
    database.execute(
        "SELECT pg_replication_slot_advance('s', pg_current_wal_insert_lsn())"
    )
    with pytest.raises(SlotLost, match="beyond the position"):
        open_stream(database.dsn, found, start, source="app", publications=["p"])
    # and lets it go
    behind = replace(start, resume=found.flush_lsn + (1 << 30))
    open_stream(database.dsn, found, behind, source="app", publications=["p"]).close()

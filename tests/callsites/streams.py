"""Scenarios of one stream: its first start, its life, and its next start."""

# ruff: noqa: S608 - SQL of numbers

from collections.abc import Iterable
from contextlib import suppress
from typing import ClassVar, Final

import psycopg

from tests.callsites.scenario import Scenario, Scene, claim
from tests.support.fixtures.postgres import Database
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    foreign,
    missing,
)
from tests.support.oracles.table_state import by_arrival, by_position, rows_of
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import Walstream
from walstream.errors import WalstreamError
from walstream.lsn import parse
from walstream.state.store import LmdbStore

TABLES: Final = (
    "CREATE TABLE load (id bigint PRIMARY KEY, n int NOT NULL, note text);"
    " ALTER TABLE load ALTER note SET STORAGE EXTERNAL"
)
TABLE: Final = "public.load"


LARGE: Final = 3_000  # bytes of a value that an update does not send again


def changes(number: int, size: int) -> Iterable[str]:
    """Give transactions of every kind of op; each number has keys of its own."""
    low = number * 100
    yield (
        f"INSERT INTO load SELECT i, 0, repeat('x', {size})"
        f" FROM generate_series({low}, {low + 9}) AS i"
    )
    yield f"UPDATE load SET n = n + 1 WHERE id BETWEEN {low} AND {low + 4}"
    yield f"DELETE FROM load WHERE id = {low + 1}"
    yield f"UPDATE load SET id = {low + 50} WHERE id = {low + 2}"


class Stream(Scenario):
    """Changes in several batches, a stop, the next start, and a stop."""

    name: ClassVar[str] = "stream"
    size: ClassVar[int] = LARGE  # of a note

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.database = scene.database()
        self.database.execute(TABLES)
        self.walstream = self.program()
        self.service = scene.service(self.walstream)
        self.reader = scene.stack.enter_context(Reader(scene.bootstrap, scene.prefix))
        self.oracle: OracleSlot | None = None
        self._number = 0

    def program(self) -> Walstream:
        return Walstream(
            self.database.dsn,
            self.scene.bootstrap,
            self.scene.folder,
            self.scene.prefix,
            sink={"topic_partitions": 2},
        )

    def act(self) -> None:
        self.begin()
        self.batch()
        self.scene.tap.arm()
        for _ in range(3):
            self.batch()
            if self.struck:
                return
        self.stop()
        if not self.struck:
            self.service.start()
            self.batch()
            self.stop()

    def begin(self) -> None:
        """Start, and wait until what is written is streamed."""
        self.service.start()
        self.wait(lambda: self.walstream.said("streaming"), "it streams")
        if not self.struck:
            self.oracle = OracleSlot(self.database)

    def batch(self) -> None:
        """Write, and see all of it arrive."""
        assert self.oracle is not None
        self._number += 1
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            for transaction in changes(self._number, self.size):
                connection.execute(transaction)
        self.oracle.names()
        self.wait(self.whole, "all changes arrive")

    def whole(self) -> bool:
        """Tell whether all that was committed arrived."""
        assert self.oracle is not None
        return not missing(self.oracle.names(), self.reader.read())

    def settle(self) -> None:
        self.never_ahead()
        self.service.tend()
        if self.oracle is None:
            self.service.until(lambda: self.walstream.said("streaming"), "it streams")
            self.oracle = OracleSlot(self.database)
        self.batch()
        self.service.until(self.whole, "all changes arrive")
        self.never_ahead()
        self.service.stop()
        self.compare(self.reader)

    def compare(self, reader: Reader) -> None:
        assert self.oracle is not None
        records, expected = reader.read(), self.oracle.names()
        claim(not missing(expected, records), "ops are missing")
        claim(not foreign(expected, records), "ops came that nobody committed")
        assert_rewind_and_continue(records)
        table = rows_of(self.database, TABLE)
        claim(by_position(records) == table, "folded by position it is not the table")
        claim(by_arrival(records) == table, "folded by arrival it is not the table")

    def never_ahead(self) -> None:
        """Claim that nothing below a position is missing in Kafka."""
        position = max(self._stored(), confirmed(self.database, self.walstream.slot))
        if self.oracle is None or not position:
            return
        below = [name for name in self.oracle.names() if name[0] < position]
        lost = missing(below, self.reader.read())
        claim(not lost, f"the position is ahead of {len(lost)} ops")

    def _stored(self) -> int:
        found = None
        with (
            suppress(WalstreamError),  # it is being written
            LmdbStore.open_read_only(self.walstream.state) as positions,
        ):
            found = positions.position() if positions else None
        return found.resume if found else 0


def confirmed(database: Database, slot: str) -> int:
    rows = database.fetch(
        "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s",
        slot,
    )
    return parse(rows[0][0]) if rows and rows[0][0] else 0


class FirstStart(Stream):
    """From nothing to the first rows, and a stop."""

    name: ClassVar[str] = "first-start"

    def act(self) -> None:
        self.scene.tap.arm()
        self.begin()
        if not self.struck:
            self.batch()
            self.stop()

"""A short connection to a polled database: what is asked there without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from walstream.sql import reading
from walstream.sql.engine import Database
from walstream.sql.marks import Mark, Marks
from walstream.sql.shape import Shape


@dataclass(frozen=True, slots=True)
class Place:
    """One table, and the database that it is in."""

    database: Database
    shape: Shape
    marks: Marks

    @contextmanager
    def connect(self) -> "Iterator[TableLook]":
        # none is kept open: a server that is being stopped waits for those
        with self.database.session() as connection:
            yield TableLook(connection, self.shape, self.marks)


@dataclass(frozen=True, slots=True)
class TableLook:
    """One connection, and the table that is looked at."""

    connection: Any
    shape: Shape
    marks: Marks

    def mark(self) -> Mark | None:
        return self.marks.look(self.connection)

    def newest(self) -> int | None:
        return reading.newest(self.connection, self.shape)

    def oldest(self) -> int | None:
        return reading.oldest(self.connection, self.shape)

    def ahead(self, after: int, rows: int) -> int | None:
        return reading.ahead(self.connection, self.shape, after, rows)

    def cuts(self, low: int, high: int, parts: int) -> Sequence[int]:
        return reading.cuts(self.connection, self.shape, low, high, parts)

    def present(self, intervals: Sequence[tuple[int, int]]) -> Sequence[int]:
        return reading.present(self.connection, self.shape, intervals)

"""A short connection to a polled database: what is asked there without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from walstream.sql import reading
from walstream.sql.engine import opened
from walstream.sql.marks import Mark, Marks
from walstream.sql.table import Shape


@dataclass(slots=True)
class Database:
    """One database, as the pollers of its tables ask it."""

    url: str = field(repr=False)
    shape: Shape
    marks: Marks

    @contextmanager
    def connect(self) -> "Iterator[TableLook]":
        # none is kept open: a server that is stopped waits for those
        with opened(self.url) as connection:
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

"""Reads rows of a polled table, as blocks of values that a record can hold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from walstream.sources.sql.database import query
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import SqlTableShape
from walstream.sources.sql.database.values import ValueConverters

Block = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads rows of one table; picklable."""

    database: Database
    shape: SqlTableShape

    @property
    def columns(self) -> Sequence[str]:
        return self.shape.names

    @property
    def key(self) -> int:
        """Which of the columns is the key."""
        return self.shape.key_place

    def ahead(self, low: int, high: int, limit: int | None) -> Iterator[Block]:
        """Yield rows by ascending key."""
        return self._blocks(
            lambda connection: query.rows(connection, self.shape, low, high, limit)
        )

    def late(self, keys: Sequence[int]) -> Iterator[Block]:
        """Yield the rows of these keys, as far as they are there."""
        return self._blocks(
            lambda connection: query.picked(connection, self.shape, keys)
        )

    def _blocks(
        self, read: Callable[[Any], Iterable[list[tuple[object, ...]]]]
    ) -> Iterator[Block]:
        with self.database.session() as connection:
            values = ValueConverters(self.shape, connection.dialect)
            for block in read(connection):
                yield values.convert(block)

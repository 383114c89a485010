"""What a task reads a polled table with: a connection of its own, and no other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from walstream.spark.poll import Block
from walstream.sql import reading
from walstream.sql.engine import opened
from walstream.sql.table import Shape


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads rows of one table; picklable."""

    url: str = field(repr=False)
    shape: Shape

    @property
    def columns(self) -> Sequence[str]:
        return self.shape.columns

    @property
    def key(self) -> int:
        return self.shape.columns.index(self.shape.key)

    def ahead(self, low: int, high: int, limit: int | None) -> Iterator[Block]:
        with opened(self.url) as connection:
            yield from reading.rows(connection, self.shape, low, high, limit)

    def late(self, keys: Sequence[int]) -> Iterator[Block]:
        with opened(self.url) as connection:
            yield from reading.picked(connection, self.shape, keys)

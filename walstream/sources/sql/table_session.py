"""A short connection to a polled database: what is asked there without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from walstream.sources.sql.database import key_generator, query
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.low_watermark import Mark, Marks
from walstream.sources.sql.database.shape import SqlTableShape, TableSpec
from walstream.sources.sql.database.table import look
from walstream.telemetry import runtime

_RENEW_S: Final = 60.0


class TableSession:
    """One table, and the database that it is in; it is looked at when it is needed."""

    def __init__(
        self, database: Database, wish: TableSpec, renew_s: float | None = None
    ) -> None:
        """Look at the table again after `renew_s`; None: only once it was forgotten.

        Where all columns are wanted, it is looked at again in any case.
        """
        self._database = database
        self._wish = wish
        if renew_s is None and not wish.fields:
            renew_s = _RENEW_S
        self._renew_s = renew_s
        self._looked_at = 0.0
        self._found: tuple[SqlTableShape, Marks] | None = None

    @property
    def shape(self) -> SqlTableShape:
        """What there was of it at the last connection."""
        if self._found is None:
            raise RuntimeError("the table was not inspected yet")
        return self._found[0]

    @property
    def lacks_mark(self) -> str:
        """Why the engine has no low-water mark; "" where it has, or nobody asked."""
        return self._found[1].lacking if self._found else ""

    def forget(self) -> SqlTableShape | None:
        """Look at the table again: it may be another one. Return what it was."""
        found, self._found = self._found, None
        return found[0] if found is not None else None

    @contextmanager
    def connect(self) -> "Iterator[TableLook]":
        # none is kept open: a server that is being stopped waits for those
        with self._database.session() as connection:
            found = self._found
            if found is None or self._is_old:
                shape = look(connection, self._wish)
                same = found is not None and found[0] == shape
                marks = found[1] if found is not None and same else Marks(shape)
                self._found = found = shape, marks
                self._looked_at = runtime.monotonic()
            yield TableLook(connection, *found)

    @property
    def _is_old(self) -> bool:
        """Whether columns may have come since."""
        if self._renew_s is None:
            return False
        return runtime.monotonic() - self._looked_at > self._renew_s

    def reach(self) -> None:
        """Raise what keeps everybody from connecting."""
        with self._database.session():
            pass


@dataclass(frozen=True, slots=True)
class TableLook:
    """One connection, and the table that is looked at."""

    connection: Any
    shape: SqlTableShape
    marks: Marks

    def mark(self) -> Mark | None:
        return self.marks.look(self.connection)

    def newest(self) -> int | None:
        return query.newest(self.connection, self.shape)

    def oldest(self) -> int | None:
        return query.oldest(self.connection, self.shape)

    def next_key(self) -> int | None:
        return key_generator.next_key(self.connection, self.shape)

    def is_replica(self) -> bool:
        return key_generator.is_replica(self.connection)

    def origin(self) -> str:
        return key_generator.origin(self.connection, self.shape)

    def ahead(self, after: int, rows: int) -> int | None:
        return query.ahead(self.connection, self.shape, after, rows)

    def cuts(self, low: int, high: int, parts: int) -> Sequence[int]:
        return query.cuts(self.connection, self.shape, low, high, parts)

    def present(self, intervals: Sequence[tuple[int, int]], most: int) -> Sequence[int]:
        return query.present(self.connection, self.shape, intervals, most)

"""A source's tables as its database has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from walstream.errors import WalstreamError

if TYPE_CHECKING:  # SQLAlchemy
    from walstream.sources.sql.database.shape import SqlTableShape


@dataclass(frozen=True, slots=True)
class TableInspection:
    """One table, or why it cannot be polled."""

    oldest: int | None = None  # the least key; None: there is no row
    newest: int | None = None
    lacks_mark: str = ""  # why there is no low-water mark
    problem: WalstreamError | None = None
    shape: "SqlTableShape | None" = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class DatabaseInspection:
    """A database, or why it cannot be asked."""

    tables: Mapping[str, TableInspection] = field(default_factory=dict)
    problem: WalstreamError | None = None

    @property
    def obstacle(self) -> WalstreamError | None:
        """The first error that `run` would meet."""
        problems = [table.problem for table in self.tables.values()]
        return next(filter(None, [self.problem, *problems]), None)

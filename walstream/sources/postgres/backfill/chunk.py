"""A chunk: some rows of one relation, and the query that reads them; pure.

Chunks are numbered from 1 over all tables of a snapshot; a row's seq_id is its chunk's
number, and its index in the chunk's reading order, which every attempt repeats. Where
none does (views, foreign tables, other access methods), each attempt has a number of
its own: who passes over what it had would pass over other rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from psycopg import sql

from walstream.errors import Transient
from walstream.op import CHUNK_BITS, Table
from walstream.spark.outcome import Unreadable


class Void(Transient):
    """The chunk can no longer be read under its snapshot: begin the table again."""


class SnapshotGone(Void):
    """The session that exported the snapshot is gone, and so is the snapshot."""


class TableRewritten(Void):
    """The table was rewritten, truncated or dropped: its old rows cannot be seen."""


class Doubtful(Unreadable):
    """The server does not give these rows: it may be a fault of the moment."""

    retryable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ChunkRelation:
    """Relation of a chunk, and the table under which its rows are sent.

    These differ for a partition whose root is published.
    """

    schema: str
    name: str
    oid: int
    table: Table
    row_filter: str = ""  # the publication's, as SQL
    alone: bool = True  # ONLY: without what inherits from it

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class PageRange:
    """Rows by their place in the table: from page `low`, to before `high`."""

    low: int
    high: int | None  # None: to the end, also of what is added now

    def __str__(self) -> str:
        return f"pages {self.low} to {'the end' if self.high is None else self.high}"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows by key: from `low`, to before `high`; None: without a bound."""

    columns: tuple[str, ...]
    low: tuple[str, ...] | None = field(repr=False)
    high: tuple[str, ...] | None = field(repr=False)
    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"key range {self.number} of {self.of}"  # its bounds are rows' values


Span = PageRange | KeyRange | None
"""None: all rows, in one query."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Range that one task reads."""

    number: int
    relation: ChunkRelation
    span: Span
    size: int = 0  # bytes, about: what progress counts
    sent_as: int = 0  # its rows' number, where an earlier attempt took the chunk's own

    @property
    def repeats(self) -> bool:
        """Return whether each attempt reads the same rows in the same order."""
        return self.span is not None

    @property
    def title(self) -> str:
        return self.relation.table.full_name

    @property
    def first_seq_id(self) -> int:
        return (self.sent_as or self.number) << CHUNK_BITS

    def __str__(self) -> str:
        where = self.span or "all rows"
        return f'chunk {self.number}: table "{self.relation.full_name}", {where}'


def transactional_id(transactions: str, chunk: int) -> str:
    """Name the Kafka transaction of a chunk's attempts."""
    return f"{transactions}-{chunk}"


def statement(chunk: Chunk) -> sql.Composed:
    """Write the COPY of a chunk's rows, in an order that repeats."""
    relation = chunk.relation
    wanted = [_within(chunk.span)] if chunk.span is not None else []
    if relation.row_filter:
        # as the server itself printed it
        wanted.append(sql.SQL("({})").format(sql.SQL(relation.row_filter)))
    query = sql.SQL("SELECT {} FROM {}{}{}{}").format(
        sql.SQL(", ").join(map(sql.Identifier, relation.table.columns)),
        sql.SQL("ONLY " if relation.alone else ""),
        sql.Identifier(relation.schema, relation.name),
        sql.SQL(" WHERE ") + sql.SQL(" AND ").join(wanted) if wanted else sql.SQL(""),
        _order(chunk.span),
    )
    return sql.SQL("COPY ({}) TO STDOUT").format(query)


def _within(span: PageRange | KeyRange) -> sql.Composable:
    if isinstance(span, PageRange):
        bounds = [("ctid >= {}::tid", f"({span.low},0)")]
        if span.high is not None:
            bounds.append(("ctid < {}::tid", f"({span.high},0)"))
        return sql.SQL(" AND ").join(
            sql.SQL(bound).format(sql.Literal(place)) for bound, place in bounds
        )
    key = _listed(sql.Identifier(name) for name in span.columns)
    parts = [
        key + sql.SQL(f" {sign} ") + _listed(map(sql.Literal, bound))
        for sign, bound in ((">=", span.low), ("<", span.high))
        if bound is not None
    ]
    return sql.SQL(" AND ").join(parts) if parts else sql.SQL("true")


def _listed(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL("({})").format(sql.SQL(", ").join(parts))


def _order(span: Span) -> sql.Composable:
    if not isinstance(span, KeyRange):
        return sql.SQL("")
    names: Sequence[sql.Composable] = [sql.Identifier(name) for name in span.columns]
    return sql.SQL(" ORDER BY ") + sql.SQL(", ").join(names)

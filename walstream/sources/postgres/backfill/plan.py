"""The chunks of a snapshot's tables: many small ones, those of the biggest table first.

Heap tables are read by ranges of pages; what has none of them, by ranges of a key.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from psycopg import sql

from walstream.errors import WalstreamError
from walstream.sources.postgres.backfill.chunk import Chunk, KeyRange, PageRange, Span
from walstream.sources.postgres.backfill.publication_filter import (
    Connection,
    KeyedTable,
    Through,
)
from walstream.sources.postgres.backfill.table import ReadableRelation, look_at_each

CHUNK_BYTES: Final = 16 << 20
CHUNK_ROWS: Final = 100_000  # where the bytes do not decide
_MOST_CHUNKS: Final = 4096  # of one relation: each is remembered until the end


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """Plan of a backfill: what to read, and what cannot be read."""

    chunks: list[Chunk]
    refused: dict[str, WalstreamError]  # why, by table: `schema.table`


def plan(
    connection: Connection,
    tables: Iterable[KeyedTable],
    *,
    through: Through | None = None,
    first: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
) -> BackfillPlan:
    """Cut the tables into chunks, numbered from `first` on.

    Under the snapshot that they will be read under, or before it: the last chunk of a
    relation is open-ended. Tables are looked at some at a time, as they are taken;
    `through` is what the publications of all let through.
    """
    found: list[tuple[KeyedTable, list[ReadableRelation]]] = []
    refused: dict[str, WalstreamError] = {}
    for wanted, parts in look_at_each(connection, tables, through):
        if isinstance(parts, WalstreamError):
            refused[wanted.full_name] = parts
        else:
            found.append((wanted, parts))
    found.sort(key=lambda one: -sum(part.size for part in one[1]))
    spans = (
        (part, span)
        for wanted, parts in found
        for part in sorted(parts, key=lambda part: -part.size)
        for span in _spans(connection, wanted, part, chunk_bytes)
    )
    return BackfillPlan(list(_numbered(spans, first)), refused)


def _numbered(
    spans: Iterable[tuple[ReadableRelation, Span]], first: int
) -> Iterator[Chunk]:
    for number, (part, span) in enumerate(spans, first):
        size = part.size
        if isinstance(span, PageRange):
            size = by_pages_size(part.size, part.pages, span)
        elif isinstance(span, KeyRange):
            size //= span.of
        yield Chunk(number, part.relation, span, size)


def _spans(
    connection: Connection, wanted: KeyedTable, part: ReadableRelation, chunk_bytes: int
) -> Sequence[Span]:
    if part.by_place and not wanted.by_key:
        return by_pages(part.pages, part.size, chunk_bytes)
    if wanted.ranges and not _is_foreign(connection, part):
        return by_keys(wanted.ranges, _bounds(connection, wanted, part))
    return [None]


# a key of an extension's type: its operators are not on the session's search_path, and
# another type's may be found, which order otherwise
_FOREIGN: Final = """
SELECT EXISTS (SELECT FROM pg_index i CROSS JOIN unnest(i.indclass) AS class
  JOIN pg_opclass o ON o.oid = class JOIN pg_amop m ON m.amopfamily = o.opcfamily
  JOIN pg_operator r ON r.oid = m.amopopr
  WHERE i.indrelid = %s AND i.indisprimary
    AND r.oprnamespace <> 'pg_catalog'::regnamespace)
"""


def _is_foreign(connection: Connection, part: ReadableRelation) -> bool:
    """Return whether comparing its key takes operators other than PostgreSQL's own."""
    return connection.execute(_FOREIGN, (part.relation.oid,)).fetchone() == (True,)


def by_pages(pages: int, size: int, chunk_bytes: int) -> list[PageRange]:
    """Cut a table into ranges of pages, of about so many bytes with their TOAST."""
    wanted = min(max(1, size // max(chunk_bytes, 1)), _MOST_CHUNKS, max(pages, 1))
    step = -(-max(pages, 1) // wanted)
    lows = list(range(0, max(pages, 1), step))
    return [
        *(PageRange(low, high) for low, high in pairwise(lows)),
        PageRange(lows[-1], None),
    ]


def by_pages_size(size: int, pages: int, span: PageRange) -> int:
    """Return the bytes of a range, about."""
    high = max(pages, span.low) if span.high is None else span.high
    return size * (high - span.low) // max(pages, 1)


def by_keys(
    columns: tuple[str, ...], bounds: Sequence[tuple[str, ...]]
) -> list[KeyRange]:
    """Cut a table at these keys, in their order."""
    edges = [None, *bounds, None]
    return [
        KeyRange(columns, low, high, number, len(edges) - 1)
        for number, (low, high) in enumerate(pairwise(edges), 1)
    ]


_EVERY: Final = (
    "SELECT {key} FROM (SELECT {key}, row_number() OVER (ORDER BY {key}) - 1 AS place"
    " FROM {only}{table}) AS numbered"
    " WHERE place > 0 AND place % {rows} = 0 ORDER BY {key}"
)


def _bounds(
    connection: Connection, wanted: KeyedTable, part: ReadableRelation
) -> list[tuple[str, ...]]:
    """Find every so many rows' key, as PostgreSQL prints it."""
    relation = part.relation
    query = sql.SQL(_EVERY).format(
        key=sql.SQL(", ").join(map(sql.Identifier, wanted.ranges)),
        only=sql.SQL("ONLY " if relation.alone else ""),
        table=sql.Identifier(relation.schema, relation.name),
        rows=sql.Literal(CHUNK_ROWS),
    )
    result = connection.execute(query).pgresult
    if result is None:
        return []
    return [
        tuple(
            (result.get_value(row, column) or b"").decode()
            for column in range(result.nfields)
        )
        for row in range(result.ntuples)
    ]

"""Queries of a table in the order of its key: new, existing, and picked rows.

Rows come in pages, each a short statement of its own, read to its end before its rows
are handed out: so no cursor, lock or snapshot is held while they are sent. Every
function is used within `engine.session`, and outside of a transaction.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    func,
    literal,
    or_,
    select,
)

from walstream.errors import ConfigError
from walstream.sources.sql.database.key import (
    ascending,
    whole,
    wholes,
)
from walstream.sources.sql.database.page import Block, PageReader
from walstream.sources.sql.database.shape import SqlTableShape

_RANGES: Final = 100  # that one statement asks for
_PICKED: Final = 500  # keys, likewise
_HIGHEST: Final = (1 << 63) - 1  # that fits into a BIGINT
_LOWEST: Final = -1 << 63
_HIGHEST_UNSIGNED: Final = (1 << 64) - 1
_UNSIGNED: Final = frozenset({"mysql", "mariadb"})  # which have greater ones


def newest(connection: Connection, shape: SqlTableShape) -> int | None:
    """Return the highest key; None: the table is empty.

    As all that gives one key: ConfigError if it is beyond those that can be polled.
    """
    return _one(connection, shape, select(func.max(_key(shape))))


def oldest(connection: Connection, shape: SqlTableShape) -> int | None:
    """Return the lowest key; None: the table is empty."""
    return _one(connection, shape, select(func.min(_key(shape))))


def ahead(
    connection: Connection, shape: SqlTableShape, after: int | None, limit: int
) -> int | None:
    """Return the key of the last of the next `limit` rows; None: there are none."""
    key = _key(shape)
    near = select(key).where(*_between(connection, shape, after, None))
    found = near.order_by(key).limit(limit).subquery()
    return _one(connection, shape, select(func.max(found.c[shape.key.name])))


def cuts(
    connection: Connection, shape: SqlTableShape, low: int | None, high: int, parts: int
) -> list[int]:
    """Cut the keys after `low`, up to `high`, into so many ranges, or fewer.

    Each cut is the last key of a range; the last range ends with `high`. They are of
    one width: equally full, unless keys are missing.
    """
    asked = select(func.min(_key(shape))).where(*_between(connection, shape, low, high))
    first = _one(connection, shape, asked)
    if first is None:
        return []
    width = high - first + 1
    ends = (first - 1 + width * part // parts for part in range(1, parts))
    return sorted({end for end in ends if first <= end < high})


def rows(
    connection: Connection,
    shape: SqlTableShape,
    low: int | None,
    high: int,
    limit: int | None = None,
) -> Iterator[Block]:
    """Read the rows after `low`, up to `high`, as they are when their page is read."""
    pages = PageReader(connection, shape)
    while limit is None or limit > 0:
        within = _between(connection, shape, low, high)
        block, ended = pages.read(within, limit)
        if block:
            low = ascending((row[pages.key] for row in block), low, shape)[-1]
            yield block
        if ended:
            return
        limit = None if limit is None else limit - len(block)


def present(
    connection: Connection,
    shape: SqlTableShape,
    ranges: Iterable[tuple[int, int]],
    most: int,
) -> list[int]:
    """Return the first existing keys, up to `most`, in these ranges.

    Ends are included; the ranges are in order, and none lies over another.
    """
    key, waiting = _key(shape), iter(ranges)
    found: list[int] = []
    while len(found) < most and (some := list(islice(waiting, _RANGES))):
        wanted = or_(
            *(
                key.between(_bound(connection, low), _bound(connection, high))
                for low, high in some
            )
        )
        asked = select(key).where(wanted).order_by(key).limit(most - len(found))
        with connection.begin():
            keys = connection.execute(asked).scalars().all()
        found += wholes(keys, shape)
    return found


def picked(
    connection: Connection, shape: SqlTableShape, keys: Iterable[int]
) -> Iterator[Block]:
    """Read the rows of exactly these keys, in their order, as far as they are there."""
    pages = PageReader(connection, shape)
    waiting = sorted(set(keys))
    while waiting:
        some = waiting[:_PICKED]
        wanted = _key(shape).in_([_bound(connection, one) for one in some])
        block, ended = pages.read([wanted], len(some))
        last = some[-1]
        if block:
            read = ascending((row[pages.key] for row in block), None, shape)
            last = last if ended else read[-1]
            yield block
        waiting = [one for one in waiting if one > last]


def _key(shape: SqlTableShape) -> ColumnElement[Any]:
    return shape.clause().c[shape.key.name]


def _between(
    connection: Connection, shape: SqlTableShape, low: int | None, high: int | None
) -> Sequence[ColumnElement[bool]]:
    key = _key(shape)
    above = [] if low is None else [key > _bound(connection, low)]
    return above if high is None else [*above, key <= _bound(connection, high)]


def _bound(connection: Connection, key: int) -> ColumnElement[int]:
    """Write a key so that an index on any type of integer is used for it."""
    if connection.dialect.name not in _UNSIGNED:
        key = max(min(key, _HIGHEST), _LOWEST)  # a row beyond it is refused
    return literal(key, BigInteger)


def _one(
    connection: Connection, shape: SqlTableShape, statement: Select[Any]
) -> int | None:
    with connection.begin():
        key = whole(connection.execute(statement).scalar(), shape)
    unsigned = connection.dialect.name in _UNSIGNED
    highest = _HIGHEST_UNSIGNED if unsigned else _HIGHEST
    if key is not None and not _LOWEST <= key <= highest:
        raise ConfigError(
            f"table {shape.name}: the key {shape.key.name} has the value {key}, and"
            f" only {_LOWEST} to {highest} can be polled",
            hint="delete or correct such rows, or name another column as primary_key",
        )
    return key

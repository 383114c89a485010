"""Pages of rows, bounded in rows and in the bytes of their texts.

How many rows are asked for, and how many fetched at a time, follows from how wide those
before were. Rows that suddenly are a thousand times wider end their page early.
"""

import codecs
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    cast,
    literal_column,
    select,
    types,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

from walstream.sources.sql.database import psycopg_text
from walstream.sources.sql.database.shape import SqlTableShape, Type
from walstream.sources.sql.database.values import comes_as_text, comes_rounded

_ERRORS: Final = "backslashreplace"
_CODEC: Final = "walstream_utf8"
# character_not_in_repertoire, untranslatable_character
_POSTGRES_STATES: Final = frozenset({"22021", "22P05"})
_SQLITE_WORDS: Final = "Could not decode to UTF-8"


def is_undecodable(error: BaseException) -> bool:
    """Whether a driver met such text."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    state = getattr(error, "sqlstate", None)
    return (
        isinstance(error, UnicodeDecodeError)
        or _SQLITE_WORDS in str(error)
        or state in _POSTGRES_STATES
    )


def tolerate(connection: Connection) -> bool:
    """Let the session read such text from now on; False if it did, or cannot."""
    raw: Any = connection.connection.driver_connection
    match connection.dialect.driver:
        case "pysqlite" if raw.text_factory is not text:
            raw.text_factory = text
        case "pymysql" if raw.encoding != _CODEC:
            raw.encoding = _CODEC
        case "psycopg":
            return psycopg_text.tolerate(raw)
        case _:
            return False
    return True


def text(data: bytes) -> str:
    """Decode, whatever it is."""
    return str(data, "utf-8", _ERRORS)


def _find(name: str) -> codecs.CodecInfo | None:
    if name != _CODEC:
        return None
    return codecs.CodecInfo(
        lambda given, errors="strict": codecs.utf_8_encode(given, errors),
        lambda data, errors=_ERRORS: codecs.utf_8_decode(data, _ERRORS, True),  # noqa: ARG005, FBT003 - a codec's signature
        name=_CODEC,
    )


codecs.register(_find)


ROWS: Final = "walstream_rows"  # the execution option of what reads rows
MOST_ROWS: Final = 10_000  # of a page
MOST_BYTES: Final = 16 << 20  # of its texts and bytes, and of one fetch more
_FETCH_ROWS: Final = 250  # where they may be wide
_FIRST_WIDTH: Final = 10_000  # bytes, as long as nothing is known
_OTHER_WIDTH: Final = 64  # bytes, of a list and the like
_NARROW_LENGTH: Final = 255
_NARROW: Final = (
    types.Integer,
    types.Numeric,
    types.Float,
    types.Boolean,
    types.DateTime,
    types.Date,
    types.Time,
    types.Interval,
    types.Uuid,
    types.Enum,
)

Row = tuple[Any, ...]
Block = list[Row]


class PageReader:
    """Reads one table's pages, in the order of its key."""

    def __init__(self, connection: Connection, shape: SqlTableShape) -> None:
        self.key = shape.key_place
        self._connection = connection
        self._table = shape.clause()
        self._order = self._table.c[shape.key.name]
        self._columns = [
            _read_as(self._table.c[one.name], one.type, connection.dialect)
            for one in shape.columns
        ]
        self._wide = [
            place for place, one in enumerate(shape.columns) if not is_narrow(one.type)
        ]
        self._width = _FIRST_WIDTH if self._wide else 0

    def read(
        self, within: Sequence[ColumnElement[bool]], most: int | None
    ) -> tuple[Block, bool]:
        """Read the next rows, and tell whether they are the last of these."""
        wanted = min(most or MOST_ROWS, MOST_ROWS, MOST_BYTES // (self._width + 1) + 1)
        try:
            return self._read(within, wanted)
        except Exception as error:
            if is_undecodable(error) and tolerate(self._connection):
                return self._read(within, wanted)
            raise

    def _read(
        self, within: Sequence[ColumnElement[bool]], wanted: int
    ) -> tuple[Block, bool]:
        statement = (
            select(*self._columns)
            .where(*within)
            .order_by(self._order)
            .limit(wanted)
            .execution_options(stream_results=True, **{ROWS: True})
        )
        block: Block = []
        fetched = _FETCH_ROWS if self._wide else MOST_ROWS
        size, ended = 0, False
        with self._connection.begin(), self._connection.execute(statement) as result:
            while len(block) < wanted and size < MOST_BYTES and not ended:
                asked = min(wanted - len(block), fetched)
                part = _fetched(result, asked)
                ended = len(part) < asked
                block += part
                size += self._size(part)
        if block:
            self._width = size // len(block)
        return block, ended

    def _size(self, part: Sequence[Sequence[Any]]) -> int:
        size = 0
        for place in self._wide:
            for row in part:
                value = row[place]
                if isinstance(value, (str, bytes)):
                    size += len(value)
                elif value is not None:
                    size += _OTHER_WIDTH
        return size


def _read_as(
    column: ColumnElement[Any], kind: Type, dialect: Dialect
) -> ColumnElement[Any]:
    """Select the column, or what the server writes of it."""
    if comes_as_text(kind, dialect):
        return cast(column, types.CHAR).label(column.key)
    if comes_rounded(kind, dialect):  # not a CAST, which only newer servers have
        return (column * literal_column("1e0")).label(column.key)
    return column


def _fetched(result: CursorResult[Any], size: int) -> Block:
    # not SQLAlchemy's rows, which would only be taken apart again
    part = result.cursor_strategy.fetchmany(result, result.cursor, size)
    return part if part and type(part[0]) is tuple else [tuple(row) for row in part]


def is_narrow(kind: Type) -> bool:
    """Whether no value of the type is large."""
    if isinstance(kind, types.String):
        return kind.length is not None and kind.length <= _NARROW_LENGTH
    return isinstance(kind, _NARROW)

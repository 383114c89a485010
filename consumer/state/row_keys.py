"""Keys of the tables of which a consumer keeps values: the option `whole_rows`."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from consumer.op import EnvelopeOp, Op
from consumer.values import Values
from walstream.errors import WalstreamError
from walstream.op import Kind

WholeRows = Mapping[str, str | Sequence[str]]
"""The columns of the key of each table, by `schema.table`."""

_LONGEST: Final = 200  # characters of a key that is stored as it is


class WholeRowsError(WalstreamError):
    """A table's key in `whole_rows` does not name its rows."""


class RowName(NamedTuple):
    """One row of one table."""

    table: str  # schema.table
    key: str


class RowKeys:
    """The keys of the tables of which values are kept."""

    def __init__(self, whole_rows: WholeRows | None) -> None:
        """Raise ValueError for a table without a key, or a name without a schema."""
        self._keys = {
            table: (columns,) if isinstance(columns, str) else tuple(columns)
            for table, columns in (whole_rows or {}).items()
        }
        for table, key in self._keys.items():
            if "." not in table:
                raise ValueError(f"whole_rows names {table!r}: write schema.table")
            if not key:
                raise ValueError(
                    f"whole_rows names no key of {table}: a row that is kept is found"
                    " by one (without one, only REPLICA IDENTITY FULL tells updates,"
                    " and that sends all values)"
                )

    def __bool__(self) -> bool:
        return bool(self._keys)

    def of(self, table: str) -> tuple[str, ...] | None:
        """Return the columns of a table's key; None: its values are not kept."""
        return self._keys.get(table)

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        return dict(self._keys)


class OpRows(NamedTuple):
    """The rows of an op; both are one where its key did not change."""

    before: RowName | None  # None: of an Insert or a Truncate
    after: RowName | None  # None: of a Delete or a Truncate


_NO_ROWS: Final = OpRows(None, None)


def rows_of(op: Op, key: tuple[str, ...]) -> OpRows:
    """Name the rows of an op; raise WholeRowsError where the key does not name them."""
    if op.kind is Kind.TRUNCATE:
        return _NO_ROWS
    _check(op, key)
    table = op.table.full_name
    if op.kind is Kind.DELETE:
        return OpRows(_name(table, key, op.old), None)
    after = _name(table, key, op.new)
    if op.kind is Kind.INSERT:
        return OpRows(None, after)
    # an envelope's Update has the key that it had, whatever its old row looks like
    if not op.old or isinstance(op, EnvelopeOp):
        return OpRows(after, after)
    return OpRows(_name(table, key, op.old), after)


def _check(op: Op, key: tuple[str, ...]) -> None:
    table = op.table
    if unknown := [name for name in key if name not in table.columns]:
        raise WholeRowsError(
            f"{table.full_name} has no column {', '.join(unknown)}, which whole_rows"
            " names as its key",
            hint=f"its columns are {', '.join(table.columns)}",
        )
    # of an old row just the replica identity is sent; a part of that names several rows
    if isinstance(op, EnvelopeOp):
        told = op.key_names
    elif op.old and op.old.absent:
        told = frozenset(op.old.keys())
    else:
        return
    if told != set(key):
        named = ", ".join(name for name in table.columns if name in told)
        raise WholeRowsError(
            f"whole_rows names {', '.join(key)} as the key of {table.full_name}, and"
            f" its records have {named or 'no key'}",
            hint="name those of its replica identity, or omit the table",
        )


def _name(table: str, key: tuple[str, ...], row: Values) -> RowName:
    try:
        text = json.dumps([row[name] for name in key], ensure_ascii=False)
    except KeyError:
        raise WholeRowsError(
            f"an op of {table} has no value of {', '.join(key)}, which whole_rows names"
            " as its key",
            hint="name the columns of the table's replica identity",
        ) from None
    if len(text) > _LONGEST:
        text = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    return RowName(table, text)

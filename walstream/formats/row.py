"""The format `row`: one row of a polled table, with a hash that names its content.

    {"timestamp":1.5,"name":"app","table":"t","data":{"id":3},"hash":"a6c4…"}

`hash` is SHA-256, in hex, over `data` as JSON with sorted keys, the separators ", " and
": ", and non-ASCII escaped. A poll may send a row again; its hash stays the same as
long as the row does. docs/formats.md has the whole of it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from itertools import chain
from typing import Any, Final
from uuid import UUID

from walstream.errors import WalstreamError
from walstream.formats.plain import plain

# Characters that stand in no JSON text but where these are put.
_ITEM: Final = "\0"
_PAIR: Final = "\1"
_FLAT: Final = frozenset(
    {type(None), bool, int, str, bytes, Decimal, date, datetime, time, timedelta, UUID}
)
_LAST_SECOND: Final = 253_402_300_800  # the year 10000, which no datetime can be of


@dataclass(frozen=True, slots=True)
class PolledRow:
    """One record of this format."""

    timestamp: float  # seconds since 1970, when walstream made the record
    name: str  # of the configured source
    table: str
    data: Mapping[str, Any]  # JSON values, in the order of the SELECT
    hash: str  # SHA-256 in hex

    def __repr__(self) -> str:
        """Name the row; its data belong in no log."""
        return f"<row of {self.name}, table {self.table}, hash {self.hash}>"


class RowEncoder:
    """Renders the rows of one query; what is the same for all is rendered once.

    The values of many rows are rendered in one go, to be put together twice: in the
    columns' order for the record, sorted by column for the hash.
    """

    def __init__(self, name: str, table: str, columns: Sequence[str]) -> None:
        if len(set(columns)) < len(columns):
            raise ValueError("two columns of one name")
        self._columns = tuple(columns)
        self._order = sorted(range(len(columns)), key=columns.__getitem__)
        self._head = f',"name":{compact(name)},"table":{compact(table)},"data":'
        keys = [compact(column).replace("%", "%%") for column in columns]
        row = ",".join(f"{key}:%s" for key in keys)
        self._record = self._head.replace("%", "%%") + f'{{{row}}},"hash":"%s"}}'
        hashed = ", ".join(f"{keys[i]}: %s" for i in self._order)
        self._hashed = f"{{{hashed}}}"

    def __call__(self, values: Sequence[object], at: float) -> bytes:
        """Render one row; encoding many at a time takes half as long for each."""
        return self.encode([values], at)[0]

    def encode(self, rows: Sequence[Sequence[object]], at: float) -> list[bytes]:
        """Render rows, whose values may be of any type; `at` is the Unix time."""
        texts = self._texts(rows)
        if texts is None:
            return self._encode_mixed(rows, at)
        width = len(self._columns)
        columns = [texts[i::width] for i in range(width)]
        hashes = self._hashes(columns)
        record = f'{{"timestamp":{float(at)!r}' + self._record
        rendered = map(record.__mod__, zip(*columns, hashes, strict=True))
        return [text.encode() for text in rendered]

    def hashes(self, rows: Sequence[Sequence[object]]) -> list[str]:
        """Return what `encode` writes as the rows' hashes."""
        texts = self._texts(rows)
        if texts is not None:
            width = len(self._columns)
            return self._hashes([texts[i::width] for i in range(width)])
        rare = [not all(map(_is_flat, row)) for row in rows]
        if not any(rare):
            return [self._hash_rare(row) for row in rows]
        flat = [row for row, is_rare in zip(rows, rare, strict=True) if not is_rare]
        others = iter(self.hashes(flat))
        return [
            self._hash_rare(row) if is_rare else next(others)
            for row, is_rare in zip(rows, rare, strict=True)
        ]

    def _hashes(self, columns: Sequence[Sequence[str]]) -> list[str]:
        sorted_columns = [columns[i] for i in self._order]
        return [
            sha256(text.encode()).hexdigest()
            for text in map(self._hashed.__mod__, zip(*sorted_columns, strict=True))
        ]

    def _hash_rare(self, values: Sequence[object]) -> str:
        return row_hash(dict(zip(self._columns, map(plain, values), strict=True)))

    def _texts(self, rows: Sequence[Sequence[object]]) -> list[str] | None:
        """Render all values, row after row.

        None: one is nested, or JSON has no form for it.
        """
        if any(len(row) != len(self._columns) for row in rows):
            raise ValueError("a row of another query")
        values = list(chain.from_iterable(rows))
        if not values:
            return None
        try:
            text = _flat(values)
        except (ValueError, TypeError, RecursionError):
            return None
        texts = text[1:-1].split(_ITEM)
        # what is nested is written with other separators in the hash
        nested = len(texts) != len(values) or _PAIR in text
        return None if nested else texts

    def _encode_mixed(self, rows: Sequence[Sequence[object]], at: float) -> list[bytes]:
        rare = [not all(map(_is_flat, row)) for row in rows]
        if not any(rare):
            return [self._encode_rare(row, at) for row in rows]
        flat = [row for row, is_rare in zip(rows, rare, strict=True) if not is_rare]
        records = iter(self.encode(flat, at))
        return [
            self._encode_rare(row, at) if is_rare else next(records)
            for row, is_rare in zip(rows, rare, strict=True)
        ]

    def _encode_rare(self, values: Sequence[object], at: float) -> bytes:
        data = dict(zip(self._columns, map(plain, values), strict=True))
        digest = row_hash(data)
        head = f'{{"timestamp":{float(at)!r}{self._head}'
        return f'{head}{compact(data)},"hash":"{digest}"}}'.encode()


def _is_flat(value: object) -> bool:
    """Return whether it is surely none of those that keep rows from being rendered."""
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in _FLAT


def row_hash(data: Mapping[str, Any]) -> str:
    """Hash a row's data, as JSON gives them."""
    return sha256(_sorted(data).encode()).hexdigest()


def key(value: int) -> bytes:
    """Render the record's key, as in the format `op`: an array of the key's text."""
    return b'["%d"]' % value


def written(row: PolledRow) -> bytes:
    """Write a record's value again, of what `decode` gives."""
    fields = {
        "timestamp": row.timestamp,
        "name": row.name,
        "table": row.table,
        "data": row.data,
        "hash": row.hash,
    }
    return compact(fields).encode()


def decode(value: bytes | str) -> PolledRow:
    """Read one record's value back; raise WalstreamError for anything else.

    Unknown fields are ignored. Whether the hash is that of the data is not looked at.
    """
    try:
        fields = loads(value if isinstance(value, str) else value.decode())
        row = PolledRow(
            timestamp=fields["timestamp"],
            name=fields["name"],
            table=fields["table"],
            data=fields["data"],
            hash=fields["hash"],
        )
        if not all(type(text) is str for text in (row.name, row.table, row.hash)):
            raise TypeError
        if type(row.data) is not dict or type(row.timestamp) not in {int, float}:
            raise TypeError
        if not 0 <= row.timestamp < _LAST_SECOND:
            raise ValueError
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise WalstreamError(f"not a row record: {type(error).__name__}") from None
    return row


def _number(constant: str) -> float:
    """Refuse what Python's JSON reads beyond the standard."""
    raise ValueError(constant)


def _finite(text: str) -> float:
    """Read a number; 1e999 would be written again as no JSON."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


compact: Final = json.JSONEncoder(separators=(",", ":")).encode
_sorted: Final = json.JSONEncoder(sort_keys=True).encode
_flat: Final = json.JSONEncoder(
    separators=(_ITEM, _PAIR), allow_nan=False, check_circular=False, default=plain
).encode
loads: Final = json.JSONDecoder(parse_constant=_number, parse_float=_finite).decode

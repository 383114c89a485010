"""A record of the format `row` in another encoding -> the row, as JSON has it.

A document is what Connect's JsonConverter would write of it.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.plain import plain
from walstream.formats.row import PolledRow, loads

COLUMNS: Final = "walstream.columns"
"""Parameter of a row's schema: the columns' names, where its fields have others."""
FIELDS: Final = ("timestamp", "name", "table", "data", "hash", "texts")

Read = Callable[[Any], Any]
"""Makes a value of the format `row` of one that is not null."""

_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_DAYS: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as columns without a zone have it
_OTHER_SHAPE: Final = (AttributeError, KeyError, TypeError, ValueError, OverflowError)


class RowDocument:
    """Reads documents of one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raise WalstreamError for a schema that is none of a row."""
        try:
            fields = {one["field"]: one for one in schema["fields"]}
            row = fields["data"]
            columns = [(one["field"], _read_of(one)) for one in row["fields"]]
            told = row.get("parameters", {}).get(COLUMNS)
            names = [name for name, _ in columns]
            names = names if told is None else [*map(str, orjson.loads(told))]
        except _OTHER_SHAPE as error:
            raise _other(error) from None
        if len(columns) != len(names):
            raise _other(ValueError())
        self._columns = [
            (name, field, read)
            for name, (field, read) in zip(names, columns, strict=True)
        ]

    @staticmethod
    def is_of(schema: Mapping[str, Any]) -> bool:
        """Return whether it is the schema of a polled row."""
        fields = schema.get("fields") or ()
        return tuple(one.get("field") for one in fields) == FIELDS

    def read(self, document: Mapping[str, Any]) -> PolledRow:
        """Read one; raise WalstreamError for what is not of the schema."""
        try:
            data: dict[str, Any] = {}
            found = document["data"]
            for name, field, read in self._columns:
                value = found[field]
                data[name] = value if value is None or read is None else read(value)
            for name, text in (document["texts"] or {}).items():
                if name not in data:
                    raise KeyError
                data[name] = loads(text)
            return PolledRow(
                timestamp=float(document["timestamp"]),
                name=document["name"],
                table=document["table"],
                data=data,
                hash=document["hash"],
            )
        except _OTHER_SHAPE as error:
            raise _other(error) from None


def _read_of(schema: Mapping[str, Any]) -> Read | None:
    """Return what reads a type's values; None: they are what JSON has."""
    if schema["type"] == "array":
        return _array(_read_of(schema["items"]))
    name = schema.get("name", "")
    if name == _DECIMAL:
        return lambda value: text_of(value, schema)
    return _READS.get(name)


def _array(item: Read | None) -> Read | None:
    if item is None:
        return None
    return lambda value: [None if one is None else item(one) for one in value]


def _date(value: int) -> str:
    return date.fromordinal(value + _DAYS).isoformat()


def _time(value: int) -> Any:
    return plain(timedelta(microseconds=value))


def _timestamp(value: int) -> str:
    return (_EPOCH + timedelta(microseconds=value)).isoformat()


def _zoned(value: str) -> str:
    return f"{value[:-1]}+00:00" if value.endswith("Z") else value


_READS: Final[Mapping[str, Read]] = {
    "io.debezium.data.Json": loads,
    "io.debezium.time.Date": _date,
    "io.debezium.time.MicroTime": _time,
    "io.debezium.time.MicroTimestamp": _timestamp,
    "io.debezium.time.ZonedTimestamp": _zoned,
}


def _other(error: Exception) -> WalstreamError:
    return WalstreamError(f"not a row record: {type(error).__name__}")

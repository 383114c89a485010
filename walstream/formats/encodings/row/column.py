"""Columns of a polled table: all that its schema and its records are made of.

Picklable, for tasks, and without a word of any database.
"""

from dataclasses import dataclass
from typing import Literal, Self

ColumnKind = Literal[
    "array",
    "boolean",
    "bytes",
    "date",
    "decimal",
    "double",
    "int16",
    "int32",
    "int64",
    "json",
    "string",
    "time",
    "timestamp",
    "uuid",
    "zoned",
]


@dataclass(frozen=True, slots=True)
class RowColumnType:
    """A type of values, as records have them."""

    kind: ColumnKind
    precision: int = 0  # of a decimal
    scale: int = 0  # likewise
    items: Self | None = None  # of an array


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column as it is selected."""

    name: str
    type: RowColumnType
    required: bool = False  # is it never null, as the catalog says?

"""A row's values by column name: PostgreSQL's texts, converted when asked for.

NULL is None. A column that PostgreSQL did not send (an unchanged toasted value, the
non-key columns of an old row) is absent: reading it raises, `absent` names it, and it
never looks like NULL.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from decimal import DecimalException
from functools import lru_cache
from typing import Any, Final, TypeVar, get_type_hints, overload

from consumer.convert import Converter, Unfit, converter, optional, shown
from walstream.errors import WalstreamError
from walstream.op import Table
from walstream.row import OMITTED, NotSent, Row, Value

T = TypeVar("T")
D = TypeVar("D")

_RAISE: Final = object()


class AbsentColumn(WalstreamError, KeyError):
    """The record holds no value of this column, which does not mean NULL."""

    def __str__(self) -> str:
        return f"{self.args[0]}\n  {self.hint}" if self.hint else str(self.args[0])


class Values:
    """One row. Iteration, `in`, `len` and `keys` know the columns that were sent.

    So `dict(op.new)` is what is known of the row. Where an op has no such row at all
    (the old one of an Insert), it is empty and false, and every column is absent.
    """

    __slots__ = ("_filled", "_places", "_row", "_table")

    def __init__(
        self, table: Table, row: Row | None, filled: frozenset[str] | None = None
    ) -> None:
        """Hold a row; `filled` are columns that were not sent, but were kept.

        None: nobody keeps values of the table.
        """
        self._table = table
        self._row = row
        self._filled = filled
        self._places = _places(table)

    def __getitem__(self, name: str) -> str | None:
        """Return PostgreSQL's text, or None for NULL; an absent column raises."""
        value = self._sent(name)
        if isinstance(value, NotSent):
            raise self._missing(name)
        return value

    @overload
    def get(self, name: str) -> str | None: ...
    @overload
    def get(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def get(self, name: str, *, default: D) -> str | D | None: ...
    @overload
    def get(self, name: str, kind: type[T], *, default: D) -> T | D | None: ...
    def get(self, name: str, kind: Any = str, *, default: Any = _RAISE) -> Any:
        """Return the value as `kind`, or None for NULL.

        `default` stands for an absent or unknown column, which raises without one. A
        value that `kind` cannot hold raises ValueError.
        """
        if default is not _RAISE and name not in self:
            return default
        text = self[name]
        if text is None or kind is str:
            return text
        return self._converted(name, text, _converter(kind), kind)

    def into(self, record: type[T]) -> T:
        """Make a dataclass: a field takes the column of its name, or of its metadata.

            @dataclass
            class Order:
                id: int
                total: Decimal | None
                note: str = field(default="", metadata={"column": "Note"})

        A field's default stands for an absent or unknown column, never for NULL.
        """
        known: Any = record  # a key of the cache
        return record(
            **{
                field.name: self._field(field)
                for field in _fields(known)
                if field.column in self or field.required
            }
        )

    def _sent(self, name: object) -> Value:
        """Look a column up; OMITTED stands for an unknown one, too."""
        place = self._places.get(name)
        return OMITTED if place is None or self._row is None else self._row[place]

    def _field(self, field: "_Field") -> Any:
        text = self[field.column]
        if text is not None:
            return self._converted(field.column, text, field.convert, field.kind)
        if not field.nullable:
            raise ValueError(
                f"{self._table.full_name}.{field.column} is NULL:"
                f" the field {field.name} does not allow None"
            )
        return None

    def _converted(self, name: str, text: str, convert: Converter, kind: object) -> Any:
        try:
            return convert(text)
        except Unfit as error:
            reason = str(error)
        except (ValueError, OverflowError, RecursionError, DecimalException):
            reason = "the text is not such a value, or is too large"
        # outside of the handler: the cause's own message holds the value
        raise ValueError(
            f"{self._table.full_name}.{name} does not fit {shown(kind)}: {reason}"
        )

    def _missing(self, name: str) -> KeyError:
        table = self._table.full_name
        if name not in self._table.columns:
            return KeyError(f"{table} has no column {name}")
        if self._row is None:
            return AbsentColumn(f"the op has no such row: no value of {table}.{name}")
        if self._filled is not None:
            return AbsentColumn(
                f"PostgreSQL did not send {table}.{name}, and the consumer has not"
                " seen it yet: it is not NULL, but unknown here",
                hint="let the handler skip an op with op.new.absent, and run"
                f" walstream backfill {table}: the whole row follows",
            )
        return AbsentColumn(
            f"PostgreSQL did not send {table}.{name}: it is not NULL, but unknown here",
            hint="read it from your own copy, give get() a default, let the consumer"
            f" keep it (whole_rows), or run ALTER TABLE {table} REPLICA IDENTITY FULL"
            " on the source",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Name all columns of the table, in its order."""
        return self._table.columns

    @property
    def absent(self) -> frozenset[str]:
        """Name the columns whose values were not sent, and are not known."""
        if self._row is None:
            return frozenset(self._table.columns)
        return frozenset(
            name
            for name, value in zip(self._table.columns, self._row, strict=False)
            if isinstance(value, NotSent)
        )

    @property
    def filled(self) -> frozenset[str]:
        """Name the columns that the change left as they were, and `whole_rows` knew."""
        return self._filled or frozenset()

    def items(self) -> list[tuple[str, str | None]]:
        """Return the columns that were sent, with their texts, in the table's order."""
        return [
            (name, value)
            for name, value in zip(self._table.columns, self._row or (), strict=False)
            if not isinstance(value, NotSent)
        ]

    def keys(self) -> list[str]:
        return [name for name, _ in self.items()]

    def values(self) -> list[str | None]:
        return [value for _, value in self.items()]

    def __contains__(self, name: object) -> bool:
        return not isinstance(self._sent(name), NotSent)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.items())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Values):
            return NotImplemented
        return self._table.columns == other._table.columns and (self._row == other._row)

    __hash__ = None  # type: ignore[assignment]  # as a dict: it is compared by content

    def __repr__(self) -> str:
        """Name the columns only: a repr ends up in logs, where no value belongs."""
        return f"<{self._table.full_name}: {', '.join(self.keys())}>"


@lru_cache(maxsize=1024)
def _places(table: Table) -> Mapping[object, int]:
    """Return where the columns stand; a Table is equal to itself alone."""
    return {name: place for place, name in enumerate(table.columns)}


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    column: str
    kind: object
    nullable: bool
    required: bool
    convert: Converter


@lru_cache(maxsize=1024)
def _converter(kind: object) -> Converter:
    return converter(kind)


@lru_cache(maxsize=1024)
def _fields(record: type) -> tuple[_Field, ...]:
    if not dataclasses.is_dataclass(record):
        raise TypeError(f"{shown(record)} is not a dataclass")
    hints = get_type_hints(record)
    return tuple(
        _described(field, hints[field.name])
        for field in dataclasses.fields(record)
        if field.init
    )


def _described(field: dataclasses.Field[Any], hint: object) -> _Field:
    kind, nullable = optional(hint)
    return _Field(
        name=field.name,
        column=field.metadata.get("column", field.name),
        kind=kind,
        nullable=nullable,
        required=field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING,
        convert=converter(kind),
    )

"""The columns of one table: what writes a row, and its schema.

What is the same for all rows is made once. A value that has no form is counted here by
column and reason; whoever owns the encoder names each once.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from walstream.errors import ConfigError, HistoryError, WalstreamError
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import ConnectType, integer
from walstream.formats.debezium.default_value import default_json
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.names import field_name
from walstream.formats.debezium.numeric import NO_NUMBER
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import facts_of, type_of
from walstream.formats.debezium.types import ConnectTypes
from walstream.lsn import show
from walstream.op import ReplicationOp, Table
from walstream.row import UNCHANGED, NotSent, Row

UNSENT: Final = "an unchanged TOAST value, of a type that has no placeholder"
_NULL: Final = "null"
_OTHER: Final = 0
_TEXT: Final = 1
_INTEGER: Final = 2
_FORMS: Final[Mapping[Callable[[str], str], int]] = {
    json_text: _TEXT,
    integer: _INTEGER,
}
"""Renderers that are called by name: compiled, by way of a list costs as much again."""

UNREADABLE: Final = (AttributeError, TypeError, ValueError)
"""Raised by renderers of a text of another type, or of what is not a text."""

Lost = Callable[[str], None]
Writers = Mapping[int, Callable[[str], object]]


class TableColumns:
    """The columns of a table that have a form, in its order."""

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        self.table = table
        self._all_optional = options.all_optional
        self.lost: Counter[tuple[str, str]] = Counter()
        """Values without a form, by column and reason."""
        types = self._types_of(options)
        self.types: dict[int, ConnectType] = {}
        self.fields: dict[int, tuple[str, Schema]] = {}
        self.key_fields: dict[int, tuple[str, Schema]] = {}
        """Fields as keys have them: those of the catalog, in any case."""
        left_out = []
        for index, name in enumerate(table.columns):
            facts = facts_of(table, index)
            keyed = facts.not_null or index in table.key
            required = self.is_required(index)
            found = types.of(type_of(table, index), self._lost(name, required=required))
            if found is None:
                left_out.append(name)
                continue
            # it may call `lost`, which counts values of rows alone
            quiet = types.of(type_of(table, index), _silent) or found
            shown = default_json(facts, quiet)
            self.types[index] = found
            field = self._field_name(name, options)
            self.key_fields[index] = (
                field,
                _schema(found.schema, shown, required=keyed),
            )
            self.fields[index] = (
                (field, found.schema.as_optional())
                if self._all_optional
                else self.key_fields[index]
            )
        self.left_out = tuple(left_out)
        self._check_names()
        self._renders = [found.render for found in self.types.values()]
        self._forms = bytes(_FORMS.get(render, _OTHER) for render in self._renders)
        self.width = len(table.columns)
        self._all = len(self.types) == self.width
        self.indexes = list(self.types)
        self._parts = _parts([name for name, _ in self.fields.values()])
        self.empty = [
            self._empty_of(index, schema) for index, (_, schema) in self.fields.items()
        ]
        """JSON of what stands for a null, by place."""
        self.texts = frozenset(i for i, found in self.types.items() if found.text)

    def _types_of(self, options: DebeziumOptions) -> ConnectTypes:
        return ConnectTypes(options)

    def _field_name(self, column: str, options: DebeziumOptions) -> str:
        return field_name(column, options.adjust_fields)

    def _check_names(self) -> None:
        names = [name for name, _ in self.fields.values()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(
                f"two columns of table {self.table.full_name!r} have the field "
                f"{', '.join(twice)}",
                hint="rename one with the handler rename_columns, or set adjust_fields",
            )

    def _lost(self, name: str, *, required: bool) -> Lost:
        def count(reason: str) -> None:
            if required and reason == NO_NUMBER:
                raise HistoryError(
                    f"column {name!r} of table {self.table.full_name!r} is NOT NULL, "
                    f"and a value of it is {reason}, which a decimal cannot be",
                    hint='set decimal = "string" in the sink\'s debezium table; then: '
                    "walstream run",
                )
            self.lost[name, reason] += 1

        return count

    def _empty_of(self, index: int, schema: Schema) -> str:
        """Return what stands for a null, or a value that an old row does not have.

        A column may be NOT NULL since the row was written, and a large value may be
        gone when it is read for a key change: readers refuse a null there.
        """
        if not self.is_required(index):
            return _NULL
        return schema.default or self.types[index].empty

    def is_required(self, index: int) -> bool:
        """Return whether a column's values are never null, in a row's record."""
        if self._all_optional:
            return False
        return facts_of(self.table, index).not_null or index in self.table.key

    def schema(self, name: str) -> Schema:
        """Return the schema of a row."""
        return Schema("struct", name=name, fields=tuple(self.fields.values()))

    def write(self, op: ReplicationOp, row: Row) -> str:
        """Write a row of this table as an object; `op` is named if that fails."""
        if op.absent:
            return self._write_absent(op, row)
        # a list is looked at without calls
        values: list[Any] = row if isinstance(row, list) else list(row)
        if len(values) != self.width:
            raise self.refused(op, row)
        if not self._all:
            values = [values[index] for index in self.indexes]
        parts = self._parts.copy()
        try:
            for place, value in enumerate(values):
                if value is None:
                    written = self.empty[place]
                elif (form := self._forms[place]) == _TEXT:
                    written = json_text(value)
                elif form == _INTEGER:
                    written = integer(value)
                else:
                    written = self._renders[place](value)
                parts[2 * place + 1] = written
        except UNREADABLE:
            raise self.refused(op, row) from None
        return "".join(parts)

    def _write_absent(self, op: ReplicationOp, row: Row) -> str:
        """Write a row that lacks some value."""
        parts = self._parts.copy()
        values = cast("Sequence[Any]", row)
        for place, index in enumerate(self.indexes):
            value = values[index]
            if value is UNCHANGED:
                written = self._unavailable(index, place)
            elif value is None or isinstance(value, NotSent):
                written = self.empty[place]
            else:
                try:
                    written = self._renders[place](value)
                except UNREADABLE:
                    raise self.refused(op, row) from None
            parts[2 * place + 1] = written
        return "".join(parts)

    def _unavailable(self, index: int, place: int) -> str:
        shown = self.types[index].unavailable
        if shown is not None:
            return shown
        self.lost[self.table.columns[index], UNSENT] += 1
        return self.empty[place]

    def refused(
        self, op: ReplicationOp, row: Row, writers: Writers | None = None
    ) -> WalstreamError:
        """Find the column whose text is not one of its type, without its value.

        `writers` are those of another encoding.
        """
        at = f"({show(op.lsn)}, {op.seq_id})"
        if len(row) != self.width:
            return WalstreamError(
                f"a row of table {self.table.full_name!r}, op {at}, has {len(row)} "
                f"values for {self.width} columns",
                hint="report this with the server's version",
            )
        values = cast("Sequence[Any]", row)  # a handler may have left others than texts
        for index, found in self.types.items():
            value = values[index]
            if value is None or isinstance(value, NotSent):
                continue
            write = writers[index] if writers is not None else found.render
            try:
                write(value)
            except UNREADABLE as error:
                what = error if isinstance(error, ValueError) else "no text"
                name = self.table.columns[index]
                return WalstreamError(
                    f"column {name!r} of table {self.table.full_name!r}, op {at}: the "
                    f"value does not fit the column's type: {_reason(what)}",
                    hint="if a handler changes the column, let it make a text of it; "
                    "otherwise report this with the column's type",
                )
        return WalstreamError(
            f"a row of table {self.table.full_name!r}, op {at}, cannot be written",
            hint="report this with the table's definition",
        )


def _reason(what: object) -> str:
    """Return the reason in words of these modules: others' quote the value."""
    text = str(what)
    return text if text.startswith(("not a", "more dec", "no text")) else "not readable"


def _silent(_: str) -> None:
    """Count nothing."""


def _schema(schema: Schema, default: str, *, required: bool) -> Schema:
    found = schema if required else schema.as_optional()
    return found.with_default(default) if default else found


def _parts(names: list[str]) -> list[str]:
    """Return the pieces of an object of these fields, with an empty one for a value."""
    parts = ["{"]
    for name in names:
        parts[-1] += f"{json_text(name)}:"
        parts += ["", ","]
    parts[-1] = "}" if names else "{}"
    return parts

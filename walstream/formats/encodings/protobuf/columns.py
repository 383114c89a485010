"""The columns of one table as protobuf: `TableColumns` in another encoding."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.columns import UNREADABLE, UNSENT, TableColumns
from walstream.formats.encodings.protobuf import primitive
from walstream.formats.encodings.protobuf.message import ProtoMessage
from walstream.formats.encodings.protobuf.plan import FieldPlan, Scope, type_plan
from walstream.formats.encodings.protobuf.writers import Write, int64, writer
from walstream.op import ReplicationOp
from walstream.row import UNCHANGED, NotSent, Row

_OTHER: Final = 0
_TEXT: Final = 1
_LONG: Final = 2
_FORMS: Final[dict[Write, int]] = {primitive.text: _TEXT, int64: _LONG}


class ProtoColumns:
    """Writes the rows of a table, in the order of their fields' numbers."""

    def __init__(
        self, columns: TableColumns, message: ProtoMessage, around: Scope
    ) -> None:
        """`message` is that of rows, with numbers; it may have more fields."""
        self.columns = columns
        scope = [*around, message]
        fields = message.live
        self.writers: dict[int, Write] = {}
        made: list[tuple[int, int, FieldPlan]] = []
        for place, (index, (name, schema)) in enumerate(columns.fields.items()):
            found, field = columns.types[index], fields[name]
            self.writers[index] = writer(found, field.type, scope)
            plan = type_plan(found.schema, field.type, scope)
            one = FieldPlan(name, field, plan, optional=schema.optional)
            made.append((index, place, one))
        made.sort(key=lambda one: one[2].number)
        self._indexes = [index for index, _, _ in made]
        self._plans = [plan for _, _, plan in made]
        self._tags = [plan.tag for plan in self._plans]
        self._defaults = [plan.default for plan in self._plans]
        self._nulls = [_null(plan, columns.empty[place]) for _, place, plan in made]
        self._writers = [self.writers[index] for index in self._indexes]
        self._forms = bytes(_FORMS.get(one, _OTHER) for one in self._writers)
        self._in_order = self._indexes == list(range(columns.width))

    def write(self, op: ReplicationOp, row: Row) -> bytes:
        """Write a row of this table as a message; `op` is named if that fails."""
        return b"".join(self.parts(op, row))

    def parts(self, op: ReplicationOp, row: Row) -> list[bytes]:
        """Return the fields of a row, by the order of their numbers."""
        if op.absent:
            return self._absent_parts(op, row)
        values = cast("Sequence[Any]", row)
        if len(values) != self.columns.width:
            raise self.refused(op, row)
        if not self._in_order:
            values = [values[index] for index in self._indexes]
        parts = self._nulls.copy()
        try:
            self._fill(parts, values)
        except UNREADABLE:
            raise self.refused(op, row) from None
        return parts

    def _fill(self, parts: list[bytes], values: "Sequence[Any]") -> None:
        for place, value in enumerate(values):
            written: bytes | None
            if value is None:
                continue
            if (form := self._forms[place]) == _TEXT:
                written = primitive.text(value)
            elif form == _LONG:
                written = int64(value)
            else:
                written = self._writers[place](value)
            if written is None:
                continue
            if written == self._defaults[place]:
                parts[place] = b""
            else:
                parts[place] = self._tags[place] + written

    def _absent_parts(self, op: ReplicationOp, row: Row) -> list[bytes]:
        """Write a row that lacks some value."""
        parts = self._nulls.copy()
        values = cast("Sequence[Any]", row)
        for place, index in enumerate(self._indexes):
            value = values[index]
            written: bytes | None = None
            if value is UNCHANGED:
                written = self._unavailable(index, place)
            elif isinstance(value, str):
                try:
                    written = self._writers[place](value)
                except ValueError:
                    raise self.refused(op, row) from None
            elif not (value is None or isinstance(value, NotSent)):
                raise self.refused(op, row)
            if written is not None:
                parts[place] = self._plans[place].of(written)
        return parts

    def refused(self, op: ReplicationOp, row: Row) -> WalstreamError:
        """Find the column whose text is not one of its type in protobuf."""
        return self.columns.refused(op, row, self.writers)

    def _unavailable(self, index: int, place: int) -> bytes | None:
        shown = self.columns.types[index].unavailable
        if shown is None:
            self.columns.lost[self.columns.table.columns[index], UNSENT] += 1
            return None
        return self._plans[place].plan.write(orjson.loads(shown))

    def numbers(self) -> Iterable[int]:
        """Return the numbers of the fields, in order."""
        return [plan.number for plan in self._plans]


def _null(plan: FieldPlan, empty: str) -> bytes:
    """Return what stands for a null: nothing, or the empty value of a column."""
    if empty == "null":
        return b""
    return plan.of(plan.plan.write(orjson.loads(empty)))

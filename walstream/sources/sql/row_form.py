"""Form of a table's records in one sink: an encoding, and the schemas' ids; or JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from walstream.config import KafkaSinkConfig
from walstream.config.debezium import NARROW
from walstream.formats import row as row_format
from walstream.formats.row import RowEncoder
from walstream.sources.debezium_options import registry_of

if TYPE_CHECKING:  # few sinks have an encoding, and whose task reads needs no database
    from walstream.formats.encodings.row.encoder import RegisteredRows
    from walstream.formats.encodings.row.schema import RowSpec
    from walstream.formats.encodings.subject import FramedPart, SchemaId, Strategy
    from walstream.sources.sql.database.shape import SqlTableShape

Records = tuple[list[bytes], list[bytes]]
"""Values and keys."""


class RowWriter(Protocol):
    """Writes the records of one query's rows, for one sink."""

    def write(
        self, rows: Sequence[Sequence[object]], keys: Sequence[int], at: float
    ) -> Records:
        """Return their values, and their keys; `at` is the Unix time."""


@dataclass(frozen=True, slots=True)
class RowForm:
    """An encoding whose schemas a registry has; picklable."""

    encoding: str
    subjects: "Strategy"
    spec: "RowSpec"
    topic: str
    table: str  # as its records name it
    ids: "Mapping[str, SchemaId]" = field(
        default_factory=dict, compare=False, repr=False
    )

    def rows(self) -> "RegisteredRows":
        """Return an encoder without ids.

        Raises ConfigError for names that the encoding does not take.
        """
        from walstream.formats.encodings.row.encoder import (  # noqa: PLC0415
            RegisteredRows,
        )

        return RegisteredRows(self.encoding, self.spec, self.table)

    def parts(self) -> "tuple[FramedPart, ...]":
        """Return the schemas that have to have an id."""
        return self.rows().parts(self.subjects, self.topic)

    def writer(self, told: RowEncoder) -> RowWriter:
        """Return what writes records; `told` gives their hashes."""
        from walstream.formats.encodings.subject import set_heads  # noqa: PLC0415

        rows = self.rows()
        set_heads(rows.parts(self.subjects, self.topic), self.ids)
        return _RegisteredWriter(rows, told)


class JsonRows:
    """Writes the format as it is."""

    def __init__(self, told: RowEncoder) -> None:
        self._told = told

    def write(
        self, rows: Sequence[Sequence[object]], keys: Sequence[int], at: float
    ) -> Records:
        """Return their values, and their keys."""
        return self._told.encode(rows, at), [row_format.key(key) for key in keys]


class _RegisteredWriter:
    def __init__(self, rows: "RegisteredRows", told: RowEncoder) -> None:
        self._rows = rows
        self._told = told

    def write(
        self, rows: Sequence[Sequence[object]], keys: Sequence[int], at: float
    ) -> Records:
        values = self._rows.encode(rows, self._told.hashes(rows), at)
        return values, [self._rows.key(key) for key in keys]


def row_form(
    sink: KafkaSinkConfig, source: str, table: str, topic: str, shape: "SqlTableShape"
) -> RowForm | None:
    """Return a table's form in a sink; None: it is JSON.

    `source` and `table` are as its records name them.
    """
    registry = registry_of(sink)
    if registry is None:
        return None
    from walstream.formats.encodings.row.schema import RowSpec  # noqa: PLC0415
    from walstream.sources.sql.database.column_type import row_columns  # noqa: PLC0415

    schema, _, name = table.rpartition(".")
    spec = RowSpec(
        source,
        (schema, name),
        row_columns(shape),
        shape.key_place,
        adjust="avro" if sink.encoding in NARROW else "none",
        all_optional=registry.optional == "all",
        finite=sink.encoding == "json_schema",
    )
    return RowForm(sink.encoding, registry.subjects, spec, topic, table)

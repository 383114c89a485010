"""The schema of a polled row: one for a table, with its columns as `data`.

    {"timestamp":1.5,"name":"app","table":"t","data":{"id":3},"hash":"a6c4…",
     "texts":null}

`texts` has, as JSON, the values that their types do not hold: by column.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from walstream.errors import ConfigError
from walstream.formats.debezium import connect
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.names import field_name, schema_name, topic
from walstream.formats.debezium.options import Adjustment
from walstream.formats.encodings.row.column import RowColumn, RowColumnType
from walstream.formats.encodings.row.document import COLUMNS, FIELDS
from walstream.formats.encodings.row.forms import ColumnForm, form_of

_SPACE_CODE: Final = "\\u0020"  # where parameters stand in one line
_TEXT: Final = Schema("string")
_VALUES: Final = Schema("map", optional=True, keys=_TEXT, values=_TEXT)
_INTEGERS: Final = frozenset({"int16", "int32", "int64"})
_LONG: Final = RowColumnType("int64")


@dataclass(frozen=True, slots=True)
class RowSpec:
    """A polled table, as its schemas say it; picklable."""

    source: str  # as its records name it
    place: tuple[str, str]  # schema and name, as its topic is made of them
    columns: tuple[RowColumn, ...]  # as selected
    key: int  # which of them it is
    adjust: Adjustment = "none"  # spelling of names
    all_optional: bool = False  # may every column be null, whatever the catalog says?
    finite: bool = False  # are NaN and the infinities no numbers?


@dataclass(frozen=True, slots=True)
class RowSchemas:
    """Schemas of a table's records, and the forms of its columns."""

    value: Schema
    key: Schema
    fields: tuple[str, ...]  # of the columns
    forms: tuple[ColumnForm, ...]
    required: tuple[bool, ...]


def row_schemas(spec: RowSpec) -> RowSchemas:
    """Make them; raise ConfigError for columns that an encoding spells alike."""
    forms = tuple(form_of(one.type, finite=spec.finite) for one in spec.columns)
    required = tuple(
        place == spec.key or (one.required and not spec.all_optional)
        for place, one in enumerate(spec.columns)
    )
    names = [one.name for one in spec.columns]
    fields = _fields(names, spec)
    prefix = topic(spec.source, *spec.place)
    row = connect.struct(
        schema_name(f"{prefix}.Row", spec.adjust),
        *(
            (field, form.schema if needed else form.schema.as_optional())
            for field, form, needed in zip(fields, forms, required, strict=True)
        ),
    )
    if fields != tuple(names):
        told = json.dumps(names, separators=(",", ":")).replace(" ", _SPACE_CODE)
        row = replace(row, parameters=((COLUMNS, told),))
    types = (Schema("double"), _TEXT, _TEXT, row, _TEXT, _VALUES)
    value = connect.struct(
        schema_name(f"{prefix}.Polled", spec.adjust),
        *zip(FIELDS, types, strict=True),
    )
    of_key = spec.columns[spec.key].type
    key = connect.struct(
        schema_name(f"{prefix}.Key", spec.adjust),
        (
            fields[spec.key],
            form_of(of_key if of_key.kind in _INTEGERS else _LONG).schema,
        ),
    )
    return RowSchemas(value, key, fields, forms, required)


def _fields(names: Sequence[str], spec: RowSpec) -> tuple[str, ...]:
    """Spell names as an encoding takes them: never two of a table alike."""
    spelled = [field_name(name, spec.adjust) for name in names]
    times = Counter(spelled)
    found = tuple(
        field
        if field == name or times[field] == 1
        else field_name(name, "avro_unicode")
        for name, field in zip(names, spelled, strict=True)
    )
    if len(set(found)) < len(found):
        twice = sorted(one for one in set(found) if found.count(one) > 1)
        raise ConfigError(
            f"two columns of table {spec.place[1]!r} have the field {', '.join(twice)}",
            hint="name the columns to read in fields, without one of them",
        )
    return found

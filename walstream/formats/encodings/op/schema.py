"""The schema of an op: one for a table, with its rows' columns as `old` and `new`.

    {"table_name":"t","schema":"public","lsn":28318112,"seq_id":0,"kind":"Insert",
     "old":null,"new":{"id":1},"snapshot":false,"absent":null,"texts":null,
     "partitions":null}

`absent` names what PostgreSQL did not send, which is null in its row; `texts` has the
values that their types do not hold, which have no meaning in the row.
"""

import json
from dataclasses import replace
from typing import Final

from walstream.formats.debezium import connect
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.names import schema_name, topic
from walstream.formats.debezium.options import Adjustment, DebeziumOptions
from walstream.formats.encodings.op.columns import OpColumns
from walstream.formats.encodings.op.document import COLUMNS

_SPACE_CODE: Final = "\\u0020"  # where parameters stand in one line
_SPACE: Final = "io.walstream.op"
_TEXT: Final = Schema("string")
_NAMES: Final = connect.array(_TEXT).as_optional()
_VALUES: Final = Schema("map", optional=True, keys=_TEXT, values=_TEXT)
_ABSENT: Final = connect.struct(f"{_SPACE}.Absent", ("old", _NAMES), ("new", _NAMES))
_TEXTS: Final = connect.struct(f"{_SPACE}.Texts", ("old", _VALUES), ("new", _VALUES))


def op_options(source: str, database: str, adjust: Adjustment) -> DebeziumOptions:
    """Return by what rows are written, and names of schemas and columns."""
    return DebeziumOptions(
        source,
        database,
        hstore="map",
        adjust=adjust,
        adjust_fields=adjust,
        all_optional=True,
    )


def op_schema(columns: OpColumns, options: DebeziumOptions) -> Schema:
    """Return the schema of a table's ops."""
    table = columns.table
    prefix = topic(options.name, table.schema, table.name)
    row = columns.schema(schema_name(f"{prefix}.Row", options.adjust)).as_optional()
    if tuple(name for name, _ in columns.fields.values()) != table.columns:
        told = json.dumps(table.columns, separators=(",", ":"))
        told = told.replace(" ", _SPACE_CODE)
        row = replace(row, parameters=((COLUMNS, told),))
    return connect.struct(
        schema_name(f"{prefix}.Op", options.adjust),
        ("table_name", _TEXT),
        ("schema", _TEXT),
        ("lsn", Schema("int64")),
        ("seq_id", Schema("int64")),
        ("kind", _TEXT),
        ("old", row),
        ("new", row),
        ("snapshot", Schema("boolean")),
        ("absent", _ABSENT.as_optional()),
        ("texts", _TEXTS.as_optional()),
        ("partitions", Schema("int32", optional=True)),
    )

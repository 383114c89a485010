"""Documents of ops, as any reader of an encoding has them."""

import json
from typing import Any

import pytest

from tests.support.loads.registered_op import OPTIONS, TABLE
from walstream.errors import WalstreamError
from walstream.formats.encodings.op.columns import OpColumns
from walstream.formats.encodings.op.document import OpDocument
from walstream.formats.encodings.op.schema import op_schema
from walstream.op import Kind
from walstream.row import OMITTED

SCHEMA: Any = json.loads(op_schema(OpColumns(TABLE, OPTIONS), OPTIONS).json())
ROW = {"id": 1, "v": "x", "n": "AJY="}
DOCUMENT: dict[str, Any] = {
    "table_name": "t",
    "schema": "public",
    "lsn": 10,
    "seq_id": 3,
    "kind": "Update",
    "old": ROW,
    "new": {"id": 1, "v": None, "n": None},
    "snapshot": False,
    "absent": {"old": None, "new": ["v"]},
    "texts": {"old": None, "new": {"n": "NaN"}},
    "partitions": None,
}


def test_an_op_is_read_with_its_key() -> None:
    document = OpDocument(SCHEMA)
    op = document.read(DOCUMENT, document.key_columns(["id", "other"]))
    assert (op.kind, op.lsn, op.seq_id, op.table.key) == (Kind.UPDATE, 10, 3, (0,))
    assert (op.old, op.new, op.absent) == (
        ["1", "x", "1.50"],
        ["1", OMITTED, "NaN"],
        True,
    )
    again = document.read(DOCUMENT, (0,))
    assert again.table is op.table


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"kind": "Upsert"},
            {"kind": None},
            {"lsn": -1},
            {"seq_id": -1},
            {"new": None},
        ),
        *({"kind": "Delete"}, {"kind": "Delete", "new": None, "old": None}),
        *({"new": {"id": 1}}, {"new": {**ROW, "n": "not base64"}}, {"absent": ["v"]}),
        {"table_name": ["t"]},
    ],
)
def test_anything_else_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(WalstreamError, match="not an op record"):
        OpDocument(SCHEMA).read({**DOCUMENT, **change})


def test_a_field_that_lacks_is_refused() -> None:
    for name in DOCUMENT:
        rest = {key: one for key, one in DOCUMENT.items() if key != name}
        with pytest.raises(WalstreamError, match="not an op record"):
            OpDocument(SCHEMA).read(rest)


def test_a_row_without_a_name_says_nothing_of_its_columns() -> None:
    assert OpDocument(SCHEMA).has_units
    fields = [{**one} for one in SCHEMA["fields"]]
    for place in (5, 6):
        fields[place].pop("name")
    assert not OpDocument({**SCHEMA, "fields": fields}).has_units


def test_another_schema_is_none_of_an_op() -> None:
    assert not OpDocument.is_of({"type": "string"})
    assert not OpDocument.is_of({"fields": SCHEMA["fields"][1:]})
    fields = [{**one} for one in SCHEMA["fields"]]
    fields[6] = {"field": "new", "type": "string"}
    with pytest.raises(WalstreamError, match="not an op record"):
        OpDocument({"fields": fields})
    fields[6] = {"field": "new", "fields": [], "parameters": {"walstream.columns": "1"}}
    with pytest.raises(WalstreamError, match="not an op record"):
        OpDocument({"fields": fields})

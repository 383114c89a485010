"""The schema of an op: its names, and the columns' where fields have others."""

import json

from tests.support.loads.registered_op import OPTIONS, TABLE
from walstream.formats.encodings.op.columns import OpColumns
from walstream.formats.encodings.op.document import COLUMNS, OpDocument
from walstream.formats.encodings.op.schema import op_options, op_schema
from walstream.op import Table


def test_it_is_named_by_source_and_table() -> None:
    schema = op_schema(OpColumns(TABLE, OPTIONS), OPTIONS)
    assert schema.name == "app.public.t.Op"
    fields = dict(schema.fields)
    assert fields["old"] == fields["new"]
    assert fields["new"].name == "app.public.t.Row"
    assert fields["new"].optional
    assert fields["new"].parameters == ()
    assert OpDocument.is_of(json.loads(schema.json()))


def test_it_tells_names_that_fields_do_not_have() -> None:
    table = Table("s-1", "t", ("a b",), (), (23,))
    schema = op_schema(OpColumns(table, OPTIONS), OPTIONS)
    assert schema.name == "app.s_1.t.Op"
    assert dict(schema.fields)["new"].parameters == ((COLUMNS, r'["a\u0020b"]'),)
    plain = op_options("app", "db", "none")
    schema = op_schema(OpColumns(table, plain), plain)
    assert schema.name == "app.s-1.t.Op"
    assert dict(schema.fields)["new"].parameters == ()

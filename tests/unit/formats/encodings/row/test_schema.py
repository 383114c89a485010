"""The schemas of polled rows."""

import json

import pytest

from tests.support.loads.polled_row import columns, spec
from walstream.errors import ConfigError
from walstream.formats.encodings.row.column import RowColumn, RowColumnType
from walstream.formats.encodings.row.document import FIELDS
from walstream.formats.encodings.row.schema import RowSpec, row_schemas

TEXT = RowColumnType("string")


def test_a_record_has_the_fields_of_json_and_what_stands_beside() -> None:
    found = row_schemas(spec(columns(v=TEXT)))
    assert tuple(name for name, _ in found.value.fields) == FIELDS
    assert found.value.name == "app.t.Polled"
    row = dict(found.value.fields)["data"]
    assert row.name == "app.t.Row"
    assert [(name, one.optional) for name, one in row.fields] == [
        ("id", False),
        ("v", True),
    ]
    assert found.key.name == "app.t.Key"
    assert [(name, one.type) for name, one in found.key.fields] == [("id", "int64")]


def test_the_key_and_what_the_catalog_says_is_never_null() -> None:
    told = (RowColumn("id", TEXT), RowColumn("n", TEXT, required=True))
    assert row_schemas(spec(told)).required == (True, True)
    assert row_schemas(spec(told, all_optional=True)).required == (True, False)


def test_a_key_that_is_no_integer_in_records_is_one_in_keys() -> None:
    told = (RowColumn("id", RowColumnType("decimal", 20, 0)),)
    ((_, key),) = row_schemas(spec(told)).key.fields
    assert key.type == "int64"


def test_names_are_spelled_as_an_encoding_takes_them() -> None:
    told = columns(**{"a b": TEXT, "a-b": TEXT, "ok": TEXT})
    avro = row_schemas(spec(told))
    assert avro.fields == ("id", "a_u0020b", "a_u002db", "ok")
    row = dict(avro.value.fields)["data"]
    assert json.loads(dict(row.parameters)["walstream.columns"])[1:3] == ["a b", "a-b"]
    plain = row_schemas(spec(told, "json_schema"))
    assert plain.fields == ("id", "a b", "a-b", "ok")
    assert dict(plain.value.fields)["data"].parameters == ()
    twice = columns(**{"a b": TEXT, "a-b": TEXT, "a_u0020b": TEXT})
    with pytest.raises(ConfigError, match="have the field a_u0020b"):
        row_schemas(spec(twice))


def test_a_schema_has_its_place_in_its_name() -> None:
    told = RowSpec("app", ("shop", "t-1"), columns(), 0, adjust="avro")
    assert row_schemas(told).value.name == "app.shop.t_1.Polled"

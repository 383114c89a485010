"""Documents of polled rows, read back."""

from typing import Any

import orjson
import pytest

from tests.support.loads.polled_row import columns, spec
from walstream.errors import WalstreamError
from walstream.formats.encodings.row.column import RowColumnType
from walstream.formats.encodings.row.document import RowDocument
from walstream.formats.encodings.row.schema import row_schemas

NAMES = {"a b": RowColumnType("date"), "t": RowColumnType("time")}


def schema() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(
        row_schemas(spec(columns(**NAMES))).value.json()
    )
    return found


def document(**told: Any) -> dict[str, Any]:
    data = {"id": 1, "a_b": 0, "t": -1}
    row = {"timestamp": 1.5, "name": "n", "table": "t", "hash": "h", "texts": None}
    return {**row, "data": data, **told}


def test_values_and_names_are_those_of_the_format() -> None:
    row = RowDocument(schema()).read(document())
    assert row.data == {"id": 1, "a b": "1970-01-01", "t": "-00:00:00.000001"}
    assert (row.timestamp, row.name, row.table, row.hash) == (1.5, "n", "t", "h")


def test_what_stands_beside_the_row_is_the_value() -> None:
    row = RowDocument(schema()).read(document(texts={"a b": '"0000-00-00"'}))
    assert row.data["a b"] == "0000-00-00"


def test_its_schema_is_known_by_its_fields() -> None:
    assert RowDocument.is_of(schema())
    assert not RowDocument.is_of({"type": "struct", "fields": [{"field": "data"}]})
    assert not RowDocument.is_of({"type": "string"})


@pytest.mark.parametrize(
    "told",
    [
        {"data": {}},
        {"data": None},
        {"texts": {"other": "1"}},
        {"texts": {"t": "{"}},
        {"data": {"id": 1, "a_b": 1 << 40, "t": 0}},
        {"data": {"id": 1, "a_b": "x", "t": 0}},
    ],
)
def test_what_is_not_of_the_schema_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(WalstreamError, match="not a row record"):
        RowDocument(schema()).read(document(**told))


@pytest.mark.parametrize("told", [{}, {"fields": []}, {"fields": [{"field": "data"}]}])
def test_a_schema_of_another_shape_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(WalstreamError, match="not a row record"):
        RowDocument(told)

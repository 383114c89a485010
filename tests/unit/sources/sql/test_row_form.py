"""Forms of a table's records: JSON, or an encoding with the ids that it was given."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.sqlite_source import configured, execute, file_of, source_of
from walstream.config import KafkaSinkConfig
from walstream.errors import ConfigError
from walstream.formats.encodings.subject import SchemaId
from walstream.formats.row import RowEncoder, decode
from walstream.sources.sql.database.shape import SqlTableShape
from walstream.sources.sql.inspector import visit
from walstream.sources.sql.row_form import JsonRows, RowForm, row_form

REGISTRY = {"url": "http://localhost:8081"}
ROWS = [(1, "a"), (2, None)]


def shape_of(folder: Path) -> SqlTableShape:
    execute(file_of(folder), "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL)")
    found = visit(source_of(configured(folder, {"t": {}}))).tables["t"].shape
    assert found is not None
    return found


def form(folder: Path, **told: Any) -> RowForm | None:
    config = configured(folder, {"t": {}}, **told)
    sink = config.sinks["rows"]
    assert isinstance(sink, KafkaSinkConfig)
    return row_form(sink, "app", "s.t", "topic", shape_of(folder))


def test_json_has_no_schema(tmp_path: Path) -> None:
    assert form(tmp_path) is None
    told = RowEncoder("app", "t", ["id", "v"])
    values, keys = JsonRows(told).write(ROWS, [1, 2], 1.5)
    assert [decode(one).data["id"] for one in values] == [1, 2]
    assert keys == [b'["1"]', b'["2"]']


def test_an_encoding_writes_behind_the_ids_that_it_is_given(tmp_path: Path) -> None:
    found = form(tmp_path, encoding="avro", registry=REGISTRY)
    assert found is not None
    assert [one.required for one in found.spec.columns] == [True, True]
    key, value = found.parts()
    assert (key.schema.subject, value.schema.subject) == ("topic-key", "topic-value")
    assert "app.s.t" in value.schema.text
    ids = {key.schema.digest: SchemaId(5), value.schema.digest: SchemaId(6)}
    sent = replace(found, ids=ids)
    writer = sent.writer(RowEncoder("app", "s.t", ["id", "v"]))
    values, keys = writer.write(ROWS, [1, 2], 1.5)
    assert [one[:5] for one in values] == [b"\0\0\0\0\6"] * 2
    assert keys == [b"\0\0\0\0\5\2", b"\0\0\0\0\5\4"]


def test_a_task_without_ids_writes_nothing(tmp_path: Path) -> None:
    found = form(tmp_path, encoding="avro", registry=REGISTRY)
    assert found is not None
    with pytest.raises(ConfigError, match="was not asked for"):
        found.writer(RowEncoder("app", "s.t", ["id", "v"]))


def test_options_of_the_registry_are_the_schemas(tmp_path: Path) -> None:
    told = {**REGISTRY, "optional": "all", "subjects": "record"}
    found = form(tmp_path, encoding="protobuf", registry=told)
    assert found is not None
    key, value = found.parts()
    assert (key.schema.subject, value.schema.subject) == (
        "app.s.t.Key",
        "app.s.t.Polled",
    )
    assert "optional string v" in value.schema.text
    assert found.spec.adjust == "avro"
    file_of(tmp_path).unlink()
    other = form(tmp_path, encoding="json_schema", registry=REGISTRY)
    assert other is not None
    assert (other.spec.adjust, other.spec.finite) == ("none", True)

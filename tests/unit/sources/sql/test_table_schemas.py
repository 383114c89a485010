"""Schemas of a table, in the sinks that have any."""

from pathlib import Path

from tests.support.programs.sqlite_source import configured, execute, file_of, source_of
from walstream.config import KafkaSinkConfig
from walstream.sources.sql.inspector import visit
from walstream.sources.sql.table_schemas import TableSchemas


def test_a_sink_in_json_has_none_and_a_shape_is_made_once(tmp_path: Path) -> None:
    execute(file_of(tmp_path), "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    registry = {"url": "http://localhost:8081"}
    config = configured(tmp_path, {"t": {}}, encoding="avro", registry=registry)
    avro = config.sinks["rows"]
    plain = configured(tmp_path, {"t": {}}).sinks["rows"]
    assert isinstance(avro, KafkaSinkConfig)
    assert isinstance(plain, KafkaSinkConfig)
    topics = {"one": "a", "other": "b"}
    schemas = TableSchemas({"one": avro, "other": plain}, "app", "t", topics)
    shape = visit(source_of(config)).tables["t"].shape
    assert shape is not None
    found = schemas.parts(shape)
    assert [*found] == ["one"]
    assert [one.schema.subject for one in found["one"]] == ["a-key", "a-value"]
    assert schemas.parts(shape) is found
    assert schemas.renew_s == 60
    none = TableSchemas({"other": plain}, "app", "t", topics)
    assert none.renew_s is None
    assert none.parts(shape) == {}

"""Records that are made of their JSON."""

import pytest

from tests.support.oracles.debezium_avro import read
from walstream.formats.debezium import DebeziumOptions, HeartbeatRecords
from walstream.formats.encodings.avro.document import AvroDocument


def test_a_record_stands_behind_its_id() -> None:
    records = HeartbeatRecords(DebeziumOptions("app", adjust="avro"))
    document = AvroDocument(records.schemas[1])
    bare = document.write(records.value(5))
    document.head = b"12345"
    assert document.write(records.value(5)) == b"12345" + bare
    assert read(document.schema_text, bare) == {"ts_ms": 5}
    with pytest.raises(ValueError, match="not"):
        document.write(b'{"ts_ms": null}')

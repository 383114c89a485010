"""Records that are made of their JSON."""

import pytest

from tests.support.oracles.protobuf_values import read
from walstream.errors import WalstreamError
from walstream.formats.debezium import DebeziumOptions, HeartbeatRecords
from walstream.formats.encodings.protobuf.document import ProtoDocument
from walstream.formats.encodings.protobuf.numbering import number_text


def test_a_record_stands_behind_its_id() -> None:
    records = HeartbeatRecords(DebeziumOptions("app", adjust="avro"))
    document = ProtoDocument(records.schemas[1])
    with pytest.raises(WalstreamError, match="without numbers"):
        document.write(records.value(5))
    text = number_text(document.schema_text, [], keep=False)
    document.use(text)
    bare = document.write(records.value(5))
    document.head = b"123456"
    assert document.write(records.value(5)) == b"123456" + bare
    assert read(document.schema, text, bare) == {"ts_ms": 5}
    with pytest.raises(ValueError, match="not"):
        document.write(b'{"ts_ms": null}')

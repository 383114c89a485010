"""Subjects, and ids in front of records."""

import pytest

from walstream.errors import ConfigError
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.avro import AvroEnvelope
from walstream.formats.encodings.subject import (
    SchemaId,
    Strategy,
    SubjectSchema,
    framed_parts,
    set_heads,
    subject_of,
)
from walstream.formats.encodings.wire import head
from walstream.op import Table

OPTIONS = DebeziumOptions("app", adjust="avro")
TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))


@pytest.mark.parametrize(
    ("strategy", "key", "value"),
    [
        ("topic", "t-key", "t-value"),
        ("record", "app.t.Key", "app.t.Envelope"),
        ("topic_record", "t-app.t.Key", "t-app.t.Envelope"),
    ],
)
def test_subjects_are_confluents(strategy: Strategy, key: str, value: str) -> None:
    assert subject_of(strategy, "t", "app.t.Key", is_key=True) == key
    assert subject_of(strategy, "t", "app.t.Envelope", is_key=False) == value


def test_a_digest_is_of_subject_and_schema() -> None:
    one = SubjectSchema("a", "b")
    assert one.digest == SubjectSchema("a", "b").digest
    others = [SubjectSchema("b", "b"), SubjectSchema("a", "c")]
    others.append(SubjectSchema("a", "b", "JSON"))
    assert one.digest not in {other.digest for other in others}


def test_an_id_is_set_in_front_of_records() -> None:
    writer = AvroEnvelope(TABLE, OPTIONS, SinkTurn())
    parts = framed_parts("topic", "JSON", "t", [(False, writer)])
    assert [(one.schema.subject, one.schema.kind) for one in parts] == [
        ("t-value", "JSON")
    ]
    with pytest.raises(ConfigError, match="t-value"):
        set_heads(parts, {})
    set_heads(parts, {parts[0].schema.digest: SchemaId(258)})
    assert writer.head == head(258) == b"\0\0\0\1\2"

"""The list of encodings, and what each of them has."""

from typing import get_args

import pytest

from walstream.config.debezium import Encoding
from walstream.errors import ConfigError
from walstream.formats.context import Context
from walstream.formats.debezium import DebeziumOptions, HeartbeatRecords, SinkTurn
from walstream.formats.encodings import JSON, FramedEncoder, encoder_in, parts_of
from walstream.formats.encodings.languages import (
    LANGUAGES,
    Language,
    language_of,
    language_of_kind,
)
from walstream.formats.encodings.readers import reader_of
from walstream.formats.encodings.subject import FramedPart, SchemaId, SubjectSchema
from walstream.formats.encodings.wire import head
from walstream.op import Kind, ReplicationOp, Table


def registered(language: Language, text: str) -> str:
    """Return the text that a registry would have."""
    return text if language.number is None else language.number(text, [], keep=False)


TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))


@pytest.mark.parametrize("encoding", [*LANGUAGES])
@pytest.mark.parametrize("name", ["debezium", "debezium_row"])
def test_each_has_writers_fields_and_a_reader(encoding: str, name: str) -> None:
    language = language_of(encoding)
    context = Context(encoding=encoding)
    encoder = encoder_in(encoding, name)(TABLE, context)
    assert isinstance(encoder, FramedEncoder)
    for part in parts_of(encoder, "t", (0,), context):
        assert part.schema.kind == language.kind
        assert {"id"} <= language.fields(part.schema.text).keys()
        text = registered(language, part.schema.text)
        assert reader_of(language.kind, text).schema["type"] == "struct"


@pytest.mark.parametrize("encoding", [*LANGUAGES])
def test_each_writes_documents_that_its_reader_reads(encoding: str) -> None:
    language, beats = language_of(encoding), HeartbeatRecords(DebeziumOptions("app"))
    document = language.document(beats.schemas[1])
    text = registered(language, document.schema_text)
    schema = SubjectSchema("s", document.schema_text, language.kind)
    FramedPart(schema, document).set(SchemaId(7, text))
    written = document.write(beats.value(5))
    assert written.startswith(head(7))
    assert reader_of(language.kind, text).read(written) == {"ts_ms": 5}


def test_all_that_can_be_configured_are_there() -> None:
    assert {*get_args(Encoding)} - {JSON} == {*LANGUAGES}
    kinds = [one.kind for one in LANGUAGES.values()]
    assert [language_of_kind(one) for one in kinds] == [*LANGUAGES.values()]
    assert language_of_kind("XML") is None
    with pytest.raises(ConfigError, match="xml"):
        language_of("xml")


@pytest.mark.parametrize("encoding", [*LANGUAGES])
def test_an_envelopes_end_tells_when_it_was_made_and_nothing_else_does(
    encoding: str,
) -> None:
    """By what stands before it, a record that Kafka has is known again."""
    turn = SinkTurn()
    context = Context(encoding=encoding, turn=turn)
    encoder = encoder_in(encoding, "debezium")(TABLE, context)
    row = ["1", "v"]
    op = ReplicationOp(Kind.INSERT, TABLE, 7, 0, new=row, row_lsn=7, xid=1)
    written = []
    for nanoseconds in (1_764_000_000_123_456_789, 1_999_999_999_999_999_999):
        turn.begin(nanoseconds)
        written.append(encoder.encode(op))
    one, other = written
    ending = language_of(encoding).ending
    assert one[:-ending] == other[:-ending]
    assert one[-ending:] != other[-ending:]

"""Trees of messages, and the texts that they are."""

import pytest

from tests.support.oracles.protobuf_values import message_class
from walstream.formats.encodings.protobuf.message import (
    ProtoField,
    ProtoFile,
    ProtoMessage,
    json_name,
)
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto


def test_a_text_is_read_as_what_it_was_written_of() -> None:
    inner = ProtoMessage("In", (ProtoField("x", "bool", "repeated", 1),), says="b.In")
    fields = (
        ProtoField("a", "int32", "", 2, "io.debezium.time.Date"),
        ProtoField("b", "In", "optional", 9, gone=True),
    )
    whole = ProtoMessage("Out", fields, (inner,), ((1, 1), (3, 8)), ("c", "d"))
    file = ProtoFile("a.b", (whole,))
    assert parsed_proto(file.text()) == file
    assert file.name == "a.b.Out"
    assert ProtoFile("", (whole,)).name == "Out"
    assert [*whole.live] == ["a"]
    assert whole.message("In") is inner
    assert whole.message("c") is None
    assert ProtoField("a", "int32", "optional").form == ("int32", "")
    assert message_class(file.text()).DESCRIPTOR.full_name == "a.b.Out"


@pytest.mark.parametrize("name", ["a", "a_b", "a_1", "__deleted", "aB", "A_b", "a__b"])
def test_names_in_json_are_those_that_protobuf_makes(name: str) -> None:
    file = ProtoFile("", (ProtoMessage("M", (ProtoField(name, "int32", "", 1),)),))
    (field,) = message_class(file.text()).DESCRIPTOR.fields
    assert field.json_name == json_name(name)

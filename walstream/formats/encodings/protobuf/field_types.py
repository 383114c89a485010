"""Types of a row's columns, of the text of a schema of protobuf: for people."""

from typing import Final

from walstream.formats.encodings.protobuf.message import ProtoMessage
from walstream.formats.encodings.protobuf.schema_reader import BadProto, parsed_proto

_ROWS: Final = ("after", "before", "new", "old", "data")


def proto_fields(text: str) -> dict[str, tuple[str, bool]]:
    """Return the types of a row's columns, also of a text without numbers.

    None needs a default. Raises ValueError for another text.
    """
    message = _parsed(text)
    return {
        name: (f"{field.label} {field.type}".strip(), True)
        for name, field in _row(message).live.items()
    }


def _parsed(text: str) -> ProtoMessage:
    try:
        return parsed_proto(text).first
    except BadProto:
        pass
    try:
        return parsed_proto(text, bare=True).first
    except BadProto as error:
        raise ValueError(str(error.args[0])) from None


def _row(message: ProtoMessage) -> ProtoMessage:
    """Return the message of rows, which an envelope has twice."""
    for name in _ROWS:
        field = message.live.get(name)
        found = None if field is None else message.message(field.type)
        if found is not None:
            return found
    return message

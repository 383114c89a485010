"""Change -> one JSON object a line, for jq, as Line has it."""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

import orjson
from pydantic import ConfigDict, Field

from walstream.cli.tail.change import Change
from walstream.cli.tail.content import (
    Columns,
    Content,
    ContentKind,
    Format,
    Json,
    Value,
)
from walstream.cli.tail.escape import as_text, is_text
from walstream.lsn import show
from walstream.row import NotSent
from walstream.telemetry.terminal import escape_json

_TIME: Final = Field(json_schema_extra={"format": "date-time"})
_LSN: Final = Field(pattern="^[0-9A-F]{1,8}/[0-9A-F]{1,8}$")
_BASE64: Final = Field(json_schema_extra={"contentEncoding": "base64"})


@dataclass(frozen=True, slots=True)
class Line:
    """One change. What has a default is there only where it applies."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    topic: str
    partition: int
    offset: int
    timestamp: Annotated[str, _TIME] | None  # the record's
    key: str | None
    format: Format | None  # null: a tombstone has none
    kind: ContentKind | None  # null: its format does not tell, or is not known
    table: str | None  # schema.table, where the format tells the schema
    lsn: Annotated[str, _LSN] | None
    seq_id: int | None
    old: dict[str, object] | None  # columns that were not sent are left out
    new: dict[str, object] | None
    absent: dict[str, list[str]] = field(default_factory=dict)  # those, by old and new
    snapshot: bool = False
    more: dict[str, object] = field(default_factory=dict)  # what only this format has
    value: str = ""  # of no known format
    value_base64: Annotated[str, _BASE64] = ""  # likewise, and no text
    key_base64: Annotated[str, _BASE64] = ""  # where the key is no text


def line(change: Change) -> str:
    """Render without the newline; every character prints."""
    return escape_json(orjson.dumps(document(change)).decode())


def document(change: Change) -> dict[str, object]:
    """Return all of a change in JSON's own types, and `orjson.Fragment`s."""
    record, content = change.record, change.content
    made: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": change.time,
        "key": None if record.key is None else as_text(record.key),
        "format": content.format,
        "kind": content.kind,
        "table": content.full_table,
        "lsn": None if content.lsn is None else show(content.lsn),
        "seq_id": content.seq_id,
        "old": _columns(content.old),
        "new": _columns(content.new),
    }
    if absent := _absent(content):
        made["absent"] = absent
    if content.snapshot:
        made["snapshot"] = True
    if content.more:
        made["more"] = _columns(content.more)
    _add_raw(made, change)
    return made


def _columns(columns: Columns | None) -> dict[str, object] | None:
    if columns is None:
        return None
    return {
        name: _value(value)
        for name, value in columns.items()
        if not isinstance(value, NotSent)
    }


def _value(value: Value) -> object:
    return orjson.Fragment(value.text) if isinstance(value, Json) else value


def _absent(content: Content) -> dict[str, list[str]]:
    halves = {}
    for half, columns in (("old", content.old), ("new", content.new)):
        names = [
            name
            for name, value in (columns or {}).items()
            if isinstance(value, NotSent)
        ]
        if names:
            halves[half] = names
    return halves


def _add_raw(made: dict[str, object], change: Change) -> None:
    """Add a value of an unknown format, and bytes that are not text."""
    value, key = change.record.value, change.record.key
    if value is not None and change.content.format is Format.TEXT:
        made["value"] = as_text(value)
    if value is not None and change.content.format is Format.BYTES:
        made["value_base64"] = b64encode(value).decode()
    if key is not None and not is_text(key):
        made["key_base64"] = b64encode(key).decode()

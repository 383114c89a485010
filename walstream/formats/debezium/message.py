"""Logical messages (pg_logical_emit_message) as records of `NAME.message`."""

from walstream.formats.debezium.binary import FORMS
from walstream.formats.debezium.connect import Schema, struct, text
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.names import schema_name
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.debezium.source_block import (
    SOURCE,
    TIME,
    TRANSACTION,
    SourceBlock,
)
from walstream.lsn import Lsn

_NAME = "io.debezium.connector.postgresql.Message"


class MessageEncoder:
    """Encodes messages. They take no seq_id, so no record has them in a block."""

    def __init__(self, options: DebeziumOptions, turn: SinkTurn) -> None:
        self._turn = turn
        self._source = SourceBlock(options, "", "", "false")
        self._write = FORMS[options.binary]
        self.schemas = key, value = _schemas(options)
        self._key = ('{"prefix":', "}")
        self._open, self._close = "{", "}"
        if options.schemas:
            self._key = (f'{{"schema":{key.json()},"payload":{{"prefix":', "}}")
            self._open = f'{{"schema":{value.json()},"payload":{{'
            self._close = "}}"

    def key(self, prefix: str) -> bytes:
        """Write the key: the message's prefix."""
        before, behind = self._key
        return f"{before}{json_text(prefix)}{behind}".encode()

    def encode(
        self,
        prefix: str,
        content: bytes,
        place: tuple[Lsn, Lsn],
        transaction: tuple[int | None, int],
    ) -> bytes:
        """Write the value.

        `place`: LSN of the commit record, and of the message's own; `transaction`: its
        xid, None outside of one, and its commit time.
        """
        commit_lsn, lsn = place
        xid, time = transaction
        first, second = self._source.stream(time, commit_lsn, xid)
        millis = self._turn.nanoseconds // 1_000_000
        return (
            f'{self._open}"op":"m","ts_ms":{millis},"source":{first}{lsn}{second}{lsn}'
            f',"xmin":null,{self._turn.origin}}},"transaction":null,"message":'
            f'{{"prefix":{json_text(prefix)},"content":{self._write(content)}}}'
            f"{self._close}"
        ).encode()


def _schemas(options: DebeziumOptions) -> tuple[Schema, Schema]:
    """Return those of key and value."""
    prefix = ("prefix", text().as_optional())
    kind = Schema("bytes") if options.binary == "bytes" else text()
    message = struct(
        schema_name(_NAME, options.adjust), prefix, ("content", kind.as_optional())
    )
    value = struct(
        schema_name(f"{_NAME}Value", options.adjust),
        ("op", text()),
        ("ts_ms", TIME.as_optional()),
        ("source", SOURCE),
        ("transaction", TRANSACTION),
        ("message", message),
    )
    return struct(schema_name(f"{_NAME}Key", options.adjust), prefix), value

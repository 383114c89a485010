"""Rare records are the JSON that they are made in, behind their schema's id."""

import json

import jsonschema

from walstream.formats.debezium import (
    DebeziumOptions,
    HeartbeatRecords,
    MessageEncoder,
    SinkTurn,
    TransactionRecords,
)
from walstream.formats.encodings.json_schema.document import JsonSchemaDocument
from walstream.formats.encodings.wire import HEAD, head
from walstream.formats.txinfo import RowCounts

OPTIONS = DebeziumOptions("app")


def test_each_fits_its_schema() -> None:
    transactions, beats = TransactionRecords(OPTIONS), HeartbeatRecords(OPTIONS)
    messages, counts = MessageEncoder(OPTIONS, SinkTurn()), RowCounts()
    content = messages.encode("p", b"\xff", (10, 10), (3, 0))
    for schemas, parts in (
        (transactions.schemas, transactions.begin(3, 10, 0)),
        (transactions.schemas, transactions.end(3, (0, 10), 0, counts)),
        (messages.schemas, (messages.key("p"), content)),
        (beats.schemas, (beats.key, beats.value(5))),
    ):
        for schema, payload in zip(schemas, parts, strict=True):
            document = JsonSchemaDocument(schema)
            document.head = head(258)
            written = document.write(payload)
            assert written == head(258) + payload
            told = json.loads(document.schema_text)
            jsonschema.validate(json.loads(written[HEAD:]), told)

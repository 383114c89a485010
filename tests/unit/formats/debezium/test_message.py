"""Logical messages as records."""

import json

import pytest

from walstream.formats.debezium import DebeziumOptions, MessageEncoder, SinkTurn


@pytest.mark.parametrize("binary", ["bytes", "hex"])
def test_a_message_has_prefix_and_content(binary: str) -> None:
    options = DebeziumOptions("app", "db", binary=binary)  # type: ignore[arg-type]
    turn = SinkTurn()
    turn.begin(5_000_000)
    encoder = MessageEncoder(options, turn)
    assert encoder.key('p"x') == b'{"prefix":"p\\"x"}'
    value = json.loads(encoder.encode("pfx", b"\0\xff", (99, 77), (760, 0)))
    assert list(value) == ["op", "ts_ms", "source", "transaction", "message"]
    assert (value["op"], value["ts_ms"], value["transaction"]) == ("m", 5, None)
    content = {"bytes": "AP8=", "hex": "00ff"}[binary]
    assert value["message"] == {"prefix": "pfx", "content": content}
    source = value["source"]
    assert (source["schema"], source["table"]) == ("", "")
    assert (source["txId"], source["lsn"]) == (760, 77)
    assert json.loads(source["sequence"]) == ["99", "77"]


def test_one_outside_of_a_transaction_has_no_xid() -> None:
    encoder = MessageEncoder(DebeziumOptions("app"), SinkTurn())
    value = json.loads(encoder.encode("p", b"", (99, 99), (None, 0)))
    assert value["source"]["txId"] is None

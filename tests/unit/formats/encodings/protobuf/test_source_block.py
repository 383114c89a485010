"""The block `source`, read back by its schema."""

from typing import Any

import pytest

from tests.support.oracles.protobuf_values import read
from walstream.formats.debezium import DebeziumOptions
from walstream.formats.debezium.source_block import SOURCE, unix_micros
from walstream.formats.encodings.protobuf import number, parsed_proto, proto_shape
from walstream.formats.encodings.protobuf.source_block import ProtoSource

_OPTIONS = DebeziumOptions("app", "shop", version="v")
_OTHER = "message Source { int64 lsn = 1; string table = 2; string sequence = 3; }"


def _block(
    snapshot: str, history: str, names: tuple[str, str] = ("public", "stock")
) -> tuple[ProtoSource, Any]:
    versions = [parsed_proto(history)] if history else []
    file = number(proto_shape(SOURCE), versions)
    block = ProtoSource(_OPTIONS, names, snapshot, file.first)
    return block, lambda data: read(SOURCE, file.text(), data)


@pytest.mark.parametrize("history", ["", _OTHER])
def test_a_row_of_the_stream_has_its_sequence_and_its_lsn(history: str) -> None:
    block, found = _block("false", history)
    block.start((-5, 9), 771, ("o", 3))
    micros = unix_micros(-5)
    assert found(block.row(8)) == {
        "version": "v", "connector": "postgresql", "name": "app",
        "ts_ms": micros // 1000, "snapshot": "false", "db": "shop",
        "sequence": '["9","8"]', "ts_us": micros, "ts_ns": micros * 1000,
        "schema": "public", "table": "stock", "txId": 771, "lsn": 8, "xmin": None,
        "origin": "o", "origin_lsn": 3,
    }  # fmt: skip


def test_outside_of_a_transaction_there_is_no_number_of_one() -> None:
    block, found = _block("false", "", ("", ""))
    block.start((0, 9), None, ("", 0))
    said = found(block.row(8))
    assert (said["txId"], said["schema"], said["origin"]) == (None, "", None)


@pytest.mark.parametrize("history", ["", _OTHER])
def test_a_row_that_was_read_has_an_lsn_if_it_is_of_a_backfill(history: str) -> None:
    for whole, lsn in ((True, 9), (False, None)):
        block, found = _block("true", history)
        said = found(block.snapshot(0, 9, whole=whole))
        assert (said["snapshot"], said["lsn"], said["txId"]) == ("true", lsn, None)
        assert said["sequence"] == '[null,"9"]'
        assert (said["origin"], said["origin_lsn"]) == (None, None)

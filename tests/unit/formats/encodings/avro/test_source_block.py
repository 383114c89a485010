"""The block `source`, read back by its schema."""

from tests.support.oracles.debezium_avro import read
from walstream.formats.debezium import DebeziumOptions
from walstream.formats.debezium.source_block import SOURCE, unix_micros
from walstream.formats.encodings.avro import avro_schema
from walstream.formats.encodings.avro.primitive import NULL, VALUE, long, text
from walstream.formats.encodings.avro.source_block import AvroSource, origin

_OPTIONS = DebeziumOptions("app", "shop", version="v")


def test_a_row_of_the_stream_has_its_sequence_and_its_lsn_between_the_heads() -> None:
    block = AvroSource(_OPTIONS, "public", "stock", "false")
    first, second = block.stream(-5, 771)
    whole = first + text('["9","8"]') + second + long(8) + NULL + origin("o", 3)
    found = read(avro_schema(SOURCE), whole)
    micros = unix_micros(-5)
    assert found == {
        "version": "v", "connector": "postgresql", "name": "app",
        "ts_ms": micros // 1000, "snapshot": "false", "db": "shop",
        "sequence": '["9","8"]', "ts_us": micros, "ts_ns": micros * 1000,
        "schema": "public", "table": "stock", "txId": 771, "lsn": 8, "xmin": None,
        "origin": "o", "origin_lsn": 3,
    }  # fmt: skip


def test_outside_of_a_transaction_there_is_no_number_of_one() -> None:
    _, second = AvroSource(_OPTIONS, "", "", "false").stream(0, None)
    assert second.endswith(NULL + VALUE)


def test_a_row_that_was_read_has_an_lsn_if_it_is_of_a_backfill() -> None:
    for whole, lsn in ((True, 9), (False, None)):
        block = AvroSource(_OPTIONS, "public", "stock", "true")
        found = read(avro_schema(SOURCE), block.snapshot(0, 9, whole=whole))
        assert (found["snapshot"], found["lsn"], found["txId"]) == ("true", lsn, None)
        assert found["sequence"] == '[null,"9"]'
        assert (found["origin"], found["origin_lsn"]) == (None, None)

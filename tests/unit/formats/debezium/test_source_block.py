"""The field source, and its schema."""

import json

from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.source_block import SOURCE, SourceBlock, unix_micros

_BLOCK = SourceBlock(DebeziumOptions("app", 'd"b'), "s", "t", "incremental")
_TIME = 848_719_565_034_484  # 2026-11-22


def test_times_count_from_1970() -> None:
    assert unix_micros(0) == 946_684_800_000_000


def test_the_blocks_fields_are_those_of_its_schema() -> None:
    first, second = _BLOCK.stream(_TIME, 99, 760)
    block = json.loads(
        f'{first}77{second}77,"xmin":null,"origin":null,"origin_lsn":null}}'
    )
    assert list(block) == [name for name, _ in SOURCE.fields]
    assert json.loads(block["sequence"]) == ["99", "77"]
    assert (block["db"], block["schema"], block["txId"]) == ('d"b', "s", 760)
    assert block["ts_ns"] == unix_micros(_TIME) * 1000
    assert block["ts_ms"] == unix_micros(_TIME) // 1000


def test_a_row_that_was_read_has_no_transaction() -> None:
    for whole in (True, False):
        head = _BLOCK.snapshot(_TIME, 99, whole=whole)
        block = json.loads(f'{head}"origin":null,"origin_lsn":null}}')
        assert list(block) == [name for name, _ in SOURCE.fields]
        assert json.loads(block["sequence"]) == [None, "99"]
        assert block["txId"] is None
        assert block["lsn"] == (99 if whole else None)
        assert block["snapshot"] == "incremental"

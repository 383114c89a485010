"""Records of the transaction topic, and heartbeats."""

import json

from walstream.formats.debezium import DebeziumOptions, HeartbeatRecords
from walstream.formats.debezium.transaction import TransactionRecords
from walstream.formats.txinfo import RowCounts
from walstream.op import Table

_TIME = 848_719_565_034_484


def test_begin_and_end_name_the_transaction_and_count_its_tables() -> None:
    records = TransactionRecords(DebeziumOptions("app"))
    key, value = records.begin(760, 77, _TIME)
    assert key == b'{"id":"760:77"}'
    assert value == (
        b'{"status":"BEGIN","id":"760:77","event_count":null,"data_collections":null,'
        b'"ts_ms":1795404365034}'
    )
    counts = RowCounts()
    counts.add(Table("s", "t", ()), 2)
    counts.add(Table("s", '"q"', ()))
    key, value = records.end(760, (90, 99), _TIME, counts)
    assert key == b'{"id":"760:99"}'
    end = json.loads(value)
    assert end["event_count"] == 3
    assert end["data_collections"] == [
        {"data_collection": "s.t", "event_count": 2},
        {"data_collection": 's."q"', "event_count": 1},
    ]


def test_an_empty_transaction_has_an_empty_list() -> None:
    _, value = TransactionRecords(DebeziumOptions("app")).end(
        7, (8, 9), _TIME, RowCounts()
    )
    assert b'"event_count":0,"data_collections":[]' in value


def test_a_heartbeat_is_a_time_under_the_name() -> None:
    records = HeartbeatRecords(DebeziumOptions("app"))
    assert records.key == b'{"serverName":"app"}'
    assert records.value(5) == b'{"ts_ms":5}'


def test_names_of_schemas_are_adjusted() -> None:
    options = DebeziumOptions("app", schemas=True, adjust="avro_unicode")
    _, value = TransactionRecords(options).begin(760, 77, _TIME)
    name = json.loads(value)["schema"]["name"]
    assert name == "io.debezium.connector.common.TransactionMetadataValue"

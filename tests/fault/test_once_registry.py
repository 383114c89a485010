"""Killed in any way, a sink of a registry's sends none twice, and leaves none out."""

import os
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fault.test_kill_cycles import kill_worker
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    missing,
)
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Record
from tests.support.servers.apicurio import LocalRegistry

pytestmark = pytest.mark.same_on_15

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_ADDED = ["op", "ts_ms", "lsn", "ts_ns"]  # when it was made stands amid them
SINKS: dict[str, dict[str, Any]] = {
    "debezium": {"format": "debezium"},
    "debezium_row": {"format": "debezium_row"},
    "added": {"format": "debezium_row", "debezium": {"add_fields": _ADDED}},
    "transactional": {"format": "debezium", "delivery": "transactional"},
    "op": {"format": "op"},
    "op_json_schema": {"format": "op", "encoding": "json_schema"},
    "op_protobuf": {"format": "op", "encoding": "protobuf"},
    "op_transactional": {"format": "op", "delivery": "transactional"},
    "json_schema": {"format": "debezium", "encoding": "json_schema"},
    "json_schema_row": {"format": "debezium_row", "encoding": "json_schema"},
    "protobuf": {"format": "debezium", "encoding": "protobuf"},
    "protobuf_row": {"format": "debezium_row", "encoding": "protobuf"},
}


@dataclass(frozen=True)
class Placed:
    """A record by the name in its header."""

    topic: str
    partition: int
    name: tuple[int, int]


@pytest.fixture(params=list(SINKS))
def stream(
    request: pytest.FixtureRequest,
    postgres: PostgresServer,
    kafka: KafkaServer,
    registry: LocalRegistry,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    sink = {
        "topic_partitions": 4,
        "encoding": "avro",
        "registry": {"url": registry.url},
        "tombstones": False,  # of the Delete's own name
        **SINKS[request.param],
    }
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("once"),
        before=TABLE,
        sink=sink,
        decode=lambda value: value,
    ) as made:
        yield made


def test_kills_and_a_lost_state_repeat_nothing(
    stream: Stream, registry: LocalRegistry
) -> None:
    walstream = stream.walstream
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    oracle = OracleSlot(stream.database)
    with Load(stream.database.dsn, _SEED) as load:
        for cycle in range(4):
            time.sleep(choose.uniform(0.0, 1.0))
            if cycle == 1:
                walstream.streaming()
                load.wait_for_more(5)
                walstream.kill()
                shutil.rmtree(walstream.state)
                walstream.start("--adopt-slot").streaming()
            elif cycle % 2:
                walstream.kill()
                walstream.start()
            else:
                kill_worker(walstream.worker_pid())
            load.wait_for_more(5)
        walstream.worker_pid()
    expected = oracle.names()
    stream.reader.until(
        lambda found: not missing(expected[-1:], map(placed, found)), 180
    )
    assert walstream.terminate() == 0
    assert "is not of this server's history" not in walstream.text
    records = stream.reader.read()
    names = [placed(one) for one in records]
    assert missing(expected, names) == []
    assert assert_rewind_and_continue(names) == 0
    with RegisteredReader(registry.url) as read:
        for one in records:
            read.read(one.key)
            read.value_of(one)


def placed(record: Record) -> Placed:
    """Return a record's place and name."""
    lsn, _, number = dict(record.headers)["walstream-position"].partition(b"/")
    return Placed(record.topic, record.partition, (int(lsn), int(number)))

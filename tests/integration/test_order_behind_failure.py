"""Nothing is produced behind a record that is refused, whoever produces it.

A reader that keeps the highest (lsn, seq_id) of each partition would never take a
record that came behind a later one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.walstream import streamed
from tests.support.oracles.topic_reader import Record, TopicAdmin
from tests.support.selection import shortened

PARTITIONS = 3
LARGE_ID = 5
# the producer's own, which is less than its topic's
SMALL_PRODUCER = {"message.max.bytes": "200000", "linger.ms": "0"}
ROWS = """
INSERT INTO t SELECT i, CASE WHEN i = 5 THEN repeat('x', 300000) ELSE 'v' END
  FROM generate_series(0, 3999) AS i
"""
ONE_ROW = "INSERT INTO t VALUES (5, repeat('x', 300000))"
HANDLED = {
    "handlers": [{"kind": "passthrough"}],
    "batch_rows": 5000,
    "batch_interval": "1s",
}


@dataclass(frozen=True)
class Case:
    """Who produces, and what is written."""

    sink: Mapping[str, Any] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)
    before: str = "INSERT INTO t VALUES (-1, 'v')"  # all of it is taken
    written: str = ROWS
    came: int = 4000  # records of what is written
    whole: int = 4001  # and of what came before


CASES = {
    "batch of handlers": Case(HANDLED),
    "batch of handlers that finds no room": Case(
        HANDLED, {"queue.buffering.max.messages": "100"}
    ),
    "records that wait for their commit": Case({"txinfo": "records"}),
    "row counts behind their transaction": Case(
        {"txinfo": "info"}, written=ONE_ROW, before="SELECT", came=2, whole=2
    ),
    "other half of a change of key": Case(
        before=ONE_ROW,
        written="UPDATE t SET id = 6, v = 'small'",
        came=2,
        whole=3,
    ),
    "tombstone": Case(
        {"tombstones": True}, before=ONE_ROW, written="DELETE FROM t", came=2, whole=3
    ),
}


def place(record: Record) -> tuple[float, float]:
    """Give the order in which a record was to be sent: commit LSN, then the row's id.

    Behind its rows comes what is said of a transaction, behind all a tombstone.
    """
    said: Any = record.op
    if said is None:
        return inf, 0
    row = said.get("record", {"id": inf})
    return int(said["_seqno"]), float(row["id"])


def taken(records: list[Record]) -> int:
    """Count what a reader takes that keeps the highest place of each partition."""
    highest: dict[tuple[str, int], tuple[float, float]] = {}
    count = 0
    for record in records:
        partition = record.topic, record.partition
        if place(record) > highest.get(partition, (0, 0)):
            highest[partition] = place(record)
            count += 1
    return count


@pytest.mark.parametrize(
    "case", shortened(CASES.values(), *list(CASES.values())[:2]), ids=list(CASES)
)
def test_nothing_comes_behind_a_record_that_the_producer_refuses(
    postgres18: PostgresServer,
    kafka: KafkaServer,
    tmp_path: Path,
    topic_prefix: str,
    case: Case,
) -> None:
    TopicAdmin(kafka.bootstrap).create(f"{topic_prefix}public.t", PARTITIONS)
    sink = {"format": "tungsten", **case.sink}
    if sink.get("txinfo") == "info":
        sink["txinfo"] = f"{topic_prefix}info"
    plain = {"bootstrap.servers": kafka.bootstrap}
    with streamed(
        postgres18,
        kafka,
        tmp_path,
        prefix=topic_prefix,
        before="CREATE TABLE t (id int PRIMARY KEY, v text);"
        " ALTER TABLE t REPLICA IDENTITY FULL",
        sink=sink,
        decode=lambda value: value and json.loads(value),
    ) as stream:
        walstream, reader = stream.walstream, stream.reader
        stream.database.execute(case.before)
        before = reader.count(case.whole - case.came)
        last = max(map(place, before), default=(0.0, 0.0))
        assert walstream.terminate() == 0

        refusing = {**plain, **SMALL_PRODUCER, **case.producer}
        walstream.sink = {**sink, "producer": refusing}
        stream.database.execute(case.written)
        walstream.start().ends_with(3, "takes 200000", "message.max.bytes")
        fresh = [place(one) for one in reader.read() if place(one) > last]
        assert [at for at in fresh if at[1] >= LARGE_ID] == []

        walstream.sink = {**sink, "producer": plain}
        walstream.start().streaming()
        reader.until(lambda records: len({place(one) for one in records}) == case.whole)
        assert taken(reader.records) == case.whole

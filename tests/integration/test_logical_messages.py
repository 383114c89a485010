"""Messages of pg_logical_emit_message as records, on a real server."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record

pytestmark = pytest.mark.same_on_15


def plain(value: bytes | None) -> Any:
    return value


@pytest.fixture
def contents(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix, plain) as opened:
        yield opened


def of(reader: Reader, topic: str) -> list[Record]:
    found = [one for one in reader.records if one.topic == topic]
    return sorted(found, key=lambda one: (one.partition, one.offset))


def test_an_outbox_without_a_table(
    database: Database, runs: Runs, contents: Reader, topic_prefix: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    options = {
        "prefixes": ["outbox.*", "bin"],
        "topic": topic_prefix + "m.{prefix}",
        "key": "/id",
    }
    with runs(database.dsn, sink={"messages": options}) as walstream:
        walstream.streaming()
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            emit = "SELECT pg_logical_emit_message(%s, %s, %s)"
            for number in range(5):
                with connection.transaction():
                    content = json.dumps({"id": f"k{number % 2}", "n": number})
                    connection.execute("INSERT INTO t VALUES (%s)", (number,))
                    connection.execute(emit, (True, "outbox.order", content))
                    connection.execute(emit, (True, "other", "not wanted"))
            with connection.transaction(force_rollback=True):
                connection.execute(emit, (True, "outbox.order", '{"id":"never"}'))
                connection.execute(emit, (False, "bin", b"\xff\x00"))
            connection.execute("INSERT INTO t VALUES (99)")  # has it written out
        contents.until(lambda records: len(records) >= 12)
    orders = of(contents, f"{topic_prefix}m.outbox.order")
    by_key: dict[bytes, list[int]] = {}
    for one in orders:
        by_key.setdefault(one.key, []).append(json.loads(one.value)["n"])
    assert by_key == {b"k0": [0, 2, 4], b"k1": [1, 3]}
    headers = [dict(one.headers) for one in orders]
    assert {one["prefix"] for one in headers} == {b"outbox.order"}
    lsns = [int(one["lsn"]) for one in headers]
    assert len(set(lsns)) == 5
    assert all(int(one["xid"]) > 0 for one in headers)
    (binary,) = of(contents, f"{topic_prefix}m.bin")
    assert not binary.key
    assert binary.value == b"\xff\x00"
    assert "xid" not in dict(binary.headers)
    assert int(dict(binary.headers)["lsn"]) > max(lsns)
    assert len(contents.records) == 12


def test_a_kill_loses_none_and_a_stop_repeats_none(
    database: Database, runs: Runs, contents: Reader, topic_prefix: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    topic = f"{topic_prefix}m"
    options = {"prefixes": ["*"], "topic": topic}

    def emit(numbers: range) -> None:
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            for number in numbers:
                connection.execute(
                    "SELECT pg_logical_emit_message(%s, 'p', %s)",
                    (number % 3 == 0, str(number)),
                )

    walstream = runs(database.dsn, sink={"messages": options, "topic_partitions": 1})
    with walstream:
        walstream.streaming()
        emit(range(100))
        got = contents.until(lambda records: len(records) >= 100)
    before = [int(one.value) for one in got]
    assert before == list(range(100))  # in WAL order, inside of transactions or not
    with walstream:
        walstream.streaming()
        emit(range(100, 300))
        walstream.kill()
    emit(range(300, 400))
    with walstream:
        contents.until(lambda records: any(one.value == b"399" for one in records))
    numbers = [int(one.value) for one in of(contents, topic)]
    assert numbers[:100] == list(range(100))
    assert numbers.count(0) == 1  # the stop confirmed them
    assert sorted(set(numbers)) == list(range(400))


def test_large_ones_stop_nothing_wanted_or_not(
    database: Database, runs: Runs, contents: Reader, topic_prefix: str
) -> None:
    options = {"prefixes": ["p"], "topic": f"{topic_prefix}m"}
    sink = {
        "messages": options,
        "topic_partitions": 1,
        "topic_config": {"max.message.bytes": str(8 << 20)},
    }
    with runs(database.dsn, sink=sink) as walstream:
        walstream.streaming()
        emit = "SELECT pg_logical_emit_message(%s, %s, repeat('x', %s))"
        for transactional in (True, False):
            database.execute(emit, transactional, "other", 3 << 20)
            database.execute(emit, transactional, "p", 2 << 20)
        database.execute(emit, True, "p", 10)
        contents.until(lambda records: len(records) >= 3)
    assert [len(one.value) for one in contents.records] == [2 << 20, 2 << 20, 10]


def test_one_that_can_have_no_topic_stops_nothing(
    database: Database, runs: Runs, contents: Reader, topic_prefix: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    options = {
        "prefixes": ["*"],
        "topic": topic_prefix + "m.{prefix}",
        "max_topics": 2,
    }
    with runs(database.dsn, sink={"messages": options}) as walstream:
        walstream.streaming()
        for prefix in ("a", "x" * 300, "b", "c", "a"):
            database.execute(f"SELECT pg_logical_emit_message(false, '{prefix}', 's')")
        database.execute("INSERT INTO t VALUES (1)")
        contents.until(lambda records: len(records) >= 4)
        walstream.until_said("a logical message is not sent", 2)
    topics = sorted(one.topic for one in contents.records)
    assert topics == sorted(
        [f"{topic_prefix}m.a"] * 2 + [f"{topic_prefix}m.b", f"{topic_prefix}public.t"]
    )


def test_debeziums_form_with_transactions_and_heartbeats(
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    contents: Reader,
    topic_prefix: str,
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int)")
    name = topic_prefix.rstrip(".")
    sink = {
        "format": "debezium",
        "txinfo": f"{name}.transaction",
        "messages": {"prefixes": ["*"]},
        "debezium": {"name": name, "heartbeat": "200ms", "transaction_block": True},
        "topic_partitions": 1,
        "on_truncate": "send",
    }
    with runs(database.dsn, sink=sink) as walstream:
        walstream.streaming()
        with (
            psycopg.connect(database.dsn, autocommit=True) as connection,
            connection.transaction(),
        ):
            connection.execute("INSERT INTO t VALUES (1), (2)")
            connection.execute("SELECT pg_logical_emit_message(true, 'p', 'in')")
            connection.execute("UPDATE t SET id = 3 WHERE id = 2; TRUNCATE u")
        database.execute("SELECT pg_logical_emit_message(false, 'q', 'out')")
        database.execute("INSERT INTO t VALUES (9)")  # has it written out
        contents.until(lambda _: len(of(contents, f"{name}.public.t")) == 6)
        contents.until(lambda _: len(of(contents, f"{name}.message")) == 2)
        contents.until(lambda _: len(of(contents, f"{name}.transaction")) == 4)
        with Reader(kafka.bootstrap, f"__debezium-heartbeat.{name}", plain) as beats:
            beats.until(lambda records: len(records) >= 2)
    rows = [
        json.loads(one.value) for one in of(contents, f"{name}.public.t") if one.value
    ]
    assert [one["op"] for one in rows] == ["c", "c", "d", "c", "c"]
    within, outside = of(contents, f"{name}.message")
    assert json.loads(within.key) == {"prefix": "p"}
    told = json.loads(within.value)
    assert base64.b64decode(told["message"]["content"]) == b"in"
    assert told["source"]["txId"] == rows[0]["source"]["txId"]
    assert told["source"]["sequence"] == json.dumps(
        [json.loads(rows[0]["source"]["sequence"])[0], str(told["source"]["lsn"])],
        separators=(",", ":"),
    )
    alone = json.loads(outside.value)["source"]
    assert (alone["txId"], alone["sequence"]) == (
        None,
        f'["{alone["lsn"]}","{alone["lsn"]}"]',
    )
    begin, end, *_ = (
        json.loads(one.value) for one in of(contents, f"{name}.transaction")
    )
    xid, first = begin["id"].split(":")
    assert (int(xid), int(first)) == (
        rows[0]["source"]["txId"],
        rows[0]["source"]["lsn"],
    )
    assert (begin["status"], begin["event_count"]) == ("BEGIN", None)
    assert end["status"] == "END"
    assert end["event_count"] == 5
    assert end["data_collections"] == [
        {"data_collection": "public.t", "event_count": 4},
        {"data_collection": "public.u", "event_count": 1},
    ]
    beat = beats.records[-1]
    assert json.loads(beat.key) == {"serverName": name}
    assert json.loads(beat.value)["ts_ms"] > 1_700_000_000_000


def test_an_origin_is_told(
    database: Database, runs: Runs, contents: Reader, topic_prefix: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    origin = f"east_{topic_prefix}"
    with runs(database.dsn, sink={"format": "debezium"}) as walstream:
        walstream.streaming()
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_replication_origin_create(%s)", (origin,))
            connection.execute(
                "SELECT pg_replication_origin_session_setup(%s)", (origin,)
            )
            with connection.transaction():
                connection.execute(
                    "SELECT pg_replication_origin_xact_setup('0/4D', now())"
                )
                connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("SELECT pg_replication_origin_session_reset()")
            connection.execute("INSERT INTO t VALUES (2)")
            connection.execute("SELECT pg_replication_origin_drop(%s)", (origin,))
        contents.until(lambda records: len(records) >= 2)
    sources = {
        one["after"]["id"]: (one["source"]["origin"], one["source"]["origin_lsn"])
        for one in (json.loads(record.value) for record in contents.records)
    }
    assert sources == {1: (origin, 0x4D), 2: (None, None)}

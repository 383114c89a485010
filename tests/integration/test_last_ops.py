"""What topics end with, whatever else took the last offsets."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.fixtures.kafka import KafkaServer
from tests.support.loads.envelope import envelope
from tests.support.oracles.topic_reader import TopicAdmin
from walstream.errors import Transient
from walstream.formats.op import OpEncoder
from walstream.kafka.last_op import highest, topic_ends
from walstream.op import Kind, ReplicationOp, Table

ORIGIN = "7/shop/0"
TABLE = Table("public", "t", ("id",))

Put = Callable[..., None]


def value(lsn: int, seq_id: int = 0) -> bytes:
    return OpEncoder(TABLE).encode(
        ReplicationOp(Kind.INSERT, TABLE, lsn, seq_id, new=["1"])
    )


@pytest.fixture
def put(kafka: KafkaServer) -> Put:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def write(
        topic: str,
        partition: int,
        *values: bytes | None,
        by: str = "",
        named: str = "",
    ) -> None:
        headers: list[tuple[str, str | bytes | None]] = []
        if named:
            headers.append(("walstream-position", named))
        if by:
            headers.append(("walstream-source", by))
        for one in values:
            producer.produce(topic, one, partition=partition, headers=headers)
        assert producer.flush(30) == 0

    return write


def test_the_furthest_op_of_any_partition_is_found(
    kafka: KafkaServer, topic_prefix: str, put: Put
) -> None:
    wide, empty, foreign = (
        f"{topic_prefix}{name}" for name in ("wide", "empty", "other")
    )
    admin = TopicAdmin(kafka.bootstrap)
    for topic in (wide, empty, foreign):
        admin.create(topic, 3)
    # a replay leaves the last op of a partition below an earlier one
    put(wide, 0, value(50), value(20, 4))
    put(wide, 1, value(20, 3))
    put(foreign, 0, value(90), by="8/shop/0")
    missing = f"{topic_prefix}gone"

    ends = topic_ends(
        {"bootstrap.servers": kafka.bootstrap}, [wide, empty, foreign, missing], ORIGIN
    )
    found = {end.topic: end for end in ends}
    best = found[wide].last
    assert best is not None
    assert (best.lsn, best.seq_id, best.partition, best.offset) == (20, 4, 0, 1)
    assert found[empty].last is None
    assert not found[empty].problem
    theirs = found[foreign].last
    assert theirs is not None
    assert theirs.origin == "8/shop/0"
    assert (found[missing].partitions, found[missing].problem) == (
        None,
        "the topic does not exist",
    )
    assert highest(ends, ORIGIN) == best


def test_it_looks_behind_what_is_no_op(
    kafka: KafkaServer, topic_prefix: str, put: Put
) -> None:
    near, far, without = (f"{topic_prefix}{name}" for name in ("near", "far", "none"))
    admin = TopicAdmin(kafka.bootstrap)
    for topic in (near, far, without):
        admin.create(topic)
    put(far, 0, value(10), *[b"{}"] * 200)
    put(near, 0, value(11), None)
    put(without, 0, *[b"no op"] * 300)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": topic_prefix}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(near, value(12))
    producer.commit_transaction(30)

    ends = topic_ends(
        {"bootstrap.servers": kafka.bootstrap}, [near, far, without], ORIGIN
    )
    found = {end.topic: end.last.lsn if end.last else None for end in ends}
    assert found == {near: 12, far: 10, without: None}
    (unread,) = (end for end in ends if end.topic == without)
    assert "no op among the last 256" in unread.problem


def test_brokers_that_are_away_are_an_error_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("walstream.kafka.last_op._ANSWER_S", 0.3)
    with pytest.raises(Transient):
        topic_ends({"bootstrap.servers": "127.0.0.1:1"}, ["t"], ORIGIN)


def test_records_of_debeziums_formats_are_named_by_header_or_block(
    kafka: KafkaServer, topic_prefix: str, put: Put
) -> None:
    def value(version: str) -> bytes:
        place: dict[str, Any] = {"version": version, "sequence": '["40","30"]'}
        return json.dumps(envelope("c", after={"id": 1}, order=3, **place)).encode()

    expected = {
        "header": (value("3.5.0.Final"), "50/7", (50, 7)),
        "tombstone": (None, "50/8", (50, 8)),
        "row": (b'{"id":1}', "50/9", (50, 9)),
        "block": (value("walstream 1"), "", (40, 2)),
        "theirs": (value("3.5.0.Final"), "", None),
        "wrong": (value("3.5.0.Final"), "x/y", None),
    }
    admin = TopicAdmin(kafka.bootstrap)
    for name, (record, named, _) in expected.items():
        admin.create(f"{topic_prefix}{name}", 1)
        put(f"{topic_prefix}{name}", 0, record, by=ORIGIN, named=named)
    topics = [f"{topic_prefix}{name}" for name in expected]
    ends = topic_ends({"bootstrap.servers": kafka.bootstrap}, topics, ORIGIN)
    found = [(end.topic, end.last and (end.last.lsn, end.last.seq_id)) for end in ends]
    assert dict(found) == {
        f"{topic_prefix}{name}": place for name, (_, _, place) in expected.items()
    }
    assert {end.last.origin for end in ends if end.last} == {ORIGIN}

"""Which records of a sink have names, which topics are its alone, by which rules."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.walstream import toml
from walstream.config import Config, load, topology
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.avro import AvroEnvelope
from walstream.op import Kind, ReplicationOp, Table
from walstream.sources.delivery_rules import DeliveryRules

HEADER = b"7/shop/0"
REGISTRY = "http://localhost:1"
AVRO: dict[str, Any] = {
    "format": "debezium",
    "encoding": "avro",
    "registry": {"url": REGISTRY},
}
HEADLESS = {"debezium": {"position_header": False}}


def config(folder: Path, other: Any = None, **sink: Any) -> Config:
    kafka: dict[str, Any] = {
        "kind": "kafka",
        "topic": "t.{schema}.{table}",
        "producer": {"bootstrap.servers": "localhost:1"},
    }
    sinks = {"k": {**kafka, **sink}}
    if other is not None:
        sinks["other"] = {**kafka, **other}
    source = {"kind": "postgres", "dsn": "dbname=shop", "sinks": [*sinks]}
    document = {"sources": {"app": source}, "sinks": sinks}
    file = folder / "walstream.toml"
    file.write_text(toml(document))
    return load(file, {})


def rules(folder: Path, other: Any = None, **sink: Any) -> DeliveryRules:
    return DeliveryRules(config(folder, other, **sink), "app")


TABLE = Table("public", "t", ("id",), (0,), (23,))


@pytest.mark.parametrize(
    ("sink", "unnamed", "again"),
    [
        ({}, "", ""),
        ({"format": "debezium"}, "", ""),
        ({"skip_delivered": False}, "", "skip_delivered is false"),
        ({"at_most_once": True}, "", "at_most_once is true"),
        ({"format": "event"}, "the format event do", "the format event do"),
        ({"format": "debezium", **HEADLESS}, "", ""),
        ({"format": "debezium_row", **HEADLESS}, "position_header", "position_header"),
        ({**AVRO, **HEADLESS}, "position_header", "position_header"),
        (AVRO, "", ""),
    ],
)
def test_why_nothing_is_left_out(
    tmp_path: Path, sink: dict[str, Any], unnamed: str, again: str
) -> None:
    found = rules(tmp_path, **sink)
    for said, expected in (
        (found.why_unnamed("k"), unnamed),
        (found.why_again("k"), again),
    ):
        assert expected in said
        assert bool(said) == bool(expected)


def test_a_topic_of_two_sinks_is_nobodys_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "_check_sinks_of_one", lambda _: ())
    found = rules(tmp_path, {"topic": "t.public.{table}"})
    assert found.is_alone("k", "t.other.x")
    assert not found.is_alone("k", "t.public.x")
    topics = found.topics("k", HEADER)
    assert topics.counts("t.other.x")
    assert not topics.counts("t.public.x")


def test_topics_beside_the_tables_do_not_count(tmp_path: Path) -> None:
    found = rules(tmp_path, txinfo="topic", on_too_large="parked")
    topics = found.topics("k", HEADER)
    assert not topics.counts("parked")
    assert topics.counts("t.public.t")
    assert topics.is_named("t.public.t")
    assert topics.origin == "7/shop/0"


def test_what_sends_another_record_is_another_rule(tmp_path: Path) -> None:
    def of(header: bytes = HEADER, **sink: Any) -> object:
        return rules(tmp_path, **sink).topics("k", header).rules

    assert of() == of(skip_delivered=False) == of(topic_partitions=9)
    assert of() != of(split_key_updates=False)
    assert of() != of(b"7/shop/1")
    told = {"url": REGISTRY, "client": {"basic.auth.user.info": "me:pw"}}
    assert of(**AVRO) == of(**{**AVRO, "registry": told})
    assert of(**AVRO) != of(**{**AVRO, "registry": {"url": f"{REGISTRY}/v7"}})


def test_the_time_of_processing_is_not_compared(tmp_path: Path) -> None:
    def ending(**sink: Any) -> int:
        return rules(tmp_path, **sink).topics("k", HEADER).ending

    def row(*added: str) -> int:
        return ending(format="debezium_row", debezium={"add_fields": [*added]})

    assert ending() == ending(format="debezium") == row() == 0
    assert ending(**{**AVRO, "format": "op"}) == 0  # it tells no time
    assert row("op", "source.ts_ms", "lsn:ts_ms") == 0
    assert row("op", "ts_us:at") > 1 << 40
    turn, op = SinkTurn(), ReplicationOp(Kind.INSERT, TABLE, 8, 0, new=["1"])
    encoder = AvroEnvelope(TABLE, DebeziumOptions("app"), turn)
    values = []
    for year in (2026, 2038):
        turn.begin((year - 1970) * 31_556_952 * 10**9)
        values.append(encoder.encode(op)[: -ending(**AVRO)])
    assert values[0] == values[1]
    assert encoder.encode(op)[len(values[0]) - 2 :][:3] == b"\x02c\x02"

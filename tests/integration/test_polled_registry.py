"""Polled tables in each encoding: what a reader gets back is what `row` in JSON says.

One source writes both, so each row is compared with itself.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer import RowMessage, SchemaRegistry, verify
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Record
from tests.support.programs.polled_source import SOURCE, Polled
from tests.support.servers.apicurio import LocalRegistry

TYPES = """
CREATE TABLE typed (id bigint PRIMARY KEY, n int NOT NULL, "a b" numeric(6, 2),
  free numeric, s text NOT NULL, ts timestamp, tz timestamptz NOT NULL, d date,
  t time, b bytea, j jsonb, u uuid, f8 float8, ok boolean NOT NULL, a int[],
  i interval, m money, r int4range, ip inet, sm smallint);
INSERT INTO typed VALUES
  (1, 7, 12.50, 1.500, 'é', '2020-01-02 03:04:05.678', '2020-01-02 03:04:05.5+02',
   '2020-02-29', '03:04:05.6', '\\x00ff', '{"a": [1, null, 2.5]}',
   '5bdc360e-91a6-5062-9c7d-94cceabcc7ec', 1e300, true, '{1,NULL,3}',
   '1 mon 2 days', 12.5, '[1,5)', '10.0.0.1/8', -3),
  (2, -7, 'NaN', 'NaN', '', 'infinity', '-infinity', '0044-03-15 BC', '24:00',
   '', 'null', NULL, 'NaN', false, '{{1,2},{3,4}}', '-00:00:01', -1, 'empty', '::1', 0),
  (4, 0, NULL, NULL, 'x', NULL, '2020-01-01 00:00:00Z', NULL, NULL, NULL, NULL, NULL,
   NULL, true, NULL, NULL, NULL, NULL, NULL, NULL);
"""


@pytest.fixture
def polled(
    database: Database,
    kafka: KafkaServer,
    registry: LocalRegistry,
    tmp_path: Path,
    topic_prefix: str,
) -> Iterator[Polled]:
    made = Polled(
        database.dsn.replace("postgresql://", "postgresql+psycopg://"),
        kafka.bootstrap,
        tmp_path,
        topic_prefix,
        sink={
            "topic": topic_prefix + "enc.{schema}.{table}",
            "registry": {"url": registry.url},
        },
        other_sinks={
            "plain": {
                "kind": "kafka",
                "format": "row",
                "topic": topic_prefix + "json.{schema}.{table}",
                "producer": {"bootstrap.servers": kafka.bootstrap},
            }
        },
        source={"sinks": ["rows", "plain"]},
    )
    yield made
    made.close()


def raw(value: Any) -> Any:
    return value


def parted(records: list[Record]) -> tuple[list[Record], list[Record]]:
    """Part those with an id from those in JSON."""
    one = [r for r in records if ".enc." in f".{r.topic}"]
    return one, [r for r in records if r not in one]


@pytest.mark.parametrize("encoding", ["avro", "json_schema", "protobuf"])
def test_a_reader_gets_what_json_says(
    encoding: str, database: Database, polled: Polled, registry: LocalRegistry
) -> None:
    database.execute(TYPES)
    polled.tables = {"public.typed": {}}
    polled.sink = {**polled.sink, "encoding": encoding}
    schemas = SchemaRegistry({"url": registry.url})
    with RegisteredReader(registry.url) as stranger, polled.reader(raw) as reader:
        polled.once()
        found, wanted = parted(reader.count(6))
        assert len(found) == len(wanted) == 3
        ours = [RowMessage.of(one.value, schemas) for one in found]
        theirs = [RowMessage.of(one.value) for one in wanted]
        by_hash = {one.hash: one for one in theirs}
        for one in ours:
            assert verify(one)
            assert one.data == by_hash[one.hash].data
            assert [*one.data] == [*by_hash[one.hash].data]
        for one in found:
            value, key = stranger.value_of(one), stranger.read(one.key)
            assert key == {"id": value["data"]["id"]}
            assert value["name"] == SOURCE
        assert polled.said("schema") == []
    schemas.close()

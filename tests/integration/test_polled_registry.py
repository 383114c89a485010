"""Polled tables in each encoding: what a reader gets back is what `row` in JSON says.

One source writes both, so each row is compared with itself.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema

from consumer import RowMessage, SchemaRegistry, verify
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.mariadb import Mariadb
from tests.support.fixtures.postgres import Database
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Record
from tests.support.programs.polled_source import SOURCE, Polled
from tests.support.servers.apicurio import LocalRegistry
from walstream.config import load
from walstream.status.lookup.sources import look
from walstream.status.model import SourceStatus

pytestmark = pytest.mark.same_on_15

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
        for message in ours:
            assert verify(message)
            assert message.data == by_hash[message.hash].data
            assert [*message.data] == [*by_hash[message.hash].data]
        for one in found:
            value, key = stranger.value_of(one), stranger.read(one.key)
            assert key == {"id": value["data"]["id"]}
            assert value["name"] == SOURCE
            if value["data"]["id"] == 1:  # each type holds its usual values
                assert value["texts"] is None
    schemas.close()


@pytest.mark.parametrize("encoding", ["avro", "protobuf"])
def test_spark_is_given_ids(
    encoding: str, database: Database, polled: Polled, registry: LocalRegistry
) -> None:
    database.execute(
        "CREATE TABLE many (id int PRIMARY KEY, v text);"
        "INSERT INTO many SELECT n, 'v' || n FROM generate_series(1, 12000) n"
    )
    polled.tables = {"public.many": {"parallelism": 2}}
    polled.sink = {**polled.sink, "encoding": encoding}
    polled.source = {}
    with RegisteredReader(registry.url) as stranger, polled.reader(raw) as reader:
        polled.once()
        records = reader.count(12000)
        rows = {stranger.value_of(one)["data"]["id"] for one in records}
        assert rows == {*range(1, 12001)}
        assert len({one.value[:5] for one in records}) == 1


def test_columns_become_versions_and_what_does_not_fit_stops_its_table(
    database: Database, polled: Polled, registry: LocalRegistry
) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1);"
        "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)"
    )
    polled.tables = {"public.t": {}, "public.u": {}}
    polled.source = {}
    own = {"url": registry.url, "compatibility": "BACKWARD"}
    polled.sink = {**polled.sink, "encoding": "avro", "registry": own}
    subject = f"{polled.prefix}enc.public.t-value"
    with RegisteredReader(registry.url) as stranger, polled.reader(raw) as reader:
        polled.once()
        database.execute("ALTER TABLE t ADD w text; INSERT INTO t VALUES (2, 2, 'w')")
        polled.once()
        assert stranger.versions(subject) == 2
        reader.count(3)

        database.execute(
            "ALTER TABLE t ALTER n TYPE text; INSERT INTO t VALUES (3, 'three', '');"
            "INSERT INTO u VALUES (2)"
        )
        (refused,) = findings(polled, "schema-incompatible")
        assert "field n was null or int and is null or string" in refused["what"]
        done = polled.command("poll", "--once")
        assert done.returncode == 3
        assert "field n was null or int and is null or string" in done.stderr
        reader.count(4)  # the other table's
        told = polled.command("status")
        assert told.returncode != 0
        assert "curl -X PUT" in told.stdout

        subprocess.run(
            shlex.split(refused["repair"]["command"]), check=True, capture_output=True
        )
        assert findings(polled, "schema-incompatible") == []
        polled.once()
        rows = [stranger.value_of(one)["data"] for one in reader.count(5)]
        assert [one for one in rows if "n" in one] == [
            {"id": 1, "n": 1},
            {"id": 2, "n": 2, "w": "w"},
            {"id": 3, "n": "three", "w": ""},
        ]
        assert stranger.versions(subject) == 3


def test_a_registry_that_is_away_holds_up_what_it_was_not_told(
    database: Database, polled: Polled, own_registry: LocalRegistry
) -> None:
    """Also over a restart; and a change of the registry is told."""
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1);"
        "CREATE TABLE late (id int PRIMARY KEY)"
    )
    polled.tables = {"public.t": {}, "public.late": {}}
    polled.source = {}
    told = {"encoding": "avro", "registry": {"url": own_registry.url}}
    polled.sink = {**polled.sink, **told}
    with polled.reader(raw) as reader:
        polled.start().polling()
        reader.count(1)
        own_registry.kill()
        database.execute("INSERT INTO t VALUES (2); INSERT INTO late VALUES (1)")
        reader.count(2)
        polled.until("waiting for the schema registry")
        wait_until(lambda: status(polled).exit_code == 5, 20, "it is red")
        said = " ".join(status(polled).problems)
        assert "sink 'rows' waits for the schema registry" in said
        assert [one.state for one in status(polled).sinks] == ["waiting"]
        assert polled.terminate() == 0

        polled.start().polling()
        database.execute("INSERT INTO t VALUES (3)")
        reader.count(3)
        assert {one.topic for one in reader.records} == {f"{polled.prefix}enc.public.t"}
        own_registry.start()
        reader.count(4)
        wait_until(lambda: status(polled).exit_code == 0, 20, "it is well again")
        with RegisteredReader(own_registry.url) as stranger:
            for one in reader.records:
                assert stranger.value_of(one)["data"]["id"] in {1, 2, 3}
        assert polled.terminate() == 0


def test_tail_shows_rows(database: Database, polled: Polled) -> None:
    database.execute(TYPES)
    polled.tables = {"public.typed": {}}
    polled.sink = {**polled.sink, "encoding": "avro"}
    polled.once()
    shown = []
    for form in ("enc", "json"):
        topic = f"{polled.prefix}{form}.public.typed"
        wanted = ("--sink", "rows", "--from-beginning", "--until-end", "--json")
        done = polled.command("tail", topic, *wanted)
        assert done.returncode == 0, done.stderr
        shown.append([json.loads(line) for line in done.stdout.splitlines()])
    ours, theirs = shown
    assert len(ours) == len(theirs) == 3
    for one, other in zip(ours, theirs, strict=True):
        assert {k: v for k, v in one.items() if k not in AT} == {
            k: v for k, v in other.items() if k not in AT
        }


AT = {"topic", "partition", "offset", "timestamp", "key"}


def findings(polled: Polled, code: str) -> list[Any]:
    report = json.loads(polled.command("check", "--json").stdout)
    every = [one for source in report["sources"] for one in source["findings"]]
    return [one for one in every if one["code"] == code]


def status(polled: Polled) -> SourceStatus:
    (found,) = look(load(polled.configuration, {})).sources
    return found


ZERO = """
CREATE TABLE zero (id BIGINT UNSIGNED PRIMARY KEY, u INT UNSIGNED NOT NULL,
  at DATETIME NOT NULL, d DATE, t TIME, y YEAR, b BIT(4), s SET('a','b'), f FLOAT,
  p DECIMAL(8,3), e ENUM('x','y'), ok BOOLEAN, j JSON,
  big BIGINT UNSIGNED, v VARBINARY(4))
"""
ZEROS = """
INSERT INTO zero VALUES
  (1, 4294967295, '2020-01-02 03:04:05', '2020-02-29', '-838:59:59', 2020, b'1010',
   'a,b', 0.1, 1.5, 'x', true, '{"a": [1]}', 1, x'00ff'),
  (2, 0, '0000-00-00 00:00:00', '0000-00-00', '00:00:00', 0, b'0', '', -0.0, -0.001,
   'y', false, '[]', 18446744073709551615, ''),
  (3, 1, '9999-12-31 23:59:59', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL)
"""


@pytest.mark.parametrize("encoding", ["avro", "json_schema", "protobuf"])
def test_what_a_type_does_not_hold_comes_back_from_mariadb(
    encoding: str, mariadb_database: Mariadb, polled: Polled, registry: LocalRegistry
) -> None:
    mariadb_database.execute(ZERO)
    mariadb_database.execute(ZEROS)
    polled.dsn = mariadb_database.url
    polled.tables = {"zero": {}}
    polled.sink = {**polled.sink, "encoding": encoding}
    schemas = SchemaRegistry({"url": registry.url})
    with RegisteredReader(registry.url) as stranger, polled.reader(raw) as reader:
        polled.once()
        found, wanted = parted(reader.count(6))
        ours = [RowMessage.of(one.value, schemas) for one in found]
        theirs = {one.hash: one for one in (RowMessage.of(w.value) for w in wanted)}
        assert len(ours) == len(theirs) == 3
        for message in ours:
            assert verify(message)
            assert message.data == theirs[message.hash].data
        values = [stranger.value_of(one) for one in found]
        (zero,) = [one for one in values if one["data"]["id"] == 2]
        assert zero["data"]["at"] == 0  # it is NOT NULL
        assert zero["data"]["d"] is None
        (usual,) = [one for one in values if one["data"]["id"] == 1]
        assert usual["texts"] is None
    schemas.close()


def test_a_registry_that_was_replaced_gives_other_ids(
    database: Database, polled: Polled, own_registry: LocalRegistry
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    polled.tables = {"public.t": {}}
    polled.source = {}
    told = {"encoding": "avro", "registry": {"url": own_registry.url}}
    polled.sink = {**polled.sink, **told}
    with polled.reader(raw) as reader:
        polled.once()
        own_registry.anew()
        with RegisteredReader(own_registry.url) as stranger:
            for name in "abcd":  # more than there were: whichever comes first now
                other = f'{{"type":"record","name":"{name}","fields":[]}}'
                stranger.client.register_schema(name, Schema(other, "AVRO"))
            database.execute("INSERT INTO t VALUES (2)")
            done = polled.once()
            assert "the registry has another id for a schema" in done.stderr
            first, second = reader.count(2)
            assert first.value[:5] != second.value[:5]
            assert stranger.value_of(second)["data"] == {"id": 2}

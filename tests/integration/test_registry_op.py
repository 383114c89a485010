"""The format `op` in Avro: what a reader gets back is what `op` in JSON says.

One source writes both, so each op is compared with itself.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from consumer import IdempotentConsumer, PostgresMirror
from consumer.decoder import Decoder
from consumer.op import ConsumerRecord
from consumer.registry import SchemaRegistry
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.loads.typed import NAMES, TABLES, TypedLoad
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.consumer_thread import Running
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from tests.support.servers.apicurio import LocalRegistry
from walstream.formats.op import decode
from walstream.op import ReplicationOp

pytestmark = pytest.mark.same_on_15

# what types do not hold, and names that Avro does not take
DONE = ";CREATE TABLE done (id int PRIMARY KEY)"  # its row comes last
HARD = """
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE SCHEMA "Odd-1";
CREATE TABLE "Odd-1"."t b" ("k é" int PRIMARY KEY, "1 c" numeric(6, 2), n numeric,
  i interval, z timetz, v varbit, b bit(3), m money, a int[], x text[], p pair,
  f float4, ts timestamp, tz timestamptz, d date, w positive, g point, l line, c cidr,
  o numeric[], neg numeric(3, -2), nn text NOT NULL, h jsonb,
  d2 date, f8 float8, t6 time, t3 time(3), by bytea[]);
INSERT INTO "Odd-1"."t b" VALUES (1, 'NaN', 1.500, '1 year -2 days', '03:04:05+02',
  '0010', '001', 1234.5, '[0:1]={1,2}', '{{a,NULL},{"b c",d}}', '(1,"x y")', 1e6,
  '294276-12-31', '-infinity', '0044-03-15 BC', 3, '(1,2.5)', '{1,-1,0}', '10.0.0.0/8',
  '{1.50,NaN}', 12300, '', '{"a": 1}',
  '5874897-12-31', '-0', '24:00', '01:02:03.4', ARRAY['\\x00ff'::bytea, NULL, '']);
"""
MORE = """
INSERT INTO "Odd-1"."t b" SELECT 2, 1.5, 'Infinity', '-00:00:01', '23:59:59.9-01:30',
  '', '000', -1, '{}', '{NULL,"NULL",""}', NULL, 'NaN', 'infinity',
  '4713-01-01 00:00:00+00 BC', 'infinity', 1, '(0,1e+300)', NULL, NULL,
  '{}', NULL, 'n', NULL, '4713-01-01 BC', 'NaN', '00:00:00.000001', '24:00', NULL;
UPDATE "Odd-1"."t b" SET "1 c" = NULL WHERE "k é" = 1;
UPDATE "Odd-1"."t b" SET "k é" = 3 WHERE "k é" = 1;
DELETE FROM "Odd-1"."t b" WHERE "k é" = 2;
"""


def raw(value: Any) -> Any:
    """Leave a record's value as it is."""
    return value


Run = Callable[..., Walstream]


@pytest.fixture
def run(
    database: Database, runs: Runs, registry: LocalRegistry, topic_prefix: str
) -> Run:
    database.execute(TABLES)

    def made(**told: Any) -> Walstream:
        source = {"backfill": "initial", **told.pop("source", {})}
        others = told.pop("others", {})
        sink = {
            "format": "op",
            "encoding": "avro",
            "topic": topic_prefix + "avro.{schema}.{table}",
            "topic_partitions": 3,
            "registry": {"url": registry.url},
            **told,
        }
        return runs(database.dsn, sink=sink, source=source, others=others)

    return made


def ops(decoder: Decoder, records: list[Record]) -> list[tuple[Any, ...]]:
    found = []
    for one in records:
        place = one.topic, one.partition, one.offset
        record = ConsumerRecord(*place, one.key, one.value)
        op = decoder.op_of(record)
        if op is None:  # a tombstone
            continue
        stamp = 0 if op.snapshot else one.timestamp
        found.append((*said(op._op), stamp))  # noqa: SLF001 - all of it
    return sorted(found, key=repr)


def said(op: ReplicationOp) -> tuple[Any, ...]:
    """Return all that a record says of an op."""
    table = op.table
    named = op.kind, table.schema, table.name, table.columns, op.lsn, op.seq_id
    return *named, op.old, op.new, op.absent, op.snapshot, op.partitions


@pytest.mark.parametrize("encoding", ["avro", "json_schema", "protobuf"])
def test_a_reader_gets_what_json_says(  # noqa: PLR0913, PLR0917 - fixtures
    encoding: str,
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    database.execute(HARD + DONE)
    other = {"topic": topic_prefix + "json.{schema}.{table}", "topic_partitions": 3}
    with (
        RegisteredReader(registry.url) as stranger,
        run(others={"json": other}, encoding=encoding) as walstream,
        Reader(kafka.bootstrap, f"{topic_prefix}avro.", raw) as avro,
        Reader(kafka.bootstrap, f"{topic_prefix}json.", raw) as plain,
    ):
        walstream.until("backfill ended")
        database.execute(MORE)
        with TypedLoad(database, 7, pause_s=0.01) as load:
            load.wait_for_more(150)
        database.execute("TRUNCATE wiped")
        database.execute("INSERT INTO done VALUES (1)")
        for one in (avro, plain):
            one.until(lambda found: any(r.topic.endswith("done") for r in found))
        assert walstream.terminate() == 0
        schemas = SchemaRegistry({"url": registry.url})
        decoder = Decoder(registry=schemas)
        records, others = avro.read(), plain.read()
        found, wanted = ops(decoder, records), ops(decoder, others)
        schemas.close()
        assert len(found) == len(wanted) > 300
        for ours, told in zip(found, wanted, strict=True):
            assert ours == told
        for each in records:  # independent of walstream's reader
            if encoding == "protobuf":
                continue  # walstream alone reads it here
            value = json.loads(each.value[5:]) if encoding != "avro" else None
            if value is None:
                stranger.read(each.key)
                value = stranger.value_of(each)
            header = dict(each.headers)["walstream-position"]
            assert header == f"{value['lsn']}/{value['seq_id']}".encode()
        kinds = {each[0].value for each in found}
        assert kinds == {"Insert", "Update", "Delete", "Truncate"}


def test_options_of_a_sink_mean_what_they_mean_in_json(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """Long values, a key of the sink's own, handlers, tombstones, and told rows."""
    told: dict[str, Any] = {
        "tombstones": True,
        "topic_partitions": 3,
        "handlers": [{"kind": "mask", "columns": ["u"], "secret": "s" * 32}],
    }
    ours, theirs = f"{topic_prefix}avro.", f"{topic_prefix}json."
    both = [
        {
            "topics": {
                "public.keyed": {"name": f"{one}keyed", "partition_key": ["part"]}
            },
            "on_too_large": f"{one}large",
            "txinfo": f"{one}told",
            **told,
        }
        for one in (ours, theirs)
    ]
    database.execute(KEYED + DONE)
    other = {"topic": theirs + "{schema}.{table}", **both[1]}
    with (
        run(**both[0], others={"json": other}) as walstream,
        Reader(kafka.bootstrap, ours, raw) as avro,
        Reader(kafka.bootstrap, theirs, raw) as plain,
    ):
        walstream.until("backfill ended")
        database.execute(LONG)
        with TypedLoad(database, 9, pause_s=0.01) as load:
            load.wait_for_more(100)
        database.execute("INSERT INTO done VALUES (1)")
        for one in (avro, plain):
            one.until(lambda found: any(r.topic.endswith("done") for r in found))
        assert walstream.terminate() == 0, walstream.text
        schemas = SchemaRegistry({"url": registry.url})
        decoder = Decoder(registry=schemas)
        records, others = avro.read(), plain.read()
        asides = ("large", "told")
        found, wanted = (
            ops(decoder, [one for one in each if not one.topic.endswith(asides)])
            for each in (records, others)
        )
        schemas.close()
    assert len(found) == len(wanted) > 200
    assert found == wanted
    for name in asides:
        count = [
            sum(r.topic.endswith(name) for r in each) for each in (records, others)
        ]
        assert count[0] == count[1] > 0
    rows = [one for one in records if one.topic == f"{ours}keyed"]
    assert len({one.partition for one in rows if not one.value}) == 1
    assert sum(not one.value for one in records) > 0


def test_columns_come_and_go_under_full(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    topic = f"{topic_prefix}avro.public.wiped"
    full = {"url": registry.url, "compatibility": "FULL_TRANSITIVE"}
    with (
        RegisteredReader(registry.url) as stranger,
        run(registry=full) as walstream,
        Reader(kafka.bootstrap, topic, raw) as reader,
    ):
        walstream.until("backfill ended")
        for number, change in enumerate(CHANGES, 100):
            database.execute(f"ALTER TABLE wiped {change}")
            database.execute(f"INSERT INTO wiped (id) VALUES ({number})")  # noqa: S608
        records = reader.until(lambda found: len(found) >= 20 + len(CHANGES))
        news = [stranger.value_of(one)["new"] for one in records]
        assert walstream.terminate() == 0
        assert stranger.versions(f"{topic}-key") == 1
        assert stranger.versions(f"{topic}-value") > 1
    by_id = {one["id"]: one for one in news}
    assert "w" in by_id[100]
    assert "v" not in by_id[101]
    assert by_id[102]["w"] == 7


CHANGES = ("ADD w int", "DROP v", "ALTER w SET DEFAULT 7", "ALTER id SET DEFAULT 1")
KEYED = """
CREATE TABLE keyed (id int PRIMARY KEY, part text NOT NULL, big text);
ALTER TABLE keyed REPLICA IDENTITY FULL;
INSERT INTO keyed SELECT n, 'a', 'x' FROM generate_series(1, 20) n;
"""
LONG = """
INSERT INTO keyed SELECT n, 'a', repeat('long', 150000) FROM generate_series(21, 23) n;
INSERT INTO keyed SELECT 30, 'a', repeat('long', 300000);
UPDATE keyed SET id = 40 WHERE id = 21;
DELETE FROM keyed WHERE id < 5;
"""


def test_a_mirror_follows(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    postgres: PostgresServer,
    topic_prefix: str,
) -> None:
    def contents(one: Database) -> list[Any]:
        return [one.fetch(f"SELECT t::text FROM {name} t ORDER BY 1") for name in NAMES]  # noqa: S608

    with (
        temporary_database(postgres) as target,
        run() as walstream,
    ):
        target.execute(TABLES)
        target.execute("TRUNCATE typed, loose, wiped")
        with IdempotentConsumer(
            PostgresMirror(target.dsn),
            target.dsn,
            group=topic_prefix,
            topics=f"{topic_prefix}avro.public.*",
            kafka={"bootstrap.servers": kafka.bootstrap, "fetch.wait.max.ms": 10},
            registry={"url": registry.url},
        ) as consumer:
            running = Running(consumer)
            walstream.until("backfill ended")
            with TypedLoad(database, 8, pause_s=0.01) as load:
                load.wait_for_more(150)

            def same() -> bool:
                if running.error is not None:
                    raise running.error
                return contents(target) == contents(database)

            wait_until(same, 120, "the mirror has the rows")


def test_tail_and_check_know_it(
    database: Database, run: Run, kafka: KafkaServer, topic_prefix: str
) -> None:
    walstream = run()
    with walstream:
        walstream.until("backfill ended")
        database.execute("INSERT INTO wiped VALUES (100, 'new')")
        database.execute("DELETE FROM wiped WHERE id = 100")
        with Reader(kafka.bootstrap, f"{topic_prefix}avro.public.wiped", raw) as reader:
            reader.until(lambda found: len(found) >= 22)
        topic = f"{topic_prefix}avro.public.wiped"
        told = ("--from-beginning", "--until-end", "--json")
        done = verb(walstream.configuration, "tail", topic, *told)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert {one["format"] for one in lines} == {"op"}
        assert [one["kind"] for one in lines].count("insert") == 21
        checked = verb(walstream.configuration, "check")
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_json_is_what_it_was(
    database: Database, runs: Runs, kafka: KafkaServer, topic_prefix: str
) -> None:
    """A sink without an encoding asks no facts, and writes no header of a name."""
    database.execute(TABLES)
    walstream = runs(database.dsn, sink={"topic": topic_prefix + "{schema}.{table}"})
    with walstream, Reader(kafka.bootstrap, topic_prefix) as reader:
        walstream.streaming()
        database.execute("INSERT INTO wiped VALUES (100, 'new')")
        (record,) = reader.count(1)
        assert decode(record.value).new == ["100", "new"]
        assert "walstream-position" not in dict(record.headers)

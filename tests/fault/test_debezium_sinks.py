"""Sinks made for Debezium's topics, fed by walstream's and by Debezium's own.

The same records are in both; so the tables that a sink makes of them are the same, in
their columns and in their rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.data.debezium.record import FOLDER, statements
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.table_copy import definition, rows
from tests.support.programs.debezium import Beside, beside
from tests.support.programs.debezium_variant import OURS, Variant
from tests.support.programs.flink import table_of
from tests.support.servers.apicurio import CONVERTER, LocalRegistry
from tests.support.servers.connect import LocalConnect, jdbc_sink
from walstream.formats.debezium import DebeziumOptions
from walstream.formats.debezium.names import topic as topic_of

pytestmark = [pytest.mark.fault, pytest.mark.fault_long]

_ENVELOPES: Final = (Variant(DebeziumOptions("dbz", schemas=True)),)
_PATIENCE_S: Final = 120.0
TABLES: Final = """
CREATE TABLE plain (id int PRIMARY KEY, v text, n numeric(8,2), at timestamptz);
CREATE TABLE twofold (a int, b text, v text, PRIMARY KEY (a, b));
CREATE TABLE whole (id int PRIMARY KEY, v text, big text);
ALTER TABLE whole REPLICA IDENTITY FULL;
ALTER TABLE whole ALTER big SET STORAGE external;
CREATE TABLE parted (id int, k int, v text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
"""
CHANGES: Final = """
INSERT INTO plain SELECT n, 'v' || n, n * 1.5, now() FROM generate_series(1, 200) n;
UPDATE plain SET v = v || 'x' WHERE id % 3 = 0;
UPDATE plain SET id = id + 1000 WHERE id % 10 = 0;
DELETE FROM plain WHERE id % 7 = 0;
INSERT INTO plain VALUES (7, 'again', 7, now());
INSERT INTO twofold SELECT n, 'b' || n, 'v' FROM generate_series(1, 50) n;
UPDATE twofold SET b = 'moved' || a WHERE a % 2 = 0;
DELETE FROM twofold WHERE a % 5 = 0;
INSERT INTO whole SELECT n, 'v', repeat('x', 9000) FROM generate_series(1, 20) n;
UPDATE whole SET v = 'w';
UPDATE whole SET id = id + 100 WHERE id % 2 = 0;
DELETE FROM whole WHERE id % 5 = 0;
INSERT INTO parted SELECT n, n % 10, 'p' FROM generate_series(1, 30) n;
UPDATE parted SET k = k + 10 WHERE id % 3 = 0;
DELETE FROM parted WHERE id % 4 = 0;
"""
WIDE: Final = """
CREATE TABLE wide AS SELECT * FROM types WHERE false;
ALTER TABLE wide DROP {refused};
ALTER TABLE wide ADD PRIMARY KEY (id);
"""
# the sink fails on these, whoever wrote them: it makes a type with a negative scale
# no table, wants PostGIS, or knows no array of them; Debezium sends no name
REFUSED: Final = (
    *("nneg", "pt", "an", "an52", "ats", "atz", "ad", "aby", "atm", "nm"),
)
# it casts what Avro's converter reads of bits, a buffer, to an array of bytes
_REFUSED_IN_AVRO: Final = ("bt3", "vb")
_KEPT: Final = (
    b"SELECT attname FROM pg_attribute WHERE attrelid = 'wide'::regclass"
    b" AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
NAMES: Final = ("plain", "twofold", "whole", "parted")


@contextmanager
def fed(
    server: PostgresServer,
    kafka: KafkaServer,
    folder: Path,
    registry: LocalRegistry | None = None,
) -> Iterator[tuple[Beside, Database]]:
    """Have both of them stream a database, and one to put tables into."""
    variants = tuple(map(Variant.in_avro, _ENVELOPES)) if registry else _ENVELOPES
    with (
        temporary_database(server) as source,
        temporary_database(server) as target,
        beside(source, kafka, folder, variants, registry=registry) as made,
    ):
        target.execute("CREATE EXTENSION ltree")  # whose type the sink gives a column
        yield made, target


def converters(registry: LocalRegistry | None) -> dict[str, str]:
    """Return what a sink reads Avro by; nothing without a registry."""
    return {
        f"{side}.converter{option}": value
        for side in ("key", "value")
        for option, value in (registry.converter if registry else {}).items()
    }


def topics(made: Beside, names: tuple[str, ...]) -> list[str]:
    return [topic_of(made.name(_ENVELOPES[0]), "public", name) for name in names]


def run(made: Beside, *scripts: str) -> None:
    for statement in chain.from_iterable(map(statements, scripts)):
        made.connection.execute(statement.encode())


@pytest.mark.takes(150)
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_the_jdbc_sink_makes_the_same_tables_of_both(
    newest_postgres: PostgresServer,
    kafka: KafkaServer,
    registry: LocalRegistry,
    tmp_path: Path,
    encoding: str,
) -> None:
    used = registry if encoding == "avro" else None
    with fed(newest_postgres, kafka, tmp_path, used) as (made, target):
        run(made, (FOLDER / "schema.sql").read_text("utf-8"), golden_rows(), TABLES)
        refused = REFUSED if used is None else (*REFUSED, *_REFUSED_IN_AVRO)
        run(made, WIDE.format(refused=", DROP ".join(refused)))
        made.prepare()
        made.start()
        names = (*NAMES, "wide")
        theirs = topics(made, names)
        ours = [f"{OURS}{topic}" for topic in theirs]
        for name, read in (("theirs", theirs), ("ours", ours)):
            sink = jdbc_sink(read, made.connection.info.port, target.name)
            made.connect.put(name, {**sink, **converters(used)})
        kept = ", ".join(column for (column,) in made.connection.execute(_KEPT))
        run(made, CHANGES, f"INSERT INTO wide SELECT {kept} FROM types")  # noqa: S608
        made.settle()
        pairs = [
            (name, their.replace(".", "_"), our.replace(".", "_"))
            for name, their, our in zip(names, theirs, ours, strict=True)
        ]

        def have_all() -> bool:
            """Tell whether both have as many rows as the source, and the same."""
            assert made.connect.runs("theirs")
            assert made.connect.runs("ours")
            return all(
                len(found := rows(target, our)) == len(rows(made.database, name))
                and found == rows(target, their)
                for name, their, our in pairs
            )

        wait_until(have_all, _PATIENCE_S, "the same rows in both")
        for name, their, our in pairs:
            assert definition(target, their) == definition(target, our), name
            if name != "wide":
                assert rows(target, our) == rows(made.database, name), name
        assert len(definition(target, pairs[-1][2])) > 50


def golden_rows() -> str:
    """Return what inserts two ordinary rows of all types."""
    script = (FOLDER / "workload.sql").read_text("utf-8")
    found = [one for one in statements(script) if one.startswith("insert into types")]
    return ";".join(found[:2])


@pytest.mark.takes(150)
def test_flink_reads_the_same_table_of_both(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    with fed(newest_postgres, kafka, tmp_path) as (made, _):
        run(made, TABLES)
        made.prepare()
        made.start()
        run(made, CHANGES)
        made.end()
        (topic,) = topics(made, ("whole",))
        theirs, ours = (
            table_of(kafka.bootstrap, one, ("id INT", "v STRING"), schemas=True)
            for one in (topic, f"{OURS}{topic}")
        )
        source = made.database.fetch("SELECT id::text, v FROM whole")
    assert ours == theirs
    assert sorted(ours) == sorted(source)


@pytest.mark.takes(150)
def test_the_jdbc_sink_reads_avro_of_a_registry(
    newest_postgres: PostgresServer,
    kafka: KafkaServer,
    registry: LocalRegistry,
    runs: Runs,
    topic_prefix: str,
) -> None:
    """Its converter is Apicurio's, as a Debezium user has it; walstream's table."""
    sink = {
        "format": "debezium",
        "encoding": "avro",
        "topic": topic_prefix + "{schema}.{table}",
        "debezium": {"name": "dbz"},
        "registry": {"url": registry.url},
    }
    names = ("plain", "twofold", "whole", "parted")
    with (
        temporary_database(newest_postgres) as source,
        temporary_database(newest_postgres) as target,
        LocalConnect(kafka.bootstrap, converter=CONVERTER) as connect,
    ):
        source.execute(TABLES)
        source.execute("INSERT INTO plain VALUES (5000, 'before', 1.25, now())")
        with runs(source.dsn, sink=sink, source={"backfill": "initial"}) as walstream:
            walstream.until("backfill ended")
            for statement in statements(CHANGES):
                source.execute(statement)
            topics = [f"{topic_prefix}public.{name}" for name in names]
            port = int(conninfo_to_dict(source.dsn)["port"] or 5432)
            settings = jdbc_sink(topics, port, target.name)
            connect.put("avro", {**settings, **converters(registry)})

            def has_all() -> bool:
                assert connect.runs("avro")
                return all(
                    rows(target, topic.replace(".", "_")) == rows(source, name)
                    for name, topic in zip(names, topics, strict=True)
                )

            wait_until(has_all, _PATIENCE_S, "the same rows in both")
            assert walstream.terminate() == 0

"""A real Debezium beside walstream, on the same WAL: the records are the same.

But for the rows of the table in docs/debezium.md, each of which is a rule here. A rule
that explains nothing fails: the table would promise a difference that is none.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from secrets import token_hex

import pytest

from tests.data.debezium.record import FOLDER, statements
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.loads.debezium import RandomLoad
from tests.support.oracles.debezium_records import explained
from tests.support.oracles.debezium_rules import NOT_IN_RECORDS, RULES, documented
from tests.support.programs.debezium import Beside, beside, by_topic
from tests.support.programs.debezium_variant import Variant
from tests.support.servers.apicurio import LocalRegistry
from tests.support.servers.connect import SINK, SOURCE
from tests.support.servers.maven import JarsUnreachable, jars
from walstream.config.sink import KafkaSinkConfig
from walstream.formats.debezium import DebeziumOptions
from walstream.sources.debezium_options import debezium_options

pytestmark = pytest.mark.fault

VARIANTS = (
    Variant(
        DebeziumOptions("dbz", schemas=True, transaction_block=True), truncates=True
    ),
    Variant(
        DebeziumOptions(
            "dstr",
            schemas=True,
            decimal="string",
            time="connect",
            interval="string",
            hstore="map",
            binary="base64",
            unknown=True,
        ),
        truncates=True,
    ),
    Variant(
        DebeziumOptions(
            "ddbl",
            schemas=True,
            decimal="double",
            time="isostring",
            binary="hex",
            unknown=True,
            adjust="avro",
            adjust_fields="avro",
        )
    ),
    Variant(
        DebeziumOptions("dus", time="nanoseconds", binary="base64-url-safe"),
        unwrapped=True,
    ),
    Variant(
        DebeziumOptions(
            "drow",
            schemas=True,
            time="microseconds",
            deletes="rewrite",
            add_fields=("op", "lsn", "source.schema", "source.ts_ms"),
        ),
        unwrapped=True,
    ),
)
# what the documented table speaks of, and the golden workload has none of
MORE_TABLES = """
CREATE TABLE uniq (a int NOT NULL UNIQUE, b text);
CREATE TABLE quoted (id int PRIMARY KEY, q text DEFAULT 'it''s',
  r timestamptz DEFAULT now(), u text DEFAULT 'a' || 'b', n text DEFAULT 'dflt',
  bits bit(3)[], by bytea, times time[], dates date[], hs hstore, f8 float8, f4 real,
  iv interval);
ALTER TABLE quoted ALTER by SET STORAGE external;
CREATE TABLE moved (id int PRIMARY KEY, v text, needed text NOT NULL);
ALTER TABLE moved ALTER v SET STORAGE external, ALTER needed SET STORAGE external;
CREATE TABLE inserted (id int PRIMARY KEY, v text);
ALTER TABLE inserted REPLICA IDENTITY NOTHING;
CREATE TYPE colour AS ENUM ('red');
CREATE TABLE painted (id int PRIMARY KEY, c colour);
CREATE TABLE outside (id int PRIMARY KEY, v text);
"""
MORE = """
BEGIN;
SELECT pg_logical_emit_message(true, 'prefix', 'takes a number');
INSERT INTO outside VALUES (9, 'the second');
COMMIT;
INSERT INTO moved VALUES (1, repeat('v', 9000), repeat('n', 9000));
UPDATE moved SET id = 2;
INSERT INTO inserted VALUES (1, 'a');
INSERT INTO painted VALUES (1, 'red');
ALTER TYPE colour ADD VALUE 'blue';
INSERT /* ddl */ INTO painted VALUES (2, 'blue');
INSERT INTO uniq VALUES (1, 'a'), (2, 'b');
INSERT INTO quoted (id, n, bits, by, times, dates, hs, f8, f4) VALUES (1, NULL,
  '{101,NULL}', decode(repeat('ab', 9000), 'hex'), '{12:00:00.123456}',
  '{infinity,1000-01-01}', 'zz=>1, a=>2, m=>3', 2e-3, 1e-44);
INSERT INTO quoted (id, f8) VALUES (2, 2.0e23), (3, 5.684341886080801e-14);
INSERT INTO quoted (id, f4) VALUES (4, 1.1e10);
UPDATE quoted SET n = 'x' WHERE id = 1;
BEGIN;
INSERT INTO moved VALUES (20, 'v', 'n');
INSERT INTO quoted (id, iv) VALUES (20, '-14:39:45.595046');
INSERT INTO outside VALUES (20, 'a');
INSERT INTO uniq VALUES (20, 'a');
INSERT INTO inserted VALUES (20, 'a');
COMMIT;
SELECT pg_replication_origin_create('elsewhere');
SELECT pg_replication_origin_session_setup('elsewhere');
BEGIN;
SELECT pg_replication_origin_xact_setup('0/12345', '2020-01-01 00:00+00');
INSERT INTO outside VALUES (1, 'from elsewhere');
COMMIT;
SELECT pg_replication_origin_session_reset();
"""
VECTORS = """
CREATE EXTENSION vector;
CREATE TABLE sparse (id int PRIMARY KEY, v sparsevec(99));
"""
MORE_VECTORS = "INSERT INTO sparse VALUES (1, '{1:1,2:2,17:3,33:4}/99')"
MORE_SINCE_17 = "INSERT INTO quoted (id, iv) VALUES (9, 'infinity')"
EXPECTED = {
    "`source.sequence`",
    "`source.version`",
    "header `walstream-position`",
    "header `walstream-source`",
    "header `walstream-era`",
    "headers `__debezium.context.*`",
    "order of `data_collections`",
    "key under REPLICA IDENTITY USING INDEX",
    "key under REPLICA IDENTITY NOTHING",
    "Truncate",
    "timestamp after 294247, `microseconds`",
    "timestamp before 1677 or after 2262, and infinity, `nanoseconds`",
    "fraction of a second of an interval in ISO 8601",
    "labels that were added to an enum",
    "default that is an expression",
    "null in a column with a default",
    "unchanged TOAST value of a row whose key changes",
    "sparsevec",
    "unwrapped delete, `tombstone`",
    "float that has no shortest form before Java 19",
}
"""What random changes may differ by: others explain values that they do not write."""
OF_EXISTING = {
    "`source` of an existing row",
    "existing rows of a partition that is published by its root",
    "existing rows: dates and timestamps before 1582, and infinite dates",
    "existing rows: generated columns",
}
_SCHEMA = ("alter ", "create ", "drop ")
ONE_PARTITION = dict.fromkeys(
    ("nopk", "uniq", "idxid", "inserted"), 1
)  # their keys differ, or there are none: partitions would, too


def run(made: Beside, script: str) -> None:
    """Run statements; both have written all that precedes a schema change."""
    for statement in statements(script):
        if statement.lower().startswith(_SCHEMA):
            made.settle()
        made.connection.execute(statement.encode())


def extensions(database: Database) -> set[str]:
    return {
        name for (name,) in database.fetch("SELECT name FROM pg_available_extensions")
    }


def stream_golden_changes(made: Beside) -> set[str]:
    """Let both write all changes; name the rules that need what is not here."""
    version = made.connection.info.server_version
    has_vectors = "vector" in extensions(made.database)
    optional = {
        "sparsevec": (has_vectors, VECTORS, MORE_VECTORS),
        "infinite interval": (version >= 170000, "", MORE_SINCE_17),
    }
    scripts = [
        ((FOLDER / one).read_text("utf-8")) for one in ("schema.sql", "workload.sql")
    ]
    tables, changes = [scripts[0], MORE_TABLES], [scripts[1], MORE]
    for is_there, created, changed in optional.values():
        if is_there:
            tables.append(created)
            changes.append(changed)
    for statement in chain.from_iterable(map(statements, tables)):
        made.connection.execute(statement.encode())
    if version >= 180000:
        made.prepare(publish_generated_columns="stored")
    else:
        made.prepare()
    made.start()
    for script in changes:
        run(made, script)
    made.end()
    return {name for name, (is_there, *_) in optional.items() if not is_there}


def read_existing_rows(made: Beside) -> None:
    """Let both write all rows that the changes insert, which are there before."""
    tables = ((FOLDER / "schema.sql").read_text("utf-8"), MORE_TABLES)
    for statement in chain.from_iterable(map(statements, tables)):
        made.connection.execute(statement.encode())
    changes = ((FOLDER / "workload.sql").read_text("utf-8"), MORE)
    for statement in chain.from_iterable(map(statements, changes)):
        is_insert = statement.lower().startswith("insert")
        if is_insert and " ddl " not in statement:  # whose columns change
            made.connection.execute(statement.encode())
    made.prepare(slots=False)
    made.start()
    made.end()


@pytest.fixture
def debezium() -> None:
    try:
        jars(*SOURCE, *SINK)
    except JarsUnreachable as error:
        pytest.skip(str(error))


@pytest.fixture
def pair(
    debezium: None,  # noqa: ARG001
    database: Database,
    kafka: KafkaServer,
    tmp_path: Path,
) -> Iterator[Beside]:
    with beside(database, kafka, tmp_path, VARIANTS, partitions=ONE_PARTITION) as made:
        yield made


@pytest.mark.fault_long
@pytest.mark.takes(180)
def test_records_are_those_of_debezium_but_for_the_documented_differences(
    pair: Beside,
) -> None:
    missing = stream_golden_changes(pair) | OF_EXISTING  # of which there are none
    used, others = explained(pair)
    assert not others, "\n".join(map(str, others))
    assert RULES.keys() - used == missing


@pytest.mark.usefixtures("debezium")
@pytest.mark.fault_long
@pytest.mark.takes(70)
def test_records_of_random_changes_are_those_of_debezium(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    random_changes(newest_postgres, kafka, tmp_path, steps=150, schema_changes=6)


@pytest.mark.usefixtures("debezium")
@pytest.mark.fault_long
@pytest.mark.takes(900)
def test_records_of_many_random_changes_are_those_of_debezium(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    random_changes(postgres, kafka, tmp_path, steps=4000, schema_changes=80)


def random_changes(  # noqa: PLR0913 - servers
    server: PostgresServer,
    kafka: KafkaServer,
    folder: Path,
    *,
    steps: int,
    schema_changes: int,
    registry: LocalRegistry | None = None,
) -> None:
    """Compare what both write of them; with a registry in Avro."""
    variants = tuple(map(Variant.in_avro, VARIANTS)) if registry else VARIANTS
    seed = os.environ.get("WALSTREAM_TEST_DEBEZIUM_SEED") or token_hex(4)
    with (
        temporary_database(server) as database,
        beside(database, kafka, folder, variants, registry=registry) as made,
    ):
        load = RandomLoad(made.connection, seed, made.settle)
        load.create()
        made.partitions = dict.fromkeys(load.keyless, 1)
        made.prepare()
        made.start()
        load.run(steps, schema_changes)
        made.end()
        used, others = explained(made)
    assert not others, "\n".join([f"seed {seed}", *map(str, others)])
    assert used <= EXPECTED, f"seed {seed}: {used - EXPECTED}"
    assert sum(len(part) for part in by_topic(made.ours.records).values()) > steps


@pytest.mark.fault_long
@pytest.mark.takes(70)
def test_existing_rows_are_those_of_debeziums_snapshot(pair: Beside) -> None:
    read_existing_rows(pair)
    used, others = explained(pair)
    assert not others, "\n".join(map(str, others))
    assert used >= OF_EXISTING


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.word)
def test_each_variant_is_a_configuration(variant: Variant) -> None:
    """The long tests alone start walstream on it."""
    told = {"kind": "kafka", "producer": {}, **variant.sink("name")}
    sink = KafkaSinkConfig.model_validate(told)
    made = debezium_options(sink, "source", "")
    assert made is not None
    assert replace(made, name=variant.word, version="walstream") == variant.options


def test_each_documented_difference_is_a_rule() -> None:
    assert sorted({*RULES, *NOT_IN_RECORDS}) == sorted(documented())

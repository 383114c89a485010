"""A real Debezium beside walstream, on the same WAL: the records are the same.

But for the rows of the table in docs/debezium.md, each of which is a rule here. A rule
that explains nothing fails: the table would promise a difference that is none.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.debezium.record import FOLDER, statements
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.oracles.debezium_records import explained
from tests.support.oracles.debezium_rules import NOT_IN_RECORDS, RULES, documented
from tests.support.programs.debezium import Beside, Variant, beside
from walstream.formats.debezium import DebeziumOptions

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
  r timestamptz DEFAULT now(), u text DEFAULT 'a' || 'b', n text DEFAULT 'dflt', bits bit(3)[], by bytea,
  times time[], dates date[], hs hstore, f8 float8, f4 real, iv interval);
ALTER TABLE quoted ALTER by SET STORAGE external;
CREATE TABLE outside (id int PRIMARY KEY, v text);
"""
MORE = """
BEGIN;
SELECT pg_logical_emit_message(true, 'prefix', 'takes a number');
INSERT INTO outside VALUES (9, 'the second');
COMMIT;
INSERT INTO uniq VALUES (1, 'a'), (2, 'b');
INSERT INTO quoted (id, n, bits, by, times, dates, hs, f8, f4) VALUES (1, NULL,
  '{101,NULL}', decode(repeat('ab', 9000), 'hex'), '{12:00:00.123456}',
  '{infinity,1000-01-01}', 'zz=>1, a=>2, m=>3', 2e-3, 1e-44);
INSERT INTO quoted (id, f8) VALUES (2, 2.0e23), (3, 5.684341886080801e-14);
INSERT INTO quoted (id, f4) VALUES (4, 1.1e10);
UPDATE quoted SET n = 'x' WHERE id = 1;
SELECT pg_replication_origin_create('elsewhere');
SELECT pg_replication_origin_session_setup('elsewhere');
BEGIN;
SELECT pg_replication_origin_xact_setup('0/12345', '2020-01-01 00:00+00');
INSERT INTO outside VALUES (1, 'from elsewhere');
COMMIT;
SELECT pg_replication_origin_session_reset();
"""
MORE_SINCE_17 = "INSERT INTO quoted (id, iv) VALUES (9, 'infinity')"
_SCHEMA = ("alter ", "create ", "drop ")
_ONE_PARTITION = dict.fromkeys(
    ("nopk", "uniq", "idxid", "transaction", "message"), 1
)  # their keys differ, or there are none: partitions would, too


def run(made: Beside, script: str) -> None:
    """Run statements; both have written all that precedes a schema change."""
    for statement in statements(script):
        if statement.lower().startswith(_SCHEMA):
            made.settle()
        made.connection.execute(statement.encode())


@pytest.fixture
def pair(database: Database, kafka: KafkaServer, tmp_path: Path) -> Iterator[Beside]:
    with beside(database, kafka, tmp_path, VARIANTS, partitions=_ONE_PARTITION) as made:
        yield made


@pytest.mark.fault_long
@pytest.mark.takes(180)
def test_records_are_those_of_debezium_but_for_the_documented_differences(
    pair: Beside,
) -> None:
    made = pair
    version = made.connection.info.server_version
    for script in ((FOLDER / "schema.sql").read_text("utf-8"), MORE_TABLES):
        for statement in statements(script):
            made.connection.execute(statement.encode())
    generated = {"publish_generated_columns": "stored"} if version >= 180000 else {}
    made.prepare(**generated)
    made.start()
    run(made, (FOLDER / "workload.sql").read_text("utf-8"))
    run(made, MORE)
    if version >= 170000:
        run(made, MORE_SINCE_17)
    made.end()
    used, others = explained(made)
    assert not others, "\n".join(map(str, others))
    missing = set() if version >= 170000 else {"infinite interval"}
    assert RULES.keys() - used == missing


def test_each_documented_difference_is_a_rule() -> None:
    assert sorted({*RULES, *NOT_IN_RECORDS}) == sorted(documented())

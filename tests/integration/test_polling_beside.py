"""PostgreSQL streamed, and PostgreSQL and MariaDB polled, in one `walstream run`."""

# ruff: noqa: S608 - SQL of constants

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.mariadb import Mariadb
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.polled_source import Polled, rows_of, sql_source
from tests.support.programs.table_read import postgres_url
from walstream.formats.row import decode

ROWS: Final = 3000
POLLED: Final = 25_000
LIMIT: Final = 12_000  # more than are read without Spark
FEW: Final = 100
LONGEST_S: Final = 150.0
STREAMED: Final = f"""
CREATE TABLE old (id INT PRIMARY KEY, v TEXT);
INSERT INTO old SELECT i, repeat('o', 100) FROM generate_series(1, {ROWS}) i;
CREATE TABLE polled (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL, price NUMERIC(8, 2), tags TEXT[]);
INSERT INTO polled (at, price, tags)
    SELECT '2020-01-02 03:04:05.6+02', 1.5, '{{a,b}}' FROM generate_series(1, {POLLED});
"""


@dataclass(frozen=True)
class Both:
    postgres: Database
    polled: Polled
    drivers: set[int]  # processes that were seen

    def reader_of_rows(self) -> Reader:
        return Reader(self.polled.bootstrap, f"{self.polled.prefix}row.", decode)

    def reader_of_ops(self) -> Reader:
        return Reader(self.polled.bootstrap, f"{self.polled.prefix}op.")

    def count(self, reader: Reader, wanted: int) -> None:
        """Read so many; there is never more than one driver meanwhile."""

        def there(records: list[Record]) -> bool:
            found = self.polled.drivers()
            assert len(found) <= 1
            self.drivers.update(one.pid for one in found)
            return len(records) >= wanted

        reader.until(there, LONGEST_S)
        assert len(reader.read()) == wanted


@pytest.fixture
def both(
    postgres18: PostgresServer,
    mariadb_database: Mariadb,
    kafka: KafkaServer,
    topic_prefix: str,
    tmp_path: Path,
) -> Iterator[Both]:
    for table in ("one", "two"):
        mariadb_database.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v TEXT)")
        mariadb_database.execute(
            f"INSERT INTO {table} SELECT seq, 'v' FROM seq_1_to_{FEW}"
        )
    with temporary_database(postgres18) as database:
        database.execute(STREAMED)
        stream = {
            "kind": "postgres",
            "dsn": database.dsn,
            "slot": database.name,
            "backfill": "never",
            "tables": ["public.old"],
            "sinks": ["ops"],
        }
        tables: dict[str, dict[str, Any]] = {"one": {}, "two": {"fields": ["v"]}}
        polled = Polled(
            postgres_url(database.dsn),
            kafka.bootstrap,
            tmp_path,
            topic_prefix,
            tables={"public.polled": {"limit": LIMIT}},
            source={"poll_interval": "300ms"},
            others={"app": stream, "maria": sql_source(mariadb_database.url, tables)},
            sink={"topic": topic_prefix + "row.{schema}.{table}"},
            other_sinks={
                "ops": {
                    "kind": "kafka",
                    "topic": topic_prefix + "op.{schema}.{table}",
                    "producer": {"bootstrap.servers": kafka.bootstrap},
                }
            },
        )
        try:
            yield Both(database, polled.start(), set())
        finally:
            polled.close()


def test_one_spark_serves_a_backfill_and_the_polls_of_two_other_sources(
    both: Both,
) -> None:
    with both.reader_of_rows() as rows, both.reader_of_ops() as ops:
        both.polled.until("streaming")
        rows.until(lambda records: records, LONGEST_S)
        asked = both.polled.command("backfill", "--source", "app", "public.old")
        assert asked.returncode == 0, asked.stderr
        both.count(ops, ROWS)
        both.count(rows, POLLED + 2 * FEW)
        both.postgres.execute(
            "INSERT INTO old VALUES (0, 'new');"
            "INSERT INTO polled (at, price, tags) VALUES (now(), NULL, NULL)"
        )
        both.count(ops, ROWS + 1)
        both.count(rows, POLLED + 2 * FEW + 1)
        assert len(both.drivers) == 1
        assert both.polled.terminate() == 0

        assert ops.records[-1].new == {"id": "0", "v": "new"}
        assert all(record.op.snapshot for record in ops.records[:-1])
        # the polls went on meanwhile
        assert ops.records[0].timestamp < max(r.timestamp for r in rows.records)

        by_table: dict[tuple[str, str], list[int]] = {}
        for row in rows_of(rows):
            by_table.setdefault((row.name, row.table), []).append(row.data["id"])
        assert {name: sorted(keys) for name, keys in by_table.items()} == {
            ("legacy", "public.polled"): list(range(1, POLLED + 2)),
            ("maria", "one"): list(range(1, FEW + 1)),
            ("maria", "two"): list(range(1, FEW + 1)),
        }
        first = next(row for row in rows_of(rows) if row.table == "public.polled")
        assert first.data == {
            "id": first.data["id"],
            "at": "2020-01-02T01:04:05.600000+00:00",
            "price": "1.50",
            "tags": ["a", "b"],
        }

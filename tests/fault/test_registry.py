"""Schemas change under load, and the registry dies: no record is lost.

A row's number tells what it must be; a stranger reads it by the id in the record.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from confluent_kafka.schema_registry import Schema

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import Walstream
from tests.support.servers.apicurio import LocalRegistry
from tests.support.threads import Writers

pytestmark = [pytest.mark.fault, pytest.mark.same_on_15]

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_STORM_SHORT = 12
_STORM_LONG = 200
_AWAY_SHORT_S = 5.0
_AWAY_LONG_S = 600.0
_PATIENCE_S = 120.0
_INSERT = """
WITH made AS (SELECT nextval('t_id_seq') AS id FROM generate_series(1, %s))
INSERT INTO t (id, v) SELECT id, 'v' || id FROM made
"""
TABLE = """
CREATE TABLE t (id bigserial PRIMARY KEY, v text NOT NULL, n int);
ALTER TABLE t REPLICA IDENTITY FULL;
"""


def raw(value: Any) -> Any:
    return value


class Rows(Writers):
    """Writes rows, and changes some; each has `v` of its number."""

    def __init__(self, dsn: str) -> None:
        super().__init__(*[partial(self._write, dsn, number) for number in range(2)])

    def _write(self, dsn: str, number: int) -> None:
        choose = random.Random(f"{_SEED}/{number}")  # noqa: S311 - a test's load
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not self.leaving.is_set():
                rows = choose.randrange(1, 30)
                connection.execute(_INSERT, (rows,))
                self.transactions += 1
                self.leaving.wait(choose.random() * 0.02)


@contextmanager
def streamed(
    database: Database,
    runs: Runs,
    registry: LocalRegistry,
    prefix: str,
    encoding: str = "avro",
    **told: Any,
) -> Iterator[Walstream]:
    database.execute(TABLE)
    sink = {
        "format": "debezium",
        "encoding": encoding,
        "topic": prefix + "{schema}.{table}",
        "topic_partitions": 3,
        "registry": {"url": registry.url, **told},
    }
    with runs(database.dsn, sink=sink) as walstream:
        walstream.streaming()
        yield walstream
        assert walstream.terminate() == 0


def verify(database: Database, kafka: KafkaServer, url: str, prefix: str) -> int:
    """Compare what was inserted with what a stranger reads; count the schemas."""
    wanted = {row for (row,) in database.fetch("SELECT id FROM t")}
    with (
        RegisteredReader(url) as read,
        Reader(kafka.bootstrap, prefix, raw) as reader,
    ):
        reader.until(lambda found: len(found) >= len(wanted), _PATIENCE_S)
        values = [read.value_of(one)["after"] for one in reader.records]
        keys = [read.read(one.key)["id"] for one in reader.records]
        seen = {one.value[1:5] for one in reader.records}
    assert keys == [row["id"] for row in values]
    assert sorted(keys) == sorted(wanted)  # each once
    assert all(row["v"] == f"v{row['id']}" for row in values)
    return len(seen)


def alterations(choose: random.Random, *, full: bool) -> Iterator[str]:
    """Yield statements, each of which makes another schema that readers can have."""
    added: list[str] = []
    for number in range(10_000):
        kind = choose.choice(["add", "add", "drop", "rename"])
        if kind == "add" or not added:
            added.append(f"c{number}")
            kinds = ["text", "int", "numeric(9, 2)", "timestamptz", "uuid", "int[]"]
            yield f"ALTER TABLE t ADD c{number} {choose.choice(kinds)}"
        elif kind == "drop":
            yield f"ALTER TABLE t DROP {added.pop(choose.randrange(len(added)))}"
        elif full or choose.random() < 0.5:
            former = added.pop(choose.randrange(len(added)))
            added.append(f"r{number}")
            yield f"ALTER TABLE t RENAME {former} TO r{number}"
        else:
            yield "ALTER TABLE t ALTER n TYPE bigint"


def storm(
    database: Database, verified: Callable[[], int], alters: int, *, full: bool
) -> None:
    statements = alterations(random.Random(_SEED), full=full)  # noqa: S311
    with Rows(database.dsn) as rows:
        for _, statement in zip(range(alters), statements, strict=False):
            rows.wait_for_more(3)
            database.execute(statement)
        rows.wait_for_more(3)
    assert verified() > alters / 3


@pytest.mark.parametrize("level", ["BACKWARD", "FULL"])
@pytest.mark.parametrize(
    "alters",
    [
        _STORM_SHORT,
        pytest.param(
            _STORM_LONG, marks=[pytest.mark.fault_long, pytest.mark.takes(300)]
        ),
    ],
)
def test_a_storm_of_changed_columns_loses_nothing(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
    level: str,
    alters: int,
) -> None:
    full = level == "FULL"
    told = {"compatibility": level, "optional": "all" if full else "catalog"}
    with streamed(database, runs, registry, topic_prefix, **told):
        verified = partial(verify, database, kafka, registry.url, topic_prefix)
        storm(database, verified, alters, full=full)


def test_a_storm_with_json_schema_loses_nothing(
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """No level takes both new columns and dropped ones there."""
    told = {"encoding": "json_schema", "compatibility": "NONE"}
    with streamed(database, runs, registry, topic_prefix, **told):
        verified = partial(verify, database, kafka, registry.url, topic_prefix)
        storm(database, verified, _STORM_SHORT, full=False)


@pytest.mark.parametrize(
    "away_s",
    [
        _AWAY_SHORT_S,
        pytest.param(
            _AWAY_LONG_S, marks=[pytest.mark.fault_long, pytest.mark.takes(900)]
        ),
    ],
)
@pytest.mark.parametrize("changes", [False, True], ids=["as it is", "a new column"])
def test_a_registry_that_is_killed_loses_nothing(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
    away_s: float,
    *,
    changes: bool,
) -> None:
    """What it knows flows on meanwhile; a new column waits for it."""
    with streamed(database, runs, own_registry, topic_prefix) as walstream:
        with (
            Reader(kafka.bootstrap, topic_prefix, raw) as reader,
            Rows(database.dsn) as rows,
        ):
            reader.until(bool)
            own_registry.kill()
            if changes:
                database.execute("ALTER TABLE t ADD w int")
                rows.wait_for_more(20)
                walstream.until("waiting for the schema registry")
            known = len(reader.read())
            end = time.monotonic() + away_s
            wait_until(
                lambda: time.monotonic() > end, away_s + 10, "it was away so long"
            )
            walstream.kill()  # what it knows, it knows at the next start, too
            walstream.start()
            walstream.streaming()
            if changes:
                walstream.until("waiting for the schema registry")
            else:
                reader.until(lambda found: len(found) > known)
            own_registry.start()
            if changes:
                walstream.until("the schema registry answers")
            rows.wait_for_more(20)
        # the last transactions have ended, so that the table stands still
        verify(database, kafka, own_registry.url, topic_prefix)


@pytest.mark.fault_long
@pytest.mark.takes(240)
def test_a_registry_that_is_restored_beneath_the_stream_is_noticed(
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """Its ids are those of other schemas by then: records carry the new ones."""
    with (
        streamed(database, runs, own_registry, topic_prefix) as walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        with Rows(database.dsn) as rows:
            reader.until(bool)
            time.sleep(10)  # each of the ids was looked at
            own_registry.anew()
            with RegisteredReader(own_registry.url) as read:
                for number in range(5):
                    text = f'{{"type": "record", "name": "R{number}", "fields": []}}'
                    read.client.register_schema(f"R{number}", Schema(text, "AVRO"))
            walstream.until("the registry has another schema, or none", 120)
            walstream.streaming()
            rows.wait_for_more(20)
        ((last, count),) = database.fetch("SELECT max(id), count(*) FROM t")
        with RegisteredReader(own_registry.url) as read:

            def ids(records: list[Any]) -> set[int]:
                """Return those that the new registry's schemas read, of the last."""
                new = [one for one in records[-3000:] if one.value[4] > 5]
                return {read.value_of(one)["after"]["id"] for one in new}

            reader.until(lambda found: last in ids(found), _PATIENCE_S)
        # those of before are there, too, by ids of before
        assert len({one.key[5:] for one in reader.records}) == count

"""Whole rows for a handler, of tables whose updates leave long values out."""

# ruff: noqa: S608 - SQL of constants

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import psycopg
import pytest

from consumer import (
    AbsentColumn,
    HandlerFailed,
    Op,
    Retry,
    Transaction,
    WholeRowsError,
)
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.programs.consumer_thread import Running
from tests.support.programs.verb import verb
from tests.support.programs.whole_rows import SOURCE, TARGET, consumer, handle

_IDS: Final = 30
_BODY: Final = "%s || '-' || repeat('x', 3000)"
_ROWS: Final = "SELECT id, n, version, body FROM {} ORDER BY id"


class Load:
    """Writes documents until it is closed, in a thread."""

    def __init__(self, database: Database, *, truncates: bool) -> None:
        self._dsn = database.dsn
        self._random = random.Random(5)  # noqa: S311 - a load
        self._truncates = truncates
        self._stopping = threading.Event()
        self._version = 0
        self.done = 0
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._stopping.wait(0.002):
                    with connection.transaction():
                        for _ in range(self._random.randint(1, 4)):
                            self._change(connection)
                    self.done += 1
        except Exception as error:  # noqa: BLE001 - the test raises it
            self._error = error

    def _change(self, connection: psycopg.Connection[Any]) -> None:
        one, version = self._random.randint(1, _IDS), self._version
        self._version += 1
        kind = self._random.choices(
            ("n", "body", "insert", "delete", "key", "again", "truncate"),
            (12, 3, 4, 1, 1, 1, 0.05 if self._truncates else 0),
        )[0]
        row = f"VALUES (%s, 0, %s, {_BODY}) ON CONFLICT DO NOTHING"
        version_set = f"version = %s, body = {_BODY}"
        if kind == "n":
            connection.execute("UPDATE docs SET n = n + 1 WHERE id = %s", (one,))
        elif kind == "body":
            statement = f"UPDATE docs SET {version_set} WHERE id = %s"
            connection.execute(statement, (version, str(version), one))
        elif kind == "key":
            to = self._random.randint(1, _IDS)
            # without its body, that is read from the table, and may be a later one
            connection.execute(
                f"UPDATE docs SET id = %s, {version_set} WHERE id = %s"
                " AND NOT EXISTS (SELECT FROM docs WHERE id = %s)",
                (to, version, str(version), one, to),
            )
        elif kind == "truncate":
            connection.execute("TRUNCATE docs")
        if kind in {"delete", "again"}:
            connection.execute("DELETE FROM docs WHERE id = %s", (one,))
        if kind in {"insert", "again"}:
            connection.execute(f"INSERT INTO docs {row}", (one, version, str(version)))

    def wait_for_more(self, changes: int) -> None:
        wanted = self.done + changes
        wait_until(lambda: self.failed() or self.done >= wanted, 60, "it writes")

    def failed(self) -> bool:
        if self._error is not None:
            raise self._error
        return False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60)
        self.failed()


class Reading:
    """A stream of documents, a target, and how consumers of one group are made."""

    def __init__(
        self, stream: Stream, target: Database, kafka: KafkaServer, prefix: str
    ) -> None:
        self.source, self.target, self.stream = stream.database, target, stream
        self.order: dict[str, Any] = {
            "dsn": target.dsn,
            "group": f"{prefix}group",
            "topics": f"{prefix}public.docs",
            "kafka": {
                "bootstrap.servers": kafka.bootstrap,
                "fetch.wait.max.ms": 10,
                "session.timeout.ms": 6000,
            },
        }

    @contextmanager
    def child(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run one in a process; static membership spares the wait for a dead one."""
        kafka = {**self.order["kafka"], "group.instance.id": "one"}
        order = json.dumps({**self.order, "kafka": kafka})
        command = [sys.executable, "-m", "tests.support.programs.whole_rows", order]
        with subprocess.Popen(command) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def running(self, handler: Any = handle, **options: Any) -> Iterator[Running]:
        with consumer(self.order, handler, **options) as made:
            running = Running(made)
            yield running
        running.join()

    def is_same(self) -> bool:
        expected = self.source.fetch(_ROWS.format("docs"))
        return self.target.fetch(_ROWS.format("copy")) == expected

    def until_same(self, running: Running) -> None:
        def same() -> bool:
            assert running.error is None, running.error
            return self.is_same()

        wait_until(same, 60, "the copy is as the source")

    @property
    def filled(self) -> int:
        (row,) = self.target.fetch("SELECT coalesce(sum(filled), 0) FROM seen")
        return int(row[0])

    def until_filled(self, count: int) -> None:
        wait_until(lambda: self.filled > count, 60, "it fills")


@pytest.fixture
def sink(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of the sink, by the test's parameter."""
    found: dict[str, Any] = getattr(request, "param", {"on_truncate": "send"})
    return found


@pytest.fixture
def reading(
    newest_postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path: Path,
    topic_prefix: str,
    sink: dict[str, Any],
) -> Iterator[Reading]:
    own = dict(sink)
    if "txinfo" in own:
        own["txinfo"] = f"{topic_prefix}told"
    with (
        streamed(
            newest_postgres,
            kafka,
            tmp_path,
            before=SOURCE,
            prefix=topic_prefix,
            sink={"topic_partitions": 3, **own},
            source={"tables": ["public.docs"], "backfill": "initial"},
        ) as stream,
        temporary_database(newest_postgres) as target,
    ):
        target.execute(TARGET)
        made = Reading(stream, target, kafka, topic_prefix)
        if "txinfo" in own:
            made.order["transactions"] = own["txinfo"]
        stream.walstream.until("backfill ended")
        yield made


OP: Final = {"on_truncate": "send"}
DEBEZIUM: Final = {"format": "debezium", "debezium": {"name": "app"}}
WHOLE: Final = {
    **OP,
    "txinfo": "told",
    "txinfo_form": "walstream",
    "resolved": "200ms",
}


@pytest.mark.takes(120)
@pytest.mark.parametrize(
    "sink", [OP, DEBEZIUM, WHOLE], ids=["op", "debezium", "whole"], indirect=True
)
def test_rows_are_whole_though_both_are_killed(
    reading: Reading, sink: dict[str, Any]
) -> None:
    with Load(reading.source, truncates="on_truncate" in sink) as load:
        for cycle in range(4):
            with reading.child() as process:
                load.wait_for_more(60)
                if cycle == 2:
                    reading.stream.walstream.kill()
                    reading.stream.walstream.start().streaming()
                reading.until_filled(cycle * 20)
                assert process.poll() is None
                process.kill()
        with reading.running() as running:
            load.wait_for_more(50)
            if "txinfo" not in sink:
                with reading.running() as second:  # takes some partitions
                    wait_until(second.consumer.lag, 60, "it has some")
                    load.wait_for_more(50)
                    assert second.error is None
            assert running.error is None
    with reading.running() as running:
        reading.until_same(running)
    assert reading.filled > 100
    counts = reading.target.fetch(
        "SELECT count(*), count(DISTINCT (lsn, seq_id)) FROM seen"
    )
    assert counts[0][0] == counts[0][1]
    kept = reading.target.fetch(
        "SELECT count(DISTINCT key) FROM replication_consumer_value WHERE key <> ''"
    )
    assert kept == reading.source.fetch("SELECT count(*) FROM docs")


def insert(reading: Reading, number: int, version: int = 1) -> None:
    reading.source.execute(
        f"INSERT INTO docs VALUES ({number}, 0, {version},"
        f" '{version}-' || repeat('x', 3000))"
    )


def change(reading: Reading, number: int) -> None:
    reading.source.execute(f"UPDATE docs SET n = n + 1 WHERE id = {number}")


def test_values_from_before_it_was_asked_for_are_named_and_a_backfill_brings_them(
    reading: Reading,
) -> None:
    insert(reading, 1)
    with reading.running(whole_rows=None) as running:
        reading.until_same(running)
    change(reading, 1)
    with reading.running() as running:
        error = running.fails(HandlerFailed)
    cause = error.__cause__
    assert isinstance(cause, AbsentColumn)
    assert "public.docs.body" in str(cause)
    assert "walstream backfill public.docs" in str(cause)
    passed: list[Op] = []

    def patient(tx: Transaction, op: Op) -> None:
        if op.new and op.new.absent:
            passed.append(op)
        else:
            handle(tx, op)

    with reading.running(patient) as running:
        wait_until(lambda: passed, 60, "it is passed over")
        verb(reading.stream.walstream.configuration, "backfill", "public.docs")
        reading.until_same(running)
        change(reading, 1)
        reading.until_same(running)
    assert len(passed) == 1
    assert reading.filled == 1


def test_a_table_that_is_added_later_leaves_the_others_as_they_are(
    reading: Reading,
) -> None:
    insert(reading, 1)
    with reading.running() as running:
        reading.until_same(running)
    change(reading, 1)
    more = {"public.docs": ["id"], "public.other": ["a", "b"]}
    with reading.running(whole_rows=more) as running:
        reading.until_same(running)
    change(reading, 1)
    with reading.running() as running:
        reading.until_same(running)
    assert reading.filled == 2


def test_a_column_that_comes_again_under_its_name_is_unknown(reading: Reading) -> None:
    insert(reading, 1)
    with reading.running() as running:
        reading.until_same(running)
        # the values of rewritten rows are in no change
        reading.source.execute(
            "CREATE FUNCTION long() RETURNS text VOLATILE LANGUAGE sql AS"
            " $$ SELECT '1-' || string_agg(md5(random()::text), '')"
            " FROM generate_series(1, 200) $$;"
            "ALTER TABLE docs ADD other int; ALTER TABLE docs DROP body;"
            "ALTER TABLE docs ADD body text DEFAULT long()"
        )
        change(reading, 1)
        error = running.fails(HandlerFailed)
    assert isinstance(error.__cause__, AbsentColumn)


def test_a_column_that_got_the_name_of_another_is_unknown(reading: Reading) -> None:
    """A migration without downtime: fill a new column, drop the old one, rename it."""
    reading.source.execute(
        "ALTER TABLE docs ADD other text, ALTER other SET STORAGE EXTERNAL"
    )
    insert(reading, 1)
    insert(reading, 2)
    with reading.running() as running:
        reading.until_same(running)
        reading.source.execute(
            "UPDATE docs SET n = 1, other = '2-' || repeat('y', 3000) WHERE id = 1"
        )
        reading.until_same(running)
        reading.source.execute(
            "ALTER TABLE docs DROP body; ALTER TABLE docs RENAME other TO body;"
            "UPDATE docs SET version = 2 WHERE id = 1"
        )
        error = running.fails(HandlerFailed)
    assert isinstance(error.__cause__, AbsentColumn)


def test_values_that_were_not_kept_meanwhile_are_not_believed(
    reading: Reading,
) -> None:
    insert(reading, 1)
    with reading.running() as running:
        reading.until_same(running)
        change(reading, 1)
        reading.until_same(running)
    reading.source.execute(
        "UPDATE docs SET version = 2, body = '2-' || repeat('y', 3000)"
    )
    with reading.running(whole_rows=None) as running:
        reading.until_same(running)
    change(reading, 1)
    with reading.running() as running:
        error = running.fails(HandlerFailed)
        assert isinstance(error.__cause__, AbsentColumn)


def test_a_state_that_was_moved_back_by_hand_sees_no_later_values(
    reading: Reading,
) -> None:
    insert(reading, 1)
    change(reading, 1)
    with reading.running() as running:
        reading.until_same(running)
        reading.source.execute(
            "UPDATE docs SET version = 2, body = '2-' || repeat('y', 3000)"
        )
        reading.until_same(running)
    (first,) = reading.target.fetch("SELECT min(lsn)::text FROM seen")
    reading.target.execute(
        f"UPDATE replication_consumer_state SET lsn = '{first[0]}', next_offset = 0;"
        "TRUNCATE seen, copy"
    )
    with reading.running() as running:  # from the second op on
        error = running.fails(HandlerFailed)
    assert isinstance(error.__cause__, AbsentColumn)


def test_a_batch_that_is_cut_or_comes_again_is_filled_as_before(
    reading: Reading,
) -> None:
    for number in range(1, 40):
        insert(reading, number)
    for number in range(1, 40):
        change(reading, number)
    failing = {5, 17}

    def sometimes(tx: Any, op: Any) -> None:
        handle(tx, op)
        if op.new and op.new.get("id", int) in failing and op.new.filled:
            failing.discard(op.new.get("id", int))
            raise Retry

    with reading.running(sometimes) as running:
        reading.until_same(running)
    assert not failing
    assert reading.filled == 39


def test_a_key_that_names_no_rows_stops_before_the_op(reading: Reading) -> None:
    insert(reading, 1)
    reading.source.execute("DELETE FROM docs")
    with reading.running(whole_rows={"public.docs": ["id", "n"]}) as running:
        error = running.fails(HandlerFailed)
    assert isinstance(error.__cause__, WholeRowsError)
    assert "public.docs" in str(error.__cause__)

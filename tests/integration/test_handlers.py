"""Handlers, the sinks that send nothing, and what is too large: by real runs."""

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from tests.integration.test_beside import ask, status
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.spark import HEADER, LSN, Backfill
from tests.support.fixtures.walstream import streamed
from tests.support.oracles.topic_reader import Reader, TopicAdmin, in_order
from tests.support.programs.plugin_package import example, install
from tests.support.programs.walstream import SINK, SOURCE, Walstream
from walstream.config import Config
from walstream.formats.op import decode
from walstream.op import Kind
from walstream.sources.postgres.backfill.task_factory import TaskSnapshot, chunk_task
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkDone

pytestmark = pytest.mark.same_on_15

TABLE = """
CREATE TABLE t (id int PRIMARY KEY, mail text, tenant text, note text, amount numeric);
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t VALUES (1, 'old@x', 'a', 'n', 1.6), (2, 'old@x', 'b', 'n', 2.6);
"""
SECRET = "a secret of some length"  # noqa: S105 - of this test
HANDLERS: list[dict[str, Any]] = [
    {"kind": "drop_columns", "columns": ["note"]},
    {"kind": "mask", "columns": ["id"], "secret": SECRET},
    {"kind": "rename_columns", "columns": {"tenant": "who"}},
    {"kind": "filter", "column": "who", "equals": "a"},
]
WAITING = """

from pathlib import Path

from walstream.errors import Transient


class Waiting:
    def __init__(self, table, options):
        self._path = Path(options["path"])

    def handle(self, op):
        if op.new and op.new[1] == "wait" and not self._path.exists():
            raise Transient("the path is not there yet")
        if op.new and op.new[1] == "bad":
            raise ValueError(op.new[1])
        yield op
"""

RUDE = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


class Rude:
    def __init__(self, table, options):
        self._pool = ProcessPoolExecutor(1, get_context("fork"))

    def handle(self, op):
        print("no line", end="")
        if op.new[1] == "exit":
            sys.exit(2)
        op.new[1] = self._pool.submit(str.upper, op.new[1]).result()
        return [op]
"""


def hashed(text: str) -> str:
    return hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()


def test_ops_and_old_rows_leave_the_handlers_alike(
    postgres18: PostgresServer, kafka: KafkaServer, installed: Path, tmp_path: Path
) -> None:
    signal = tmp_path / "go"
    entries = "round = own_handler:Rounded\nwaits = own_handler:Waiting"
    install(installed, "walstream.handlers", entries, example("own_handler") + WAITING)
    own = [
        {"kind": "round", "options": {"column": "amount"}},
        {"kind": "waits", "options": {"path": str(signal)}},
    ]
    with streamed(
        postgres18,
        kafka,
        tmp_path / "run",
        before=TABLE,
        sink={"handlers": HANDLERS + own},
    ) as stream:
        walstream, database = stream.walstream, stream.database
        database.execute("INSERT INTO t VALUES (3, 'm', 'b', 'n', 3.6)")
        database.execute("UPDATE t SET tenant = 'a' WHERE id = 3")
        database.execute("UPDATE t SET mail = 'n' WHERE id = 3")
        database.execute("INSERT INTO t VALUES (4, 'bad', 'a', 'n', 1)")
        database.execute("UPDATE t SET tenant = 'b' WHERE id = 3")
        records = in_order(stream.reader.count(3))
        assert [r.kind for r in records] == [Kind.INSERT, Kind.UPDATE, Kind.DELETE]
        database.execute("INSERT INTO t VALUES (5, 'wait', 'a', 'n', 5.4)")
        database.execute("INSERT INTO t VALUES (6, 'm', 'a', 'n', 6.4)")
        walstream.until("the path is not there yet")
        stream.reader.count(3)
        signal.touch()
        records = in_order(stream.reader.count(5))
        assert records[0].new == {
            "id": hashed("3"),
            "mail": "m",
            "who": "a",
            "amount": "4",
        }
        assert records[2].old["amount"] == "4"
        assert [record.new["mail"] for record in records[3:]] == ["wait", "m"]
        assert {record.key for record in records[:3]} == {f'["{hashed("3")}"]'.encode()}
        (skip,) = walstream.said("op is skipped")
        assert skip["table"] == "public.t"
        assert "bad" not in str(skip)
        ask(walstream, "public.t")
        beside = [
            r for r in stream.reader.until(lambda read: len(read) >= 8) if r.op.snapshot
        ]
        assert {r.new["id"] for r in beside} == {hashed(key) for key in "156"}

        def counted() -> bool:
            sink = status(walstream)["sources"][0]["sinks"][0]
            counts = {"skipped": 3, "failed": 2}  # beside the stream one more of each
            return bool(sink["tables"] == {"public.t": counts})

        wait_until(counted, 10, "the counts are told")
        assert walstream.terminate() == 0
        (sink,) = status(walstream)["sources"][0]["sinks"]
        assert sink["failed"] == 2  # it is kept


def test_a_handler_that_prints_leaves_and_forks_breaks_nothing(
    postgres18: PostgresServer, kafka: KafkaServer, installed: Path, tmp_path: Path
) -> None:
    """The process of its pool lives on when the worker is killed."""
    install(installed, "walstream.handlers", "rude = rude_handler:Rude", RUDE)
    with streamed(
        postgres18,
        kafka,
        tmp_path / "run",
        before="CREATE TABLE t (id int PRIMARY KEY, v text)",
        sink={"handlers": [{"kind": "rude"}]},
    ) as stream:
        walstream, database = stream.walstream, stream.database
        database.execute("INSERT INTO t VALUES (1, 'a'), (2, 'exit'), (3, 'b')")
        records = in_order(stream.reader.count(2))
        assert [record.new["v"] for record in records] == ["A", "B"]

        def counted() -> bool:
            sink = status(walstream)["sources"][0]["sinks"][0]
            return bool(sink["failed"] == 1)

        wait_until(counted, 10, "its reports arrive")
        # a pool flushes what was printed: the next line of the log begins with it
        assert walstream.text.count("handler 'rude': SystemExit") == 1
        worker = psutil.Process(walstream.worker_pid())
        (left,) = worker.children()
        try:
            worker.kill()
            walstream.until_said("streaming", 2)
            assert left.is_running()
            database.execute("INSERT INTO t VALUES (4, 'c')")
            stream.reader.until(lambda read: read[-1].new["v"] == "C")
            assert walstream.terminate() == 0
        finally:
            left.kill()
        assert not walstream.said("in use")


def test_what_handlers_cannot_do_stops_the_start(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    sink = {"handlers": [{"kind": "filter", "column": "v", "equals": "a"}]}
    with temporary_database(postgres18) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        walstream = Walstream(database.dsn, kafka.bootstrap, tmp_path, "x.", sink=sink)
        walstream.start().ends_with(2, "would be unknown", "REPLICA IDENTITY FULL;")
        walstream.close()


def test_what_is_too_large_is_parked_and_a_delete_has_a_tombstone(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    prefix = f"large_{tmp_path.name}."
    admin = TopicAdmin(kafka.bootstrap)
    admin.create(f"{prefix}public.t", 2, **{"max.message.bytes": "4000"})
    with streamed(
        postgres18,
        kafka,
        tmp_path,
        prefix=prefix,
        before="CREATE TABLE t (id int PRIMARY KEY, v text)",
        sink={"on_too_large": f"{prefix}parked", "tombstones": True},
        decode=lambda value: value and json.loads(value),
    ) as stream:
        database, walstream = stream.database, stream.walstream
        database.execute(
            "INSERT INTO t VALUES (1, 'a');"
            " INSERT INTO t SELECT 2, string_agg(i::text, ' ') FROM"
            " generate_series(1, 2000) AS i; DELETE FROM t WHERE id = 1"
        )
        records = stream.reader.count(4)
        (parked,) = [record for record in records if record.topic.endswith("parked")]
        document = cast("dict[str, Any]", parked.op)
        assert parked.key == b'["2"]'
        assert (document["table"], document["seq_id"]) == ("public.t", 1)
        assert document["size"] > document["limit"] == 4000
        mine = [record for record in records if record.key == b'["1"]']
        assert [record.value is None for record in mine] == [False, False, True]
        assert len({record.partition for record in mine}) == 1

        def red() -> bool:
            (source,) = status(walstream)["sources"]
            return any("parked 1 record" in one for one in source["problems"])

        wait_until(red, 10, "it is red")
        ask(walstream, "public.t")  # what is too large is so beside the stream, too
        stream.reader.until(
            lambda read: sum(r.topic.endswith("parked") for r in read) == 2
        )


def run_here(backfill: Backfill, *tables: str) -> list[ChunkDone]:
    """Do what Spark's tasks do, in this process."""
    with backfill.holding() as snapshot:
        planned = backfill.plan(*tables)
        task = backfill.task(snapshot, planned, elsewhere=False)
        outcomes = [task(chunk) for chunk in planned]
    assert all(isinstance(one, ChunkDone) for one in outcomes), outcomes
    return cast("list[ChunkDone]", outcomes)


def test_a_backfills_rows_leave_the_handlers_as_streamed_ones(
    database: Database, backfills: Callable[..., Backfill], reader: Reader
) -> None:
    database.execute(TABLE)
    (done,) = run_here(
        backfills(database.dsn, sink={"handlers": HANDLERS}, publications=()),
        "public.t",
    )
    (record,) = reader.count(1)
    assert record.new == {
        "id": hashed("1"),
        "mail": "old@x",
        "who": "a",
        "amount": "1.6",
    }
    assert record.key == f'["{hashed("1")}"]'.encode()
    assert record.op.seq_id == 1 << 32
    assert done.rows == 2
    assert done.tallies["k"].document() == {"public.t": {"skipped": 1}}


def test_a_backfills_row_that_is_too_large_is_parked(
    database: Database,
    backfills: Callable[..., Backfill],
    topic_prefix: str,
    kafka: KafkaServer,
) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text);"
        " INSERT INTO t VALUES (1, 'a'), (2, repeat('x', 9000)), (3, 'c')"
    )
    parking = f"parked.{topic_prefix}"
    backfill = backfills(
        database.dsn,
        sink={"on_too_large": parking},
        publications=(),
        topic_config={"max_message_bytes": "4000"},
    )
    backfill._create(parking)  # noqa: SLF001 - as the stream's sink does
    (done,) = run_here(backfill, "public.t")
    assert done.tallies["k"].document() == {"public.t": {"parked": 1}}
    with Reader(kafka.bootstrap, parking, json.loads) as reader:
        (record,) = reader.count(1)
    assert cast("dict[str, Any]", record.op)["seq_id"] == (1 << 32) + 1
    with Reader(kafka.bootstrap, topic_prefix, decode) as reader:
        assert len(reader.count(2)) == 2


@dataclass
class Dry(Walstream):
    """One whose sink sends nothing."""

    def document(self) -> dict[str, Any]:
        document = super().document()
        del document["sinks"][SINK]["producer"]
        return document


def test_the_sink_log_prints_a_line_an_op(
    postgres18: PostgresServer, tmp_path: Path
) -> None:
    with temporary_database(postgres18) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        sink = {"kind": "log", "verbose": True}
        with Dry(
            database.dsn,
            "",
            tmp_path,
            "",
            source={"verbose": True},
            sink=sink,
        ) as walstream:
            database.execute("INSERT INTO t VALUES (1, 's3cret'), (2, 'b')")

            def ops() -> list[dict[str, Any]]:
                return [one for one in walstream.said("insert") if "seq_id" in one]

            wait_until(lambda: len(ops()) == 6, 10, "each op is said three times")
            lines = [line for line in ops() if "topic" in line]
            assert [line["seq_id"] for line in lines] == [0, 1]
            assert {line["topic"] for line in lines} == {"public.t"}
            plain = [line for line in ops() if "sink" not in line]
            assert [(line["source"], line["seq_id"]) for line in plain] == [
                (SOURCE, 0),
                (SOURCE, 1),
            ]
            assert "s3cret" not in walstream.text
            position = "SELECT confirmed_flush_lsn FROM pg_replication_slots"
            before = database.fetch(f"{position} WHERE slot_name = %s", walstream.slot)
            assert walstream.terminate() == 0
            after = database.fetch(f"{position} WHERE slot_name = %s", walstream.slot)
            assert after >= before


def test_a_backfill_into_a_dry_sink_reads_and_encodes(database: Database) -> None:
    database.execute(TABLE)
    config = Config.model_validate(
        {
            "sources": {
                "app": {"kind": "postgres", "dsn": database.dsn, "sinks": ["dry"]}
            },
            "sinks": {"dry": {"kind": "discard", "handlers": HANDLERS}},
        }
    )
    backfill = Backfill(database.dsn, "", "", publications=())
    with backfill.holding() as snapshot:
        (chunk,) = backfill.plan("public.t")
        where = TaskSnapshot(snapshot, LSN, HEADER)
        done = chunk_task(config, "app", where, {"dry": {}}, Leash.of_this_process())(
            chunk
        )
    assert isinstance(done, ChunkDone)
    assert (done.rows, done.bytes > 100) == (2, True)
    assert done.tallies["dry"].skipped == {"public.t": 1}


@dataclass
class Both(Walstream):
    """One that feeds Kafka and the log."""

    def document(self) -> dict[str, Any]:
        document = super().document()
        document["sources"][SOURCE]["sinks"] = [SINK, "log"]
        document["sinks"]["log"] = {"kind": "log", "handlers": HANDLERS[:1]}
        return document


@pytest.mark.fault_long
def test_a_first_run_backfills_through_the_handlers_of_all_sinks(
    postgres18: PostgresServer, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    with (
        temporary_database(postgres18) as database,
        Reader(kafka.bootstrap, topic_prefix) as reader,
    ):
        database.execute(TABLE)
        walstream = Both(
            database.dsn,
            kafka.bootstrap,
            tmp_path,
            topic_prefix,
            source={"backfill": "initial"},
            sink={"handlers": HANDLERS},
        )
        with walstream:
            (record,) = reader.count(1)
            assert record.new["id"] == hashed("1")
            (line,) = walstream.said("ops of a backfill")
            assert (line["sink"], line["rows"]) == ("log", 2)
            database.execute("INSERT INTO t VALUES (3, 'm', 'a', 'n', 1)")
            reader.count(2)
            wait_until(lambda: walstream.said("insert"), 10, "it is in the log")

            def counted() -> bool:
                sinks = status(walstream)["sources"][0]["sinks"]
                skipped = {sink["name"]: sink["skipped"] for sink in sinks}
                return bool(skipped == {SINK: 1, "log": 0})

            wait_until(counted, 10, "what the tasks skipped is told")
            assert walstream.terminate() == 0

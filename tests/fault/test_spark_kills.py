"""Spark's processes killed: a worker is replaced; without driver nothing runs."""

# ruff: noqa: S608 - SQL of constants

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.spark import Backfill
from tests.support.oracles.topic_reader import Reader
from walstream.op import Table
from walstream.sources.postgres.backfill.chunk import Chunk, ChunkRelation, PageRange
from walstream.spark.jobs import run
from walstream.spark.outcome import ChunkDone, ChunkPostponed
from walstream.spark.session import SparkRuntime

pytestmark = pytest.mark.fault
ROWS = 4000
TABLE = f"""
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t SELECT i, repeat('v', 100) FROM generate_series(1, {ROWS}) i;
CREATE PUBLICATION walstream FOR ALL TABLES;
"""
DEADLY = ChunkRelation("s", "deadly", 1, Table("s", "deadly", ("a",)))


@pytest.fixture
def full(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as database:
        database.execute(TABLE)
        yield database


@contextmanager
def driver(**order: Any) -> Iterator["subprocess.Popen[str]"]:
    """Start a driver of its own; none of its processes outlives the test."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.programs.spark_driver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"master": "local[2,4]", **order}) + "\n")
    process.stdin.flush()
    try:
        yield process
    finally:
        family = []
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate()
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()


def heard(process: "subprocess.Popen[str]", word: str) -> str:
    """Read on until a line begins with the word; give its rest."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.split()[0] == word:
            return line.removeprefix(word).strip()
    raise AssertionError(f"it never said {word!r}")


def is_python_worker(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):  # one ended since the list
        return False


def gone(processes: list[psutil.Process]) -> bool:
    return not any(map(_lives, processes))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two
        return False


def test_a_killed_worker_is_replaced_and_its_chunk_repeated(
    full: Database,
    spark: SparkRuntime,
    backfills: Callable[..., Backfill],
    reader: Reader,
    tmp_path: Path,
) -> None:
    backfill = backfills(full.dsn, partitions=1)
    died = str(tmp_path / "died")
    done: list[ChunkDone] = []
    with backfill.holding() as snapshot:
        planned = backfill.plan("public.t", chunk_bytes=100_000)
        task = backfill.task(snapshot, planned)

        def dying(chunk: Chunk) -> Any:
            import os  # noqa: PLC0415 - runs in a worker
            import signal  # noqa: PLC0415 - likewise

            outcome = task(chunk)
            if chunk.number == 2 and not os.path.exists(died):  # noqa: PTH110 - likewise
                os.mkdir(died)  # noqa: PTH102 - likewise
                os.kill(os.getpid(), signal.SIGKILL)
            return outcome

        run(spark, planned, dying, done.append)
    assert Path(died).exists()
    assert sorted(one.number for one in done) == [chunk.number for chunk in planned]
    second = next(one for one in done if one.number == 2)
    records = reader.count(ROWS + second.rows)
    for one in done:
        mine = [r.op.seq_id for r in records if r.op.seq_id >> 32 == one.number]
        each = [(one.number << 32) + index for index in range(one.rows)]
        assert mine == each * (2 if one is second else 1)


def test_a_chunk_whose_worker_always_dies_is_named(spark: SparkRuntime) -> None:
    def dying(chunk: Chunk) -> Any:
        import os  # noqa: PLC0415 - runs in a worker

        if chunk.number == 2:
            os.abort()
        return ChunkDone(chunk.number, 0, 0)

    planned = [
        Chunk(number, DEADLY, PageRange(number, number + 1)) for number in (1, 2, 3)
    ]
    with pytest.raises(Exception, match='chunk 2: table "s') as failed:
        run(spark, planned, dying, lambda _done: None)
    assert "exited unexpectedly" in str(failed.value)


def test_a_chunk_without_an_order_is_not_read_again_by_spark(
    spark: SparkRuntime, tmp_path: Path
) -> None:
    """A second attempt of the same numbers would give them to other rows."""
    reads = tmp_path / "reads"

    def dying(chunk: Chunk) -> Any:
        import os  # noqa: PLC0415 - runs in a worker

        with reads.open("a") as file:
            file.write("read\n")
        os.kill(os.getpid(), 9)
        return ChunkDone(chunk.number, 0, 0)

    told: list[Any] = []
    run(spark, [Chunk(7, DEADLY, None)], dying, told.append)
    (outcome,) = told
    assert isinstance(outcome, ChunkPostponed)
    assert outcome.died
    assert "chunk 7" in str(outcome.error)
    assert reads.read_text() == "read\n"


def test_nothing_outlives_a_killed_driver(
    full: Database, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    lock = tmp_path / "spark.lock"
    with (
        driver(
            dsn=full.dsn,
            bootstrap=kafka.bootstrap,
            prefix=topic_prefix,
            table="public.t",
            chunk_bytes=8192,
            pause_s=0.2,
            lock=str(lock),
        ) as process,
        Reader(kafka.bootstrap, topic_prefix) as reader,
    ):
        heard(process, "done")
        family = psutil.Process(process.pid).children(recursive=True)
        assert sum(is_python_worker(one) for one in family) > 1
        process.kill()
        process.wait()
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # as a next start does
            ends = reader.ends()
        wait_until(lambda: gone(family), 20, "its JVM and Python workers end")
        assert reader.ends() == ends < ROWS


@pytest.mark.fault_long
def test_a_killed_jvm_is_one_clear_error(
    full: Database, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    with driver(
        dsn=full.dsn,
        bootstrap=kafka.bootstrap,
        prefix=topic_prefix,
        table="public.t",
        chunk_bytes=8192,
        pause_s=0.2,
        lock=str(tmp_path / "spark.lock"),
    ) as process:
        jvm = int(heard(process, "jvm"))
        heard(process, "done")
        family = psutil.Process(process.pid).children(recursive=True)
        os.kill(jvm, signal.SIGKILL)
        began = time.monotonic()
        said = heard(process, "error")
        assert said.startswith("Spark is gone: its Java process ended")
        assert process.wait(20) == 5
        assert time.monotonic() - began < 20
        wait_until(lambda: gone(family), 10, "its Python workers end")

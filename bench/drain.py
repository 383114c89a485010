"""A backlog, and how long each reader takes to drain it."""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from walstream.local import LocalKafka, LocalPostgres

_TABLE = (
    "CREATE TABLE backlog (id bigint PRIMARY KEY, a int, note text, at timestamptz,"
    " amount numeric, name text)"
)
_CONFIRMED = (
    "SELECT confirmed_flush_lsn >= '{end}' FROM pg_replication_slots"
    " WHERE slot_name = 'walstream{run}'"
)
_WRITE = """
DO $$ BEGIN FOR i IN 0..{last} LOOP
  INSERT INTO backlog SELECT i::bigint * {size} + j, j,
    'some text of about forty characters, yes', now(), j * 1.25, 'name ' || j
  FROM generate_series(1, {size}) j;
  COMMIT;
END LOOP; END $$
"""


@dataclass
class Figure:
    rows_per_s: float
    cpu_us_per_row: float
    rss_mb: float


class Backlog:
    """Rows that were committed after the slots were made."""

    def __init__(self, postgres: LocalPostgres, rows: int, size: int) -> None:
        self.postgres = postgres
        self.rows = rows
        self._size = size
        self.end = ""  # LSN behind the last row

    def sql(self, query: str) -> str:
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as connection:
            cursor = connection.execute(query)
            row = cursor.fetchone() if cursor.description else None
        return str(row[0]) if row else ""

    def write(self, slots: int) -> None:
        """Write the rows; one slot of pg_recvlogical's for each run is made before."""
        for run in range(slots):
            self.sql(f"SELECT pg_create_logical_replication_slot('l{run}', 'pgoutput')")
        last = self.rows // self._size - 1
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute(_WRITE.format(last=last, size=self._size))
        # the insert position: without synchronous commit the written one lags behind
        self.end = self.sql("SELECT pg_current_wal_insert_lsn()")
        self.sql("CHECKPOINT")  # flushed, and out of the way of what is measured


def limit(backlog: Backlog, run: int) -> Figure:
    """Let pg_recvlogical read the backlog into nothing."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [
            backlog.postgres.binaries / "pg_recvlogical",
            *("-d", backlog.postgres.dsn(), "--slot", f"l{run}", "--start"),
            *("-f", "/dev/null", "-o", "proto_version=1", "--no-loop"),
            *("-o", "publication_names=walstream", "--endpos", backlog.end),
        ]
    )
    usage = _wait(process)
    elapsed = time.perf_counter() - began
    return Figure(backlog.rows / elapsed, usage * 1e6 / backlog.rows, 0.0)


def _wait(process: "subprocess.Popen[bytes]") -> float:
    """Wait for the end; give the CPU seconds."""
    seen = 0.0
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            seen = sum(watched.cpu_times()[:2])
        except psutil.NoSuchProcess:
            break
        time.sleep(0.01)
    if process.wait():
        raise SystemExit("pg_recvlogical failed")
    return seen


class _Walstream:
    """Drains a copy of the backlog's slot for each run, by the real command."""

    def begin(self, postgres: LocalPostgres, kafka: LocalKafka, runs: int) -> int:
        """Make the slots, each by a first start of its own; give their number."""
        self._folder = Path(tempfile.mkdtemp(prefix="walstream-bench-"))
        self._bootstrap = kafka.bootstrap
        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            connection.execute(_TABLE)
        for run in range(runs):
            process = self._start(postgres, run)
            self._until_streaming(run)
            process.terminate()
            process.wait()
        return runs

    def _start(self, postgres: LocalPostgres, run: int) -> "subprocess.Popen[bytes]":
        configuration = self._folder / f"run{run}.toml"
        configuration.write_text(f"""
state = "{self._folder}/state{run}"
[sources.bench]
kind = "postgres"
dsn = "{postgres.dsn()}"
slot = "walstream{run}"
backfill = "never"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
topic = "run{run}.{{schema}}.{{table}}"
[sinks.kafka.producer]
"bootstrap.servers" = "{self._bootstrap}"
""")
        command = Path(sys.executable).with_name("walstream")
        with self._log(run).open("wb") as log:
            return subprocess.Popen([command, "run", "-c", configuration], stderr=log)

    def _log(self, run: int) -> Path:
        return self._folder / f"run{run}.log"

    def _until_streaming(self, run: int) -> None:
        deadline = time.monotonic() + 60
        while '"streaming"' not in self._log(run).read_text():
            if time.monotonic() > deadline:
                raise SystemExit(self._log(run).read_text())
            time.sleep(0.005)

    def drain(self, backlog: Backlog, run: int) -> Figure:
        """Run until all is delivered and confirmed; count what Kafka holds."""
        process = self._start(backlog.postgres, run)
        self._until_streaming(run)
        began = time.perf_counter()
        root = psutil.Process(process.pid)
        query = _CONFIRMED.format(end=backlog.end, run=run)
        rss = 0
        while backlog.sql(query) != "True":
            family = [root, *root.children(recursive=True)]
            rss = max(rss, sum(member.memory_info().rss for member in family))
            time.sleep(0.02)
        elapsed = time.perf_counter() - began
        family = [root, *root.children(recursive=True)]
        cpu = sum(sum(member.cpu_times()[:2]) for member in family)
        process.terminate()
        process.wait()
        self._check(backlog, run)
        return Figure(backlog.rows / elapsed, cpu * 1e6 / backlog.rows, rss / 1e6)

    def _check(self, backlog: Backlog, run: int) -> None:
        """Refuse a fast run that lost a row."""
        from walstream.kafka.reader import TopicReader  # noqa: PLC0415 - after the run

        reader = TopicReader({"bootstrap.servers": self._bootstrap})
        bounds = reader.bounds([f"run{run}.public.backlog"])
        held = sum(bound.end - bound.first for bound in bounds.values())
        reader.close()
        if held != backlog.rows:
            raise SystemExit(f"{backlog.rows} rows were written, Kafka holds {held}")


walstream = _Walstream()

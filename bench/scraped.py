"""`python -m bench.scraped`: latency while /metrics is scraped, and while it is not.

An open loop writes one-row transactions at a fixed rate to one stream, in windows: in
every other one a process of its own scrapes /metrics ten times a second. How long after
its INSERT each row is received counts; the windows of a kind count together.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from rich.console import Console
from rich.table import Table

from bench.open_loop import TABLE, Receiver, p99, receiving, save, wait, write
from bench.programs import COMMAND
from bench.watch import Program
from walstream.testing.servers import LocalKafka, LocalPostgres
from walstream.testing.servers.port import free_port

_GOAL: Final = 1.1
_PER_S: Final = 10
_NAME: Final = "scraped"
_WITHOUT, _WITH = "without", "with"


@dataclass
class Windows:
    """One stream, and what was received in the windows of each kind."""

    databases: list[Any]  # connections of the writers
    receiver: Receiver
    port: int
    rate: int
    rows: int = 0
    seconds: dict[str, list[float]] = field(
        default_factory=lambda: {_WITHOUT: [], _WITH: []}
    )
    scrapes: list[int] = field(default_factory=list)  # in each window that had any

    def add(self, kind: str, seconds: int) -> None:
        """Write for so long, and wait until all of it was received."""
        numbers = range(self.rows, self.rows + self.rate * seconds)
        self.rows = numbers.stop
        if kind == _WITH:
            with scraping(self.port) as counts:
                self._write(numbers)
            self.scrapes += counts
            if counts[0] < _PER_S * seconds * 0.9:
                raise SystemExit(f"only {counts[0]} scrapes in {seconds} s: void")
        else:
            self._write(numbers)
        wait(partial(self.receiver.has, self.rows), "all is received")
        received = self.receiver.seconds
        self.seconds[kind] += [received[str(number)] for number in numbers]

    def _write(self, numbers: range) -> None:
        """Share the rows out: one connection alone waits for each commit."""
        most = len(self.databases)
        with ThreadPoolExecutor(most) as pool:
            written = [
                pool.submit(write, database, self.rate / most, numbers[first::most])
                for first, database in enumerate(self.databases)
            ]
            for one in written:
                one.result()


def scrape(port: int, told: Connection) -> None:
    """Scrape until told to end; tell how often."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    told.send("ready")
    count, began = 0, time.monotonic()
    while not told.poll(max(0.0, began + count / _PER_S - time.monotonic())):
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"/metrics answers {answer.status}")
        count += 1
    told.send(count)


@contextmanager
def scraping(port: int) -> Iterator[list[int]]:
    """Scrape from another process: a scraper is no part of what is measured."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=scrape, args=(port, theirs))
    process.start()
    counts: list[int] = []
    ours.recv()
    try:
        yield counts
        ours.send("end")
        counts.append(ours.recv())
    finally:
        process.join(10)
        process.kill()


def configure(postgres: LocalPostgres, kafka: LocalKafka, folder: Path) -> int:
    """Write walstream.toml; give the port of its HTTP."""
    port = free_port()
    text = f"""
state = "{folder}/state"
[http]
listen = "127.0.0.1:{port}"
[sources.bench]
kind = "postgres"
dsn = "{postgres.dsn(_NAME)}"
slot = "{_NAME}"
backfill = "never"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
topic = "{_NAME}.{{table}}"
[sinks.kafka.producer]
"bootstrap.servers" = "{kafka.bootstrap}"
"""
    (folder / "walstream.toml").write_text(text)
    return port


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scraped")
    parser.add_argument("--rate", type=int, default=1000, help="transactions a second")
    parser.add_argument("--writers", type=int, default=8, help="connections")
    parser.add_argument("--seconds", type=int, default=20, help="length of a window")
    parser.add_argument("--rounds", type=int, default=3, help="windows of each kind")
    parser.add_argument("--tables", type=int, default=100, help="tables in /metrics")
    wanted = parser.parse_args()
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="walstream-bench-"))
    console.print(f"logs in {folder}")
    with LocalPostgres() as postgres, LocalKafka() as kafka:
        windows = measure(postgres, kafka, folder, wanted)
    found = {
        kind: {"p50": statistics.median(one), "p99": p99(one), "max": max(one)}
        for kind, one in windows.seconds.items()
    }
    shown = Table("/metrics is scraped", "p50 ms", "p99 ms", "max ms")
    for kind, one in found.items():
        shown.add_row(kind, *(f"{figure * 1e3:.1f}" for figure in one.values()))
    console.print(shown)
    ratio = found[_WITH]["p99"] / found[_WITHOUT]["p99"]
    met = "met" if ratio <= _GOAL else "not met"
    console.print(f"p99 with / without {ratio:.2f} (goal {_GOAL}: {met})")
    document = {"wanted": vars(wanted), "scrapes": windows.scrapes, "ratio": ratio}
    console.print(f"written to {save(_NAME, {**document, 'runs': found})}")


def measure(
    postgres: LocalPostgres,
    kafka: LocalKafka,
    folder: Path,
    wanted: argparse.Namespace,
) -> Windows:
    """Run once, with windows of both kinds in turn."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {_NAME}")
    port = configure(postgres, kafka, folder)
    command = (COMMAND, "run", "-c", folder / "walstream.toml")
    with ExitStack() as stack, receiving(kafka.bootstrap, f"{_NAME}.t") as receiver:
        databases = [
            stack.enter_context(psycopg.connect(postgres.dsn(_NAME), autocommit=True))
            for _ in range(wanted.writers)
        ]
        database = databases[0]
        database.execute(TABLE)
        create = sql.SQL("CREATE TABLE {} (id int PRIMARY KEY)")
        for number in range(wanted.tables):
            database.execute(create.format(sql.Identifier(f"t{number}")))
        with Program(command, folder / "walstream.log") as program:
            insert = sql.SQL("INSERT INTO {} VALUES (1)")
            wait(lambda: "streaming" in program.log_text(), "it streams")
            for number in range(wanted.tables):
                database.execute(insert.format(sql.Identifier(f"t{number}")))
            windows = Windows(databases, receiver, port, wanted.rate)
            windows.add(_WITHOUT, 3)  # what is cold is not counted
            windows.seconds[_WITHOUT].clear()
            for number in range(wanted.rounds):
                kinds = (_WITHOUT, _WITH) if number % 2 == 0 else (_WITH, _WITHOUT)
                for kind in kinds:
                    windows.add(kind, wanted.seconds)
    return windows


if __name__ == "__main__":
    main()

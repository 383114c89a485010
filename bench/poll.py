"""`python -m bench.poll`: a table of MariaDB that is polled, beside a bare loop.

Both read the same rows by the same driver, hash them and produce the same records to
the same broker. walstream is asked when its Spark runs already, which a first row
brought; what that start took stands apart. Then it polls and finds nothing, and what
that costs is counted. Ratios count, since machines are noisy.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql
from confluent_kafka import Consumer, TopicPartition
from rich.console import Console

from bench.results import save
from bench.shown import show
from bench.watch import Figure, Program, Topic
from walstream.formats.row import decode
from walstream.kafka.bulk_producer import BULK
from walstream.kafka.producer_config import producer_properties
from walstream.state import control
from walstream.state.control_message import PollRequest
from walstream.testing.servers import LocalKafka, LocalMariadb

_DATABASE: Final = "bench"
_COLUMNS: Final = (
    "id BIGINT PRIMARY KEY, a INT, note VARCHAR(200), at DATETIME(6),"
    " amount DECIMAL(12, 2), name VARCHAR(100)"
)
_FILL: Final = (
    "INSERT INTO full SELECT seq, seq % 100,"
    " 'some text of about forty characters, yes', NOW(6), (seq % 100) * 1.25,"
    " CONCAT('name ', seq) FROM seq_1_to_{rows}"
)
_FIRST: Final = "INSERT INTO backlog VALUES (0, 0, '', NOW(6), 0, '')"
_LIMIT: Final = 1_048_588  # max.message.bytes
_BARE, _ONE, _TWO = "bare loop", "walstream", "walstream, parallelism = 2"
_IDLE_POLLS, _FEW_POLLS = 60, 10  # one a second
_LONGEST_S: Final = 1800.0
_LOOK_S: Final = 0.1
_SAMPLE: Final = 1000

Figures = dict[str, list[Figure]]


@dataclass
class Place:
    """Where all of them read and write, and what was seen beside the rates."""

    mariadb: LocalMariadb
    kafka: LocalKafka
    folder: Path
    rows: int
    partitions: int
    starts_s: list[float]  # until the first row is delivered
    idle_ms: list[float]  # CPU of a poll
    idle_polls: int

    def topic(self, name: str) -> Topic:
        return Topic(self.kafka.bootstrap, self.partitions, name)

    def server(self) -> dict[str, Any]:
        return {
            "host": self.mariadb.host,
            "port": self.mariadb.port,
            "user": self.mariadb.user,
            "password": self.mariadb.password,
            "database": _DATABASE,
        }

    def fetch(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run them, and give what the last one gives."""
        connection = pymysql.connect(**self.server(), autocommit=True)
        with connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.poll")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    wanted = parser.parse_args()
    console = Console()
    figures: Figures = {_BARE: [], _ONE: [], _TWO: []}
    settings = {"innodb-buffer-pool-size": "512M", "innodb-log-file-size": "256M"}
    with LocalMariadb(settings=settings) as mariadb, LocalKafka() as kafka:
        folder = Path(tempfile.mkdtemp(prefix="walstream-bench-"))
        polls = _FEW_POLLS if wanted.small else _IDLE_POLLS
        sizes = wanted.rows, wanted.partitions
        place = Place(mariadb, kafka, folder, *sizes, [], [], polls)
        console.print(f"writing {wanted.rows} rows; logs in {folder}")
        fill(place)
        bare(place, "warm")  # the broker's code, and the table in memory
        for run in range(wanted.runs):
            figures[_BARE].append(bare(place, f"bare{run}"))
            figures[_ONE].append(walstream(place, run, 1))
            figures[_TWO].append(walstream(place, run, 2))
            agree(place, f"bare{run}", f"walstream{run}-1", f"walstream{run}-2")
            console.print(f"run {run + 1} of {wanted.runs} done")
    beside = {"idle_ms": place.idle_ms, "starts_s": place.starts_s}
    show(save("poll", figures, vars(wanted), small=wanted.small, **beside))


def fill(place: Place) -> None:
    home = {**place.server(), "database": None}
    with closing(pymysql.connect(**home)) as connection:
        connection.cursor().execute(f"CREATE DATABASE {_DATABASE}")
    place.fetch(
        f"CREATE TABLE full ({_COLUMNS})",
        _FILL.format(rows=place.rows),
        "ANALYZE TABLE full",
    )


def bare(place: Place, name: str) -> Figure:
    """Let one process do it, without anything that walstream is for."""
    topic = place.topic(name)
    producer = producer_properties(
        {
            **BULK,
            "bootstrap.servers": place.kafka.bootstrap,
            "partitioner": "murmur2_random",
        },
        _LIMIT,
        _LIMIT,
    )
    told = {
        "server": place.server(),
        "producer": producer,
        "query": "SELECT * FROM full ORDER BY id",
        "topic": name,
    }
    command = (sys.executable, "-m", "bench.bare")
    order = place.folder / f"{name}.json"
    order.write_text(json.dumps(told) + "\n", "utf-8")
    with Program(command, place.folder / f"{name}.log", order) as program:
        code = program.wait(_LONGEST_S)
        if code:
            raise SystemExit(f"{name} ended with {code}\n{program.log_end()}")
        took = float(program.log_end().splitlines()[-1])
    topic.close(place.rows)
    return program.complete(Figure(took, took, place.rows / took), place.rows)


@contextmanager
def exchanged(place: Place) -> Iterator[None]:
    """Let all rows be in the table that is polled, at one moment."""
    place.fetch("RENAME TABLE backlog TO first, full TO backlog")
    try:
        yield
    finally:
        place.fetch("RENAME TABLE backlog TO full", "DROP TABLE first")


def walstream(place: Place, run: int, parallelism: int) -> Figure:
    """Ask a walstream that has polled before."""
    name = f"walstream{run}-{parallelism}"
    folder = place.folder / name
    folder.mkdir()
    place.fetch(f"CREATE TABLE backlog ({_COLUMNS})", _FIRST)
    topic = place.topic(name)
    configuration = folder / "walstream.toml"
    configuration.write_text(f"""
state = "{folder}/state"
[http]
listen = ""
[spark]
master = "local[2,4]"
[sources.bench]
kind = "sql"
url = "{place.mariadb.url(_DATABASE)}"
poll_interval = "1s"
sinks = ["rows"]
[sources.bench.tables.backlog]
primary_key = "id"
parallelism = {parallelism}
[sinks.rows]
kind = "kafka"
format = "row"
topic = "{name}"
[sinks.rows.producer]
"bootstrap.servers" = "{place.kafka.bootstrap}"
""")
    command = (Path(sys.executable).with_name("walstream"), "run", "-c", configuration)
    with Program(command, place.folder / f"{name}.log") as program:
        place.starts_s.append(topic.filled(1, program, _LONGEST_S).wall_s)
        used = program.used_s()
        with exchanged(place):
            began = time.perf_counter()
            control.ask(folder / "state", PollRequest("bench"), _LONGEST_S)
            took = time.perf_counter() - began
            used = program.used_s() - used
            place.idle_ms.append(idle(place, program))
    topic.close(place.rows + 1)
    figure = program.complete(Figure(took, took, place.rows / took), place.rows)
    figure.cpu_us_per_row = used * 1e6 / place.rows
    return figure


def idle(place: Place, program: Program) -> float:
    """Count the CPU of a poll that finds nothing: each is one connection."""

    def connections() -> int:
        return int(place.fetch("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])

    used, begun, own = program.used_s(), connections(), 1
    while (polls := connections() - begun - own) < place.idle_polls:
        own += 1
        time.sleep(_LOOK_S)
    return (program.used_s() - used) / polls * 1e3


def agree(place: Place, first: str, *others: str) -> None:
    """See on some rows that the records are the same."""
    size = min(_SAMPLE, place.rows // place.partitions // 2)
    expected = hashes(place, first, lambda found: len(found) >= size)
    for other in others:
        found = hashes(place, other, lambda found: expected.keys() <= found.keys())
        if any(found[key] != expected[key] for key in expected):
            raise SystemExit(f"the records of {other} are not those of {first}")


def hashes(
    place: Place, topic: str, enough: Callable[[dict[bytes, str]], bool]
) -> dict[bytes, str]:
    """Read a partition until `enough` is found, which may stand anywhere in it."""
    settings = {"bootstrap.servers": place.kafka.bootstrap, "group.id": "bench"}
    consumer = Consumer(settings)
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: dict[bytes, str] = {}
        while not enough(found):
            messages = consumer.consume(_SAMPLE, timeout=5.0)
            if not messages:
                raise SystemExit(f"rows are missing in {topic}")
            for message in messages:
                found[message.key() or b""] = decode(message.value() or b"").hash
    return found


if __name__ == "__main__":
    main()

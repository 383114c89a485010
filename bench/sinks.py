"""`python -m bench.sinks`: three sinks, one of which fails, beside the same without it.

An open loop writes one-row transactions at a fixed rate. One sink is good; one is slow,
since its broker is frozen again and again; one has a topic that takes no large record,
and meets one. How long after its INSERT a record is received from the first two counts,
with the third one and without. Then the third one's topic is repaired, and it catches
up: all three hold the same at the end.
"""

import argparse
import json
import secrets
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from rich.console import Console
from rich.table import Table

from bench.open_loop import TABLE, p99, receiving, save, wait, write
from bench.programs import COMMAND
from bench.watch import Program
from walstream.testing.servers import LocalKafka, LocalPostgres

_GOOD, _SLOW, _FAILING = "good", "slow", "failing"
_GOAL: Final = 1.5
_SMALL, _LARGE = 3000, 100_000  # bytes
_FROZEN_S, _FLOWING_S = 0.1, 0.4


@dataclass
class Place:
    """The servers, and what every run has in common."""

    postgres: LocalPostgres
    kafka: LocalKafka
    slow: LocalKafka
    folder: Path
    rate: int
    seconds: int

    def bootstrap(self, sink: str) -> str:
        return (self.slow if sink == _SLOW else self.kafka).bootstrap

    def configure(self, run: str, sinks: list[str]) -> Path:
        folder = self.folder / run
        folder.mkdir()
        text = f"""
state = "{folder}/state"
[http]
listen = ""
[sources.bench]
kind = "postgres"
dsn = "{self.postgres.dsn(run)}"
slot = "{run}"
backfill = "never"
detach_after = "10s"
sinks = {json.dumps(sinks)}
"""
        for sink in sinks:
            text += f"""
[sinks.{sink}]
kind = "kafka"
topic = "{run}.{sink}"
[sinks.{sink}.producer]
"bootstrap.servers" = "{self.bootstrap(sink)}"
"""
        path = folder / "walstream.toml"
        path.write_text(text)
        return path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sinks")
    parser.add_argument("--rate", type=int, default=300, help="transactions a second")
    parser.add_argument("--seconds", type=int, default=60)
    wanted = parser.parse_args()
    console = Console()
    with LocalPostgres() as postgres, LocalKafka() as kafka, LocalKafka() as slow:
        folder = Path(tempfile.mkdtemp(prefix="walstream-bench-"))
        place = Place(postgres, kafka, slow, folder, wanted.rate, wanted.seconds)
        console.print(f"logs in {folder}")
        measure(place, "warm", [_GOOD, _SLOW], seconds=5)
        without = measure(place, "without", [_GOOD, _SLOW])
        among = measure(place, "among", [_GOOD, _SLOW, _FAILING])
    console.print(table(without, among))
    for sink in (_GOOD, _SLOW):
        ratio = p99(among[sink]) / p99(without[sink])
        met = "met" if ratio <= _GOAL else "not met"
        console.print(f"{sink}: p99 with / without {ratio:.2f} (goal {_GOAL}: {met})")
    console.print(
        f"the failing one caught up {among['caught_up_s']:.1f} s after repair"
    )
    runs = [figures(without), figures(among)]
    path = save("sinks", {"wanted": vars(wanted), "runs": runs})
    console.print(f"written to {path}")


def measure(
    place: Place, run: str, sinks: list[str], seconds: int | None = None
) -> dict[str, Any]:
    """Run once; give each sink's latencies in seconds."""
    seconds = seconds or place.seconds
    with psycopg.connect(place.postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {run}")
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        database = stack.enter_context(
            psycopg.connect(place.postgres.dsn(run), autocommit=True)
        )
        database.execute(TABLE)
        receivers = {
            sink: stack.enter_context(receiving(place.bootstrap(sink), f"{run}.{sink}"))
            for sink in sinks
        }
        if _FAILING in sinks:
            configure(place, f"{run}.{_FAILING}", _SMALL)
        command = (COMMAND, "run", "-c", place.configure(run, sinks))
        program = stack.enter_context(Program(command, place.folder / f"{run}.log"))
        wait(lambda: "streaming" in program.log_text(), "it streams")
        with frozen_now_and_then(place.slow):
            rows = place.rate * seconds
            large = rows // 10 if _FAILING in sinks else None
            write(database, place.rate, range(rows), partial(text_of, large))
            for sink in (_GOOD, _SLOW):
                wait(partial(receivers[sink].has, rows), f"{sink} has all")
        if _FAILING in sinks:
            began = time.monotonic()
            configure(place, f"{run}.{_FAILING}", _LARGE)
            wait(partial(receivers[_FAILING].has, rows), "it catches up")
            found["caught_up_s"] = time.monotonic() - began
            wait(lambda: "sink is back" in program.log_text(), "it is back")
        for sink in (_GOOD, _SLOW):
            found[sink] = list(receivers[sink].seconds.values())
    return found


def text_of(large: int | None, number: int) -> str:
    """Give a row's text; one row is large. What a broker measures is compressed."""
    return secrets.token_hex(10_000 if number == large else 10)


@contextmanager
def frozen_now_and_then(kafka: LocalKafka) -> Iterator[None]:
    """Freeze a broker for a while, again and again."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(_FLOWING_S):
            kafka.freeze()
            over.wait(_FROZEN_S)
            kafka.thaw()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def configure(place: Place, topic: str, size: int) -> None:
    client = AdminClient({"bootstrap.servers": place.kafka.bootstrap})
    entry = ConfigEntry(
        "max.message.bytes",
        str(size),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(30)


def table(without: dict[str, Any], among: dict[str, Any]) -> Table:
    shown = Table("sink", "run", "p50 ms", "p99 ms", "max ms")
    for name, run in (("without the failing one", without), ("with it", among)):
        for sink in (_GOOD, _SLOW):
            values = run[sink]
            figures = (statistics.median(values), p99(values), max(values))
            shown.add_row(sink, name, *(f"{figure * 1e3:.1f}" for figure in figures))
    return shown


def figures(run: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {
        sink: {"p50": statistics.median(run[sink]), "p99": p99(run[sink])}
        for sink in (_GOOD, _SLOW)
    }


if __name__ == "__main__":
    main()

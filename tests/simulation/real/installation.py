"""A walstream, a PostgreSQL and a Kafka, as the simulation has them, but real."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from tests.simulation.installation import PARTITIONS
from tests.simulation.kafka import Record
from tests.simulation.real.history import Places, Teller
from tests.simulation.real.postgres import PUBLICATION, Real
from tests.support.deadline import wait_until
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import SOURCE, Walstream
from tests.support.servers.slow_link import SlowLink
from walstream.lsn import Lsn
from walstream.postgres.stream import start_command

_WHOLE: Final = "whole"
_AWAY_S: Final = 1.0
_FROZEN_S: Final = 0.5


@dataclass
class Both(Walstream):
    """A source with the simulation's two sinks."""

    def document(self) -> dict[str, Any]:
        producer = {"bootstrap.servers": self.bootstrap}
        sinks = {
            name: {
                "kind": "kafka",
                "insecure": True,
                "topic": f"{self.prefix}{name}.{{schema}}.{{table}}",
                "topic_partitions": count,
                "producer": producer,
            }
            for name, count in PARTITIONS.items()
        }
        source = {
            "kind": "postgres",
            "dsn": self.dsn,
            "slot": self.slot,
            "tables": ["public.*"],
            "backfill": "never",
            "sinks": list(PARTITIONS),
        }
        return {
            "state": str(self.folder / "state"),
            "http": {"listen": ""},
            "sources": {SOURCE: source},
            "sinks": sinks,
        }


@dataclass
class Installation:
    """One of it, on servers that may be stopped; the `link` is before the broker."""

    real: Real
    walstream: Both
    reader: Reader
    link: SlowLink
    places: Places = field(default_factory=Places)

    def begin(self, statements: list[str]) -> None:
        """Make the tables, and stream them."""
        self.real.establish(statements)
        self.real.create(self._whole)
        self.walstream.start().streaming()

    @property
    def _whole(self) -> str:
        return f"{self.walstream.slot}_{_WHOLE}"

    def learn(self) -> None:
        """Give each transaction its number, by a slot of its own."""
        command = start_command(self._whole, 0, [PUBLICATION])
        client = self.real.start(command)
        Teller(self.places, live=True).tell(client.read(self.real.end))
        self.real.cut(client, "the server's")

    def confirmed(self) -> Lsn:
        found = self.real.slot(self.walstream.slot)
        return (found.confirmed_flush_lsn or 0) if found else 0

    def records(self) -> dict[str, dict[int, list[Record]]]:
        """Give what is in each topic, partition by partition, without its prefix."""
        topics: dict[str, dict[int, list[Record]]] = {}
        for one in self.reader.read():
            name = one.topic.removeprefix(self.walstream.prefix)
            made = Record(name, one.partition, one.key, one.value, ())
            topics.setdefault(name, {}).setdefault(one.partition, []).append(made)
        return topics

    # what goes wrong, by the simulation's names

    def fail(self, name: str) -> None:
        _FAULTS[name](self)

    def kill(self) -> None:
        self.walstream.kill()
        self.walstream.start().streaming()

    def stop(self) -> None:
        assert self.walstream.terminate() == 0, self.walstream.text
        self.walstream.start().streaming()

    def cut(self) -> None:
        self.real.terminate(self.walstream.slot)

    def go_away(self) -> None:
        """Have Kafka be away for a while."""
        self.link.rate = 0
        self.link.cut()
        self.real.pause(_AWAY_S)
        self.link.cut()
        self.link.rate = None

    def freeze(self) -> None:
        """Stop its processes for a while, as an overloaded machine does."""
        family = [
            self.walstream.pid,
            *(
                one.pid
                for one in psutil.Process(self.walstream.pid).children(recursive=True)
            ),
        ]
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        self.real.pause(_FROZEN_S)
        for pid in family:
            os.kill(pid, signal.SIGCONT)

    def settle(self, wanted: int) -> None:
        """Wait until so many different records are in Kafka."""
        wait_until(lambda: self._names() >= wanted, 120, f"{wanted} records arrive")

    def _names(self) -> int:
        records = self.reader.read()
        return len({(one.topic, one.partition, one.name) for one in records})


_FAULTS: Final = {
    "kill": Installation.kill,
    "stop": Installation.stop,
    "cut": Installation.cut,
    "server crash": lambda it: it.real.crash(),
    "checkpoint": lambda it: it.real.checkpoint(),
    "message": lambda it: it.real.say(),
    "grow": lambda it: it.real.grow(),
    "Kafka away": Installation.go_away,
    "freeze": Installation.freeze,
}


@contextmanager
def installed(
    real: Real, link: SlowLink, bootstrap: str, folder: Path, prefix: str
) -> Iterator[Installation]:
    """Give one whose walstream is not started yet."""
    with Reader(bootstrap, prefix) as reader:
        walstream = Both(real.dsn, bootstrap, folder, prefix)
        try:
            yield Installation(real, walstream, reader, link)
        finally:
            walstream.close()

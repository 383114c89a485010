"""The services of packaging/container/compose.yaml, as a user brings them up."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Self

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, RemoteServer
from tests.support.servers.engine import ROOT, Engine
from walstream import lsn
from walstream.testing.servers.port import free_port

FILE: Final = ROOT / "packaging/container/compose.yaml"
MAIN: Final = "walstream"  # the service
# what a test would wait for, sooner; and keys in several partitions
_OVERRIDE: Final = """\
services:
  walstream:
    environment: {WALSTREAM__SINKS__KAFKA__TOPIC_PARTITIONS: "4"}
    healthcheck: {interval: 1s}
"""


@dataclass(frozen=True)
class Line:
    """A record as tail prints it, with what the oracles ask of one."""

    topic: str
    partition: int
    kind: str
    name: tuple[int, int]
    new: dict[str, str] | None

    @classmethod
    def of(cls, told: dict[str, Any]) -> Self:
        return cls(
            topic=told["topic"],
            partition=told["partition"],
            kind=told["kind"],
            name=(lsn.parse(told["lsn"]), told["seq_id"]),
            new=told["new"],
        )


@dataclass(frozen=True)
class Stack:
    engine: Engine
    options: tuple[str, ...]  # of docker compose

    def compose(
        self, *words: str, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        return self.engine.run("compose", *self.options, *words, check=check)

    def up(self, *words: str) -> None:
        self.compose("up", "-d", *words)

    def container(self, service: str = MAIN) -> str:
        return self.compose("ps", "-a", "-q", service).stdout.strip()

    def inspect(self, service: str = MAIN) -> dict[str, Any]:
        told: list[dict[str, Any]] = json.loads(
            self.engine.says("inspect", self.container(service))
        )
        return told[0]

    def health(self) -> str:
        return str(self.inspect()["State"]["Health"]["Status"])

    def becomes(self, health: str) -> None:
        wait_until(lambda: self.health() == health, 120, f"it is {health}")

    def inside(
        self, *command: str, service: str = MAIN
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in a service's container."""
        return self.compose("exec", "-T", service, *command, check=False)

    def log(self, service: str = MAIN) -> str:
        return self.compose("logs", "--no-log-prefix", service).stdout

    def secret(self, name: str) -> str:
        return self.inside("cat", f"/run/secrets/walstream/{name}").stdout.strip()

    def database(self) -> Database:
        """Give the shop's, as its owner, from outside of the containers."""
        networks = self.inspect("postgres")["NetworkSettings"]["Networks"]
        (address,) = {one["IPAddress"] for one in networks.values()}
        password = self.secret("postgres")
        dsn = f"postgresql://postgres:{password}@{address}/shop"
        return Database(RemoteServer(18, dsn), "shop")

    def records(self, topic: str) -> list[Line]:
        """Read a topic from its beginning to its end, by walstream's own tail."""
        words = ("tail", "--json", "--from-beginning", "--until-end", topic)
        read = self.compose("run", "--rm", "-T", "--no-deps", "tail", *words)
        return [Line.of(json.loads(one)) for one in read.stdout.splitlines()]


@contextmanager
def first_day(engine: Engine, folder: Path) -> Iterator[Stack]:
    """Bring all services up, under a name and a port of their own; then delete them."""
    override = folder / "override.yaml"
    override.write_text(_OVERRIDE, "utf-8")
    files = ("-f", str(FILE), "-f", str(override))
    name = f"walstream_test_{token_hex(4)}"
    engine.environment["WALSTREAM_PORT"] = str(free_port())
    stack = Stack(engine, (*files, "-p", name))
    try:
        stack.up()
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "1", check=False)

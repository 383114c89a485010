"""What a run goes through, from nothing to an end; and what must hold behind it.

A scenario acts until its tap has struck, or to its end; then it settles: plainly
started, everything has to arrive, and is compared.
"""

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from psycopg.conninfo import conninfo_to_dict

from tests.callsites.service import Program, Service, Violation
from tests.callsites.shim import Tap, compiled
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import (
    Database,
    PostgresServer,
    local_postgres,
    temporary_database,
)
from tests.support.programs.fork import ForkServer
from tests.support.servers.brief_kafka import BriefKafka
from walstream.testing.servers import LocalKafka, LocalPostgres

_POSTGRES = {"fsync": "off", "max_replication_slots": "40", "max_wal_senders": "40"}
# a member that was killed is given up soon
_KAFKA = {"group.min.session.timeout.ms": "500", "metadata.max.idle.interval.ms": "0"}
MEMBER = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 500}


class Servers(Protocol):
    """Where scenes take place."""

    def postgres(self, version: int) -> PostgresServer: ...

    @property
    def kafka(self) -> KafkaServer: ...

    @property
    def forks(self) -> ForkServer | None:
        """Give who starts what is tapped; None: the command itself is started."""


class OwnServers:
    """One Kafka, and a PostgreSQL of each version that is asked for."""

    def __init__(self, *, fork: bool = False) -> None:
        self._stack = ExitStack()
        self.forks: ForkServer | None = None
        if fork:
            tapped = ForkServer({"LD_PRELOAD": str(compiled())})
            self.forks = self._stack.enter_context(tapped)
        self._postgres: dict[int, LocalPostgres] = {}
        self._kafka: LocalKafka | None = None

    def postgres(self, version: int) -> LocalPostgres:
        if version not in self._postgres:
            server = self._stack.enter_context(local_postgres(version, **_POSTGRES))
            self._postgres[version] = server
        return self._postgres[version]

    @property
    def kafka(self) -> LocalKafka:
        if self._kafka is None:
            self._kafka = self._stack.enter_context(BriefKafka(settings=_KAFKA))
        return self._kafka

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


@dataclass(frozen=True)
class Scene:
    """Where one run takes place: all of it is its own."""

    postgres: PostgresServer
    bootstrap: str
    forks: ForkServer | None
    folder: Path
    prefix: str  # of its topics, and group
    tap: Tap
    stack: ExitStack

    def database(self) -> Database:
        return self.stack.enter_context(temporary_database(self.postgres))

    @property
    def ports(self) -> tuple[int, int]:
        """The servers': PostgreSQL's, Kafka's."""
        given = conninfo_to_dict(self.postgres.dsn())
        return int(str(given["port"])), int(self.bootstrap.rpartition(":")[2])

    def service(self, program: Program) -> Service:
        environment = self.tap.environment(self.folder, *self.ports)
        made = Service(program, self.tap, environment, self.forks)
        self.stack.callback(made.close)
        return made


class Scenario(ABC):
    """One course of events."""

    name: ClassVar[str]
    versions: ClassVar[tuple[int, ...]] = (15, 18)  # of PostgreSQL
    service: Service

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @property
    def struck(self) -> bool:
        return self.scene.tap.done

    def wait(self, holds: Callable[[], object], what: str) -> None:
        """Wait for it, or for the strike."""
        self.service.until(lambda: self.struck or holds(), what)

    def stop(self) -> None:
        """End it as at a shutdown, unless it was struck: that is settled plainly."""
        if not self.struck:
            self.service.stop()

    @abstractmethod
    def act(self) -> None:
        """Arm the tap, and run to the end, or until it has struck."""

    @abstractmethod
    def settle(self) -> None:
        """Start plainly, let all arrive, and claim that it is what it should be."""


class Rounds(Scenario):
    """A first start, several rounds of writing, a stop, the next start, and a stop."""

    def act(self) -> None:
        self.write()
        self.scene.tap.arm()
        self.service.start()
        self.arrive()
        for _ in range(2):
            self.write_more()
            self.arrive()
        self.stop()
        if not self.struck:
            self.service.start()
            self.write()
            self.arrive()
            self.stop()

    @abstractmethod
    def write(self) -> None:
        """Write what is to come out."""

    def write_more(self) -> None:
        """Write while it runs."""
        self.write()

    @abstractmethod
    def arrive(self) -> None:
        """Wait until all of it came out, or for the strike."""


@contextmanager
def staged(servers: Servers, version: int, folder: Path, tap: Tap) -> Iterator[Scene]:
    """Give a scene of its own, and leave nothing of it on the servers."""
    prefix = f"at_{secrets.token_hex(5)}."
    server, bootstrap = servers.postgres(version), servers.kafka.bootstrap
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.callback(_forget, bootstrap, prefix)
        yield Scene(server, bootstrap, servers.forks, folder, prefix, tap, stack)


def _forget(bootstrap: str, prefix: str) -> None:
    """Delete the topics of a scene: a broker with thousands of them is slow."""
    admin: Any = AdminClient({"bootstrap.servers": bootstrap})
    names = [one for one in admin.list_topics(timeout=30).topics if prefix in one]
    if names:
        for asked in admin.delete_topics(names).values():
            try:
                asked.result(30)
            except KafkaException:  # a program that was killed a moment ago made it
                continue


def own_group() -> int:
    """Return the process group that no strike may reach."""
    return os.getpgrp()


def claim(holds: object, what: str) -> None:
    if not holds:
        raise Violation(what)

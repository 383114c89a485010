"""MariaDB servers and databases for the tests.

`embedded` starts one here from the machine's binaries, `docker` takes the public image,
`external` reads WALSTREAM_TEST_MARIADB: mysql://user:password@host:port, of a user who
may do everything.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import pymysql
import pytest

from tests.services import chosen, container, external, needs_own_servers
from tests.waiting import wait_until
from walstream.errors import ConfigError
from walstream.testing.servers import LocalMariadb
from walstream.testing.servers.mariadb import find_binaries
from walstream.testing.servers.port import free_port

_IMAGE = "mariadb:11.8"
_VARIABLE = "WALSTREAM_TEST_MARIADB"


class MariadbServer(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def password(self) -> str: ...

    def url(self, database: str = "") -> str: ...


@dataclass(frozen=True)
class RemoteMariadb:
    host: str
    port: int
    user: str
    password: str

    def url(self, database: str = "") -> str:
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        name = quote(database, safe="")
        return f"mysql+pymysql://{login}@{self.host}:{self.port}/{name}"


@dataclass(frozen=True)
class Mariadb:
    """A database, and sessions in it."""

    server: MariadbServer
    name: str = ""

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def connect(self) -> "pymysql.Connection[Any]":
        """Open a session in which nothing is committed by itself."""
        return pymysql.connect(
            host=self.server.host,
            port=self.server.port,
            user=self.server.user,
            password=self.server.password,
            database=self.name or None,
        )

    def execute(self, statement: str, *params: object) -> None:
        self.fetch(statement, *params)

    def fetch(self, statement: str, *params: object) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement, params or None)
            rows = list(cursor.fetchall())
            connection.commit()
            return rows


class OwnMariadb(Protocol):
    def __call__(self, **settings: str) -> LocalMariadb: ...


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    with ExitStack() as stack:
        yield _SERVERS[chosen()](stack)


@pytest.fixture
def mariadb_database(mariadb: MariadbServer) -> Iterator[Mariadb]:
    """Make a fresh one, and drop it."""
    fresh, home = Mariadb(mariadb, f"test_{secrets.token_hex(6)}"), Mariadb(mariadb)
    home.execute(f"CREATE DATABASE {fresh.name}")
    yield fresh
    # a session that a test left in a transaction would hold it up for a day
    home.execute(f"SET STATEMENT lock_wait_timeout = 5 FOR DROP DATABASE {fresh.name}")


@pytest.fixture
def own_mariadb() -> Iterator[OwnMariadb]:
    """Start servers that the test may stop: `own_mariadb(max_connections="3")`."""
    needs_own_servers()
    _must_be_installed()
    with ExitStack() as stack:

        def start(**settings: str) -> LocalMariadb:
            return stack.enter_context(LocalMariadb(settings=settings))

        yield start


def _must_be_installed() -> None:
    try:
        find_binaries()
    except ConfigError as error:
        pytest.skip(str(error))


def _embedded(stack: ExitStack) -> MariadbServer:
    _must_be_installed()
    return stack.enter_context(LocalMariadb())


def _docker(stack: ExitStack) -> MariadbServer:
    port, password = free_port(), secrets.token_hex(8)
    host = container(stack, _IMAGE, {3306: port}, {"MARIADB_ROOT_PASSWORD": password})
    server = RemoteMariadb(host, port, "root", password)
    wait_until(lambda: _answers(server), 60, f"{_IMAGE} answers")
    return server


def _external(_: ExitStack) -> MariadbServer:
    url = urlsplit(external(_VARIABLE))
    user, password = unquote(url.username or ""), unquote(url.password or "")
    return RemoteMariadb(url.hostname or "", url.port or 3306, user, password)


_SERVERS: dict[str, Callable[[ExitStack], MariadbServer]] = {
    "embedded": _embedded,
    "docker": _docker,
    "external": _external,
}


def _answers(server: MariadbServer) -> bool:
    try:
        return bool(Mariadb(server).fetch("SELECT 1"))
    except pymysql.OperationalError:
        return False

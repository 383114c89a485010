"""Running walstreams for the tests: one for each test, or one that several share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.fix_kafka import KafkaServer
from tests.fix_postgres import Database, PostgresServer, temporary_database
from tests.reading import Reader
from tests.running import Walstream
from walstream import plugins
from walstream.formats.op import decode


@dataclass(frozen=True)
class Stream:
    """A database, the walstream that streams it, and what reached Kafka."""

    database: Database
    walstream: Walstream
    reader: Reader

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop walstream meanwhile, so that what is written is a backlog."""
        assert self.walstream.terminate() == 0, self.walstream.text
        yield
        self.walstream.start(*self.walstream.flags).streaming()


@contextmanager
def streamed(
    server: PostgresServer,
    kafka: KafkaServer,
    folder: Path,
    *,
    before: str | Callable[[Database], object] = "",  # SQL, or what makes it ready
    user: str = "",
    **options: Any,
) -> Iterator[Stream]:
    """Stream a fresh database; `options` are fields of `Walstream`.

    `decode` is how the reader reads values.
    """
    prefix = options.pop("prefix", f"test_{token_hex(6)}.")
    with (
        temporary_database(server) as database,
        Reader(kafka.bootstrap, prefix, options.pop("decode", decode)) as reader,
    ):
        if callable(before):
            before(database)
        elif before:
            database.execute(before)
        dsn = make_conninfo(database.dsn, user=user) if user else database.dsn
        walstream = Walstream(dsn, kafka.bootstrap, folder, prefix=prefix, **options)
        with walstream:
            yield Stream(database, walstream, reader)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder that Python looks into, here and in what is started."""
    folder = tmp_path / "installed"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    plugins.names.cache_clear()
    yield folder
    plugins.names.cache_clear()


class Runs:
    """Makes the walstreams of one test, and ends them with it."""

    def __init__(self, bootstrap: str, folder: Path, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self._folder = folder
        self._made: list[Walstream] = []

    def __call__(self, dsn: str, **options: Any) -> Walstream:
        """Make one that is not started yet."""
        options.setdefault("folder", self._folder / f"run{len(self._made)}")
        options.setdefault("prefix", self.prefix)
        made = Walstream(dsn, options.pop("bootstrap", self.bootstrap), **options)
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close()


@pytest.fixture
def runs(
    request: pytest.FixtureRequest,
    kafka: KafkaServer,
    tmp_path: Path,
    topic_prefix: str,
) -> Iterator[Runs]:
    """Make walstreams; they end before the test's database is dropped."""
    if "database" in request.fixturenames:
        request.getfixturevalue("database")
    made = Runs(kafka.bootstrap, tmp_path, topic_prefix)
    yield made
    made.close()


@pytest.fixture
def reader(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix) as opened:
        yield opened

"""Who is slow, silent, many or a stranger is cut off, and the stream knows nothing."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import psutil
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, temporary_database
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import Walstream
from tests.support.servers.brief_kafka import BriefKafka
from walstream.testing.servers import LocalKafka, LocalPostgres
from walstream.testing.servers.port import free_port

pytestmark = [pytest.mark.fault_long, pytest.mark.takes(120)]

_ROUNDS = 10  # reports, about one a second
_IDLE = 1000
_SLOW = 50
_TOKEN = "a-secret-of-the-test"  # noqa: S105 - of the test
_HEAD = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "


@dataclass
class Site:
    """A run's HTTP."""

    port: int
    token: str

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Ask in a connection of its own; headers may replace the right ones."""
        given = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={**given, **headers})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def delivered(self) -> float:
        status, text = self.get("/metrics")
        assert status == 200
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "walstream_delivered_total"
        )

    def has_more_than(self, before: float) -> bool:
        return self.delivered() > before

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


@dataclass
class Writer:
    """Writes row after row."""

    dsn: str
    rows: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while not self.over.wait(0.01):
                connection.execute("INSERT INTO t (v) VALUES ('x')")
                self.rows += 1
        self.ended.set()


@contextmanager
def thread(run: object) -> Iterator[None]:
    made = threading.Thread(target=run)  # type: ignore[arg-type]
    made.start()
    yield
    made.join(60)
    assert not made.is_alive()


def ends(one: socket.socket) -> bool:
    """Tell whether the server ended it."""
    one.setblocking(False)
    try:
        while one.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@dataclass
class Slow:
    """Connections that send a byte a second, until each is cut off."""

    site: Site
    cut_off: int = 0

    def run(self) -> None:
        with ExitStack() as stack:
            left = [stack.enter_context(self.site.connect()) for _ in range(_SLOW)]
            for number in range(60):
                byte = (_HEAD + b"x" * 60)[number : number + 1]
                for one in left:
                    with suppress(OSError):
                        one.sendall(byte)
                time.sleep(1)
                left = [one for one in left if not ends(one)]
                self.cut_off = _SLOW - len(left)
                if not left:
                    return


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[LocalKafka, Database]]:
    needs_own_servers()
    with (
        LocalPostgres() as postgres,
        BriefKafka() as kafka,
        temporary_database(postgres) as database,
    ):
        database.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
        yield kafka, database


def refuses(site: Site) -> None:
    """See strangers and oversized heads refused."""
    assert site.get("/status", Host="evil.example")[0] == 400
    if site.token:
        for wrong in ("", "Bearer", f"Bearer {site.token}x", "Basic !"):
            assert site.get("/metrics", Authorization=wrong)[0] == 401
    for rest in (b"x" * 20_000, b"x" * 20_000 + b"\r\n\r\n"):
        with site.connect() as large:
            large.sendall(_HEAD + rest)
            assert large.recv(100).split()[1] in {b"400", b"431"}


@pytest.mark.parametrize("token", ["", _TOKEN])
def test_abuse_is_cut_off_and_every_row_arrives(
    servers: tuple[LocalKafka, Database], tmp_path: Path, token: str
) -> None:
    kafka, database = servers
    site = Site(free_port(), token)
    prefix = "open." if not token else "token."
    http = {"listen": f"127.0.0.1:{site.port}", "token": token}
    walstream = Walstream(
        database.dsn,
        kafka.bootstrap,
        tmp_path,
        prefix,
        source={"slot": prefix.strip(".")},
        top={"http": http},
    )
    with walstream, ExitStack() as stack:
        # GIVEN a stream with a steady writer
        worker, process = walstream.worker_pid(), psutil.Process(walstream.pid)
        writer, slow = Writer(database.dsn), Slow(site)
        stack.enter_context(thread(writer.run))
        stack.callback(writer.over.set)
        wait_until(lambda: site.get("/status")[0] == 200, 30, "it is well")
        wait_until(site.delivered, 30, "rows are delivered")
        descriptors = process.num_fds()

        # WHEN many say nothing, some very little, and others ask what they may not
        stack.enter_context(thread(slow.run))
        idle = [stack.enter_context(site.connect()) for _ in range(_IDLE)]
        most = 0
        for _ in range(_ROUNDS):
            before = site.delivered()
            refuses(site)
            assert site.get("/health") == (200, "Alive and well\n")
            most = max(most, process.num_fds())
            # THEN the stream goes on all that time
            wait_until(partial(site.has_more_than, before), 30, "more is delivered")

        # AND they are cut off, and cost nothing any more
        wait_until(lambda: all(map(ends, idle)), 30, "the idle are cut off")
        wait_until(lambda: slow.cut_off == _SLOW, 60, "the slow are cut off")
        wait_until(lambda: process.num_fds() <= descriptors + 5, 30, "nothing is kept")
        assert most <= descriptors + 400

        # AND every row arrives, from the worker that there was
        writer.over.set()
        assert writer.ended.wait(10)
        with Reader(kafka.bootstrap, prefix) as reader:
            records = reader.count(writer.rows)
        assert len({record.new["id"] for record in records}) == writer.rows
        assert walstream.worker_pid() == worker
        assert site.get("/status")[0] == 200
        assert not walstream.said("defect")
        assert walstream.terminate() == 0, walstream.text

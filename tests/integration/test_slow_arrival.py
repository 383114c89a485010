"""What arrives is life, however long a message takes; a link that is dead is none."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.servers.slow_link import SlowLink
from walstream.errors import Transient
from walstream.pipeline.pgoutput.large_value import LargeFrame
from walstream.pipeline.ports import Position
from walstream.postgres import server as servers
from walstream.postgres import slot, stream
from walstream.postgres.connection import connect
from walstream.postgres.slot import SlotSpec, WaitPolicy
from walstream.postgres.stream import SlotSource, open_stream
from walstream.testing.servers import LocalPostgres

SILENCE_S = 2.0
MESSAGE = 12 << 20  # bytes
RATE = 2 << 20  # a second: it takes three times as long as the server may be silent


def serve_tls(server: LocalPostgres) -> None:
    """Let a server take TLS, with a certificate of its own making."""
    certificate, key = server.data / "server.crt", server.data / "server.key"
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes"]
    command += ["-subj", "/CN=localhost", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    owner = server.data.stat()
    for path in (certificate, key):
        os.chown(path, owner.st_uid, owner.st_gid)
        path.chmod(0o600)
    database = Database(server, "postgres")
    database.execute("ALTER SYSTEM SET ssl = on")
    database.execute("SELECT pg_reload_conf()")
    wait_until(lambda: database.fetch("SHOW ssl") == [("on",)], 10, "TLS is on")


@contextmanager
def reading(
    server: LocalPostgres, link: SlowLink, *, tls: bool
) -> Iterator[SlotSource]:
    """Read a slot over the link, behind which a large row was committed."""
    database = Database(server, "postgres")
    database.execute("CREATE TABLE t (v text)")
    database.execute("CREATE PUBLICATION p FOR TABLE t")
    patience = WaitPolicy(threading.Event(), lambda _: None)
    made = slot.create(database.dsn, SlotSpec("s"), patience)
    made.connection.close()
    database.execute("INSERT INTO t SELECT repeat('x', %s)", MESSAGE)
    with connect(database.dsn) as connection:
        found = replace(servers.look(connection), wal_sender_timeout_ms=0)
    sslmode = "require" if tls else "disable"
    dsn = make_conninfo(database.dsn, port=link.port, sslmode=sslmode)
    identifier, timeline = found.system_identifier, found.timeline
    start = Position(made.consistent_point, identifier, timeline, "postgres", "s")
    source = open_stream(dsn, found, start, source="app", publications=["p"])
    try:
        yield source
    finally:
        source.close()


@pytest.fixture(params=[False, True], ids=["plain", "TLS"])
def tls(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def server(own_postgres: OwnPostgres, tls: bool) -> LocalPostgres:
    # the wheel's server is built without TLS
    made = own_postgres(15 if tls else 18, wal_level="logical")
    if tls:
        serve_tls(made)
    return made


def test_a_message_may_take_longer_than_a_server_may_be_silent(
    server: LocalPostgres, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_SILENCE_S", SILENCE_S)
    with SlowLink(server.port) as link, reading(server, link, tls=tls) as source:
        link.rate = RATE
        frames: list[bytes] = []

        def arrived() -> bool:
            frames.extend(source.read(100))
            return any(isinstance(frame, LargeFrame) for frame in frames)

        wait_until(arrived, 60, "the large row is there")
        assert link.passed > MESSAGE


def test_a_link_that_lets_nothing_through_is_noticed(
    server: LocalPostgres, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_SILENCE_S", SILENCE_S)
    with SlowLink(server.port) as link, reading(server, link, tls=tls) as source:
        link.rate = RATE
        wait_until(lambda: source.read(1) or link.passed > 1 << 20, 30, "it has begun")
        link.rate = 0

        def is_silent() -> bool:
            try:
                source.read(100)
            except Transient as error:
                return "silent" in str(error)
            return False

        wait_until(is_silent, 30, "the silence is noticed")

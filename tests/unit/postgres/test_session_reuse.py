"""One session for many questions: how long it is kept, and who may have it."""

import socket
from collections.abc import Iterator

import psycopg
import pytest

from walstream.errors import Transient
from walstream.postgres import session_reuse
from walstream.postgres.session_reuse import SessionReuse


class Session:
    """A connection whose server ends it when told to."""

    def __init__(self) -> None:
        self._socket, self.server = socket.socketpair()
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self.closed = True
        self._socket.close()
        self.server.close()


class Server:
    """Counts the sessions; one more than two at a time is refused."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []

    def connect(self, dsn: str) -> Session:
        assert dsn == "the dsn"
        self.sessions.append(Session())
        return self.sessions[-1]

    @property
    def open(self) -> int:
        return sum(not one.closed for one in self.sessions)


class Clock:
    """A clock that stands until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    found = Server()
    monkeypatch.setattr(session_reuse, "connect", found.connect)
    yield found
    for one in found.sessions:
        one.close()


def test_one_session_after_the_other_is_the_same(server: Server) -> None:
    reuse = SessionReuse("the dsn", Clock())
    for _ in range(3):
        with reuse.session() as connection:
            assert id(connection) == id(server.sessions[0])
    assert len(server.sessions) == 1


def test_two_at_a_time_do_not_share_one_and_one_is_kept(server: Server) -> None:
    reuse = SessionReuse("the dsn", Clock())
    with reuse.session() as one, reuse.session() as other:
        assert one is not other
    assert [len(server.sessions), server.open] == [2, 1]


def test_it_is_closed_when_nobody_asks_for_a_second(server: Server) -> None:
    clock = Clock()
    reuse = SessionReuse("the dsn", clock)
    reuse.tick()
    for _ in range(3):
        with reuse.session():
            clock.now += 0.5
            reuse.tick()  # not the one in use
            assert server.open == 1
        clock.now += 0.9
        reuse.tick()
        assert server.open == 1
    clock.now += 0.2
    reuse.tick()
    assert [len(server.sessions), server.open] == [1, 0]


def test_it_does_not_stay_open_though_it_is_always_asked(server: Server) -> None:
    clock = Clock()
    reuse = SessionReuse("the dsn", clock)
    for _ in range(20):
        with reuse.session():
            pass
        clock.now += 0.5
        reuse.tick()
    assert len(server.sessions) == 2
    with reuse.session():
        clock.now += 20
    assert server.open == 0  # a question that took long


def test_one_that_the_server_ended_is_not_used(server: Server) -> None:
    reuse = SessionReuse("the dsn", Clock())
    with reuse.session():
        pass
    server.sessions[0].server.send(b"E: terminating connection")
    with reuse.session() as connection:
        assert id(connection) == id(server.sessions[1])
    assert server.sessions[0].closed


def test_after_an_error_it_is_not_used_again(server: Server) -> None:
    reuse = SessionReuse("the dsn", Clock())
    with pytest.raises(Transient, match="asking PostgreSQL"), reuse.session():
        raise psycopg.OperationalError("the connection is lost")
    assert server.open == 0
    with reuse.session():
        pass
    assert len(server.sessions) == 2


def test_a_close_closes_what_is_in_use_when_it_no_longer_is(server: Server) -> None:
    reuse = SessionReuse("the dsn", Clock())
    with reuse.session():
        pass
    with reuse.session():
        reuse.close()
        assert server.open == 1
    assert server.open == 0

"""The listener on real sockets: who is slow, silent or many harms nobody."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection

import pytest

from tests.support.deadline import wait_until
from tests.unit.service.http.conftest import config, snapshot, told
from walstream.service.http import app, page, protocol
from walstream.service.http.board import Board
from walstream.service.http.server import Face
from walstream.service.http.socket import listen


@pytest.fixture
def face(monkeypatch: pytest.MonkeyPatch) -> Iterator[Face]:
    # on a busy machine nobody is cut off whom a test does not want to be
    monkeypatch.setattr(protocol, "HEAD_S", 60.0)
    board, where = Board(config()), "127.0.0.1:0"
    board.publish(snapshot(told()))
    made = Face("listen", where, listen(where), app.make(board, str))
    try:
        wait_until(lambda: asked(made) == 200, 10, "it answers")
        yield made
    finally:
        made.close()


def place(face: Face) -> tuple[str, int]:
    host, _, port = face.address.rpartition(":")
    return host, int(port)


def asked(face: Face) -> int:
    """Ask for metrics, as long as the supervisor turns."""
    face.watch()
    connection = HTTPConnection(*place(face), timeout=5)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def connections(face: Face) -> set[object]:
    """Give those that the listener has."""
    return set(face._server.server_state.connections)  # type: ignore[union-attr]  # noqa: SLF001


def is_cut_off(one: socket.socket) -> bool:
    one.settimeout(10)
    try:
        while one.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


def test_a_head_that_never_ends_is_cut_off(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.3)
    with socket.create_connection(place(face)) as silent:
        assert is_cut_off(silent)
    with socket.create_connection(place(face)) as slow:
        head = iter(b"GET / HTTP/1.1\r\n" + b"x" * 1000)

        def refused() -> bool:
            try:
                slow.sendall(bytes([next(head)]))
            except ConnectionError:
                return True
            return False

        wait_until(refused, 20, "it is cut off")
    monkeypatch.setattr(protocol, "HEAD_S", 60.0)
    assert asked(face) == 200


def test_a_head_that_is_too_large_is_refused(face: Face) -> None:
    with socket.create_connection(place(face)) as large:
        head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
        large.settimeout(10)
        large.sendall(head + b"x" * 20_000)
        assert large.recv(100).startswith(b"HTTP/1.1 400")
    with socket.create_connection(place(face)) as whole:
        whole.settimeout(10)
        whole.sendall(head + b"x" * 20_000 + b"\r\n\r\n")
        assert whole.recv(100)[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 431"}
    assert asked(face) == 200


def test_a_thousand_idle_connections_keep_nobody_out(face: Face) -> None:
    idle: list[socket.socket] = []
    try:
        idle += (socket.create_connection(place(face), timeout=10) for _ in range(1000))
        assert asked(face) == 200
    finally:
        for one in idle:
            one.close()
    wait_until(lambda: asked(face) == 200, 10, "it answers")


def test_no_burst_of_connections_is_kept(face: Face) -> None:
    loop = face._server.servers[0].get_loop()  # type: ignore[union-attr]  # noqa: SLF001
    kept: list[int] = []
    with ExitStack() as stack:

        def burst() -> None:
            for _ in range(200):
                one = stack.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(place(face))
            # all of them come to the listener in one turn of its loop
            loop.call_later(0.1, count)

        def count() -> None:
            """Count them when those are closed that are too many."""
            kept.append(len(connections(face)))
            if kept[-1] > protocol.MOST + 1:
                loop.call_later(0.1, count)

        loop.call_soon_threadsafe(burst)
        few = range(1, protocol.MOST + 2)
        wait_until(lambda: kept and kept[-1] in few, 10, "what is too many is closed")
    wait_until(lambda: asked(face) == 200, 10, "it answers")


@pytest.mark.parametrize("requests", [1, 3])
def test_an_answer_that_nobody_takes_ends(
    face: Face, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    monkeypatch.setattr(protocol, "ANSWER_S", 0.3)
    rendered: list[int] = []

    def render(*_: object) -> str:
        rendered.append(1)
        return "x" * (8 << 20)  # fills what the kernel keeps for who does not read

    monkeypatch.setattr(page, "render", render)
    with socket.create_connection(place(face)) as deaf:
        deaf.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * requests)
        wait_until(lambda: rendered, 10, "it came")
        wait_until(lambda: not connections(face), 10, "it was cut off")
    assert asked(face) == 200


def test_a_connection_may_ask_again_and_again(face: Face) -> None:
    connection = HTTPConnection(*place(face), timeout=5)
    for _ in range(20):
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b"Alive and well\n"
    connection.close()


def test_a_thread_that_died_is_started_again(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.service.http.server._AGAIN_S", 0.1)
    (thread,) = [one for one in threading.enumerate() if one.name == "http"]
    face._server.should_exit = True  # type: ignore[union-attr]  # noqa: SLF001
    thread.join(10)

    wait_until(lambda: asked(face) == 200, 10, "it answers again")

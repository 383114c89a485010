"""A link passes all on, in order, each piece late by half an answer and no more."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from bench.link import DelayLink

_ANSWER_S = 0.1
_LATE_S = 1.0  # a busy machine takes a part of it


def _echo(listener: socket.socket) -> None:
    server, _ = listener.accept()
    with server:
        while piece := server.recv(1 << 16):
            server.sendall(piece)


@pytest.fixture
def answer_s() -> float:
    return _ANSWER_S


@pytest.fixture
def link(answer_s: float) -> Iterator[DelayLink]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_echo, args=[listener], daemon=True)
        thread.start()
        made = DelayLink(listener.getsockname()[1], answer_s)
        yield made
        made.close()
        thread.join(10)


@pytest.mark.parametrize("answer_s", [_LATE_S])
def test_an_answer_takes_its_time_and_many_may_be_under_way(link: DelayLink) -> None:
    with socket.create_connection(("127.0.0.1", link.port), 10) as client:
        sent = []
        for number in range(10):
            sent.append(time.monotonic())
            client.sendall(bytes([number]))
            time.sleep(0.02)
        for number, at in enumerate(sent):
            assert client.recv(1) == bytes([number])
            assert time.monotonic() - at >= _LATE_S
        # one after the other they would take ten answers' time
        assert time.monotonic() - sent[0] < 9 * _LATE_S
    assert link.sent == 10


def test_the_end_comes_behind_what_was_sent_and_as_late(link: DelayLink) -> None:
    with socket.create_connection(("127.0.0.1", link.port), 10) as client:
        began = time.monotonic()
        client.sendall(b"all" * 100_000)
        client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as answer:
            assert answer.read() == b"all" * 100_000
        assert time.monotonic() - began >= _ANSWER_S
    assert link.sent == 300_000


def test_where_nobody_listens_the_connection_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    link = DelayLink(port, _ANSWER_S)
    with socket.create_connection(("127.0.0.1", link.port), 10) as client:
        assert client.recv(1) == b""
    link.close()
